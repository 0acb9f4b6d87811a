cimport cython
from libc.stdint cimport int64_t, uint64_t

from queueduct.core._backend cimport SegmentBackend
from queueduct.items._buffers cimport Gathered
from queueduct.native._native cimport Counted, Outcome, Participant, RingLease
from queueduct.rings.shared._native cimport RingHandle


cdef class RingBackend(SegmentBackend):
    """The backend of a queue of rings in shared memory, bounded or growing: it converts, waits and raises."""
    cdef RingHandle* queue
    cdef uint64_t slot_bytes
    cdef uint64_t item_slots_limit
    cdef uint64_t refused_slots      # of the last item that found no room: what its error says

    cdef int attach(self, object opened, RingHandle* queue) except -1

    # each kind's own
    cdef int raise_corrupt(self) except -1
    cdef int raise_no_memory(self) except -1
    cdef object limit_reason(self)

    # participants
    @cython.final
    cdef int find_participant(self, Participant* ledger) except -1

    # put
    @cython.final
    cdef uint64_t slots_of(self, uint64_t length) noexcept
    cdef int check_length(self, uint64_t length) except -1
    @cython.final
    cdef bint _go_on_putting(
        self, Outcome outcome, uint64_t total, uint64_t slots, int64_t deadline, Participant* ledger, bint is_first
    ) except -1
    @cython.final
    cdef int after_put(self, bint waited) except -1
    @cython.final
    cdef bint wait_for_room(
        self, Outcome outcome, uint64_t slots, int64_t deadline, Participant* ledger, bint is_first
    ) except -1

    # get
    @cython.final
    cdef bint go_on_getting(self, Outcome outcome, int64_t deadline, Participant* ledger, bint is_first) except -1
    @cython.final
    cdef bint wait_for_items(self, int64_t deadline, Participant* ledger, bint is_first) except -1
    @cython.final
    cdef bint after_wait(self, Participant* ledger) except -1

    # leases
    cdef RingLease* new_lease(self) except NULL
    cdef bint may_be_gettable(self) noexcept


cdef Counted counted_by(RingBackend shared, uint64_t pushed, uint64_t popped)
