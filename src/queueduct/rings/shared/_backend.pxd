cimport cython
from libc.stdint cimport int64_t, uint64_t

from queueduct.core._backend cimport SegmentBackend
from queueduct.items._buffers cimport Gathered, Held
from queueduct.native._native cimport Buffer, Outcome, ProducerLine, Producers, RingLease, Participant
from queueduct.rings.shared._native cimport RingHandle


cdef class RingBackend(SegmentBackend):
    """A queue of rings in shared memory, bounded or growing: convert, wait, raise."""
    cdef RingHandle* queue
    cdef uint64_t slot_bytes
    cdef uint64_t item_slots_limit

    cdef Held map_memory(self, object opened)
    cdef int attach(self, object opened, RingHandle* queue) except -1

    # what a kind says
    cdef int raise_corrupt(self) except -1
    cdef int raise_no_memory(self) except -1
    cdef object limit_reason(self)

    # participants
    @cython.final
    cdef int find_participant(self, Participant* ledger) except -1
    cdef Producers* producers(self) noexcept
    cdef Outcome settle_producer(self, ProducerLine* line) noexcept nogil

    # put
    @cython.final
    cdef uint64_t slots_of(self, uint64_t length) noexcept
    cdef int check_length(self, uint64_t length) except -1
    @cython.final
    cdef bint _go_on_putting(
        self, Outcome outcome, uint64_t total, uint64_t slots, int64_t deadline, Participant* ledger
    ) except -1
    cdef Outcome put_bytes_once(
        self, Participant ledger, ProducerLine* line, const Buffer* items, uint64_t count, uint64_t* put
    ) noexcept nogil
    cdef Outcome put_records_once(
        self, Participant ledger, ProducerLine* line, const void* data, uint64_t count, uint64_t* put
    ) noexcept nogil
    @cython.final
    cdef int after_put(self, bint waited) except -1
    @cython.final
    cdef bint wait_for_room(self, Outcome outcome, uint64_t slots, int64_t deadline, Participant* ledger) except -1

    # get
    @cython.final
    cdef bint go_on_getting(self, Outcome outcome, int64_t deadline, Participant* ledger) except -1
    @cython.final
    cdef bint wait_for_items(self, int64_t deadline, Participant* ledger) except -1
    @cython.final
    cdef bint after_wait(self, Participant* ledger) except -1

    # leases
    cdef RingLease* new_lease(self) except NULL
    cdef bint is_unreleased(self, uint64_t position) noexcept nogil
    cdef uint64_t count_left(self) noexcept
    cdef bint may_be_gettable(self) noexcept
    cdef void sleep_for_items(self, int64_t limit_ns) noexcept nogil
    cdef void notify_items(self) noexcept
    cdef void notify_room(self) noexcept
