from libc.stdint cimport int64_t, uint64_t

from queueduct.items._batches cimport Gathered
from queueduct.core._backend cimport SegmentBackend
from queueduct.native._native cimport Buffer, Outcome, ProducerLine, Producers, RingLease, Participant


cdef class RingBackend(SegmentBackend):
    """A backend of rings, whose claims stand in a ledger: what puts, named producers and leases need of it."""
    cdef uint64_t slot_bytes

    # what each brings
    cdef int find_participant(self, Participant* ledger) except -1
    cdef bint has_ledger(self, Participant* ledger) noexcept
    cdef uint64_t owner_word(self, Participant ledger) noexcept
    cdef Producers* producers(self) noexcept
    cdef Outcome settle_producer(self, ProducerLine* line) noexcept nogil
    cdef Outcome put_buffers(
        self, Participant ledger, const Buffer* items, uint64_t count, uint64_t* put
    ) noexcept nogil
    cdef Outcome put_records(
        self, Participant ledger, const void* data, uint64_t count, uint64_t* put
    ) noexcept nogil
    cdef Outcome put_bytes_once(
        self, Participant ledger, ProducerLine* line, const Buffer* items, uint64_t count, uint64_t* put
    ) noexcept nogil
    cdef Outcome put_records_once(
        self, Participant ledger, ProducerLine* line, const void* data, uint64_t count, uint64_t* put
    ) noexcept nogil
    cdef int check_length(self, uint64_t length) except -1
    cdef int after_put(self, bint waited) except -1
    cdef bint wait_for_room(self, Outcome outcome, uint64_t slots, int64_t deadline, Participant* ledger) except -1
    cdef void sleep_for_items(self, int64_t limit_ns) noexcept nogil
    cdef int raise_corrupt(self) except -1
    cdef RingLease* new_lease(self) except NULL
    cdef bint is_unreleased(self, uint64_t position) noexcept nogil
    cdef uint64_t count_left(self) noexcept
    cdef bint is_discarded(self) noexcept
    cdef bint looks_gettable(self) noexcept
    cdef bint recovery_is_due(self, Outcome outcome) noexcept
    cdef bint may_come_again(self) noexcept
    cdef bint has_more_to_recover(self) noexcept
    cdef void notify_items(self) noexcept
    cdef void notify_room(self) noexcept

    # what is the same for all
    cdef uint64_t slots_of(self, uint64_t length) noexcept
    cdef Gathered gather(self, object items)
    cdef object _put_array(self, object array, int64_t deadline)
    cdef object _put_gathered(self, Gathered batch, int64_t deadline)
    cdef bint _go_on_putting(
        self, Outcome outcome, uint64_t total, uint64_t slots, int64_t deadline, Participant* ledger
    ) except -1
    cdef bint wait_for_items(self, int64_t deadline, Participant* ledger) except -1
    cdef bint after_wait(self, Participant* ledger) except -1
