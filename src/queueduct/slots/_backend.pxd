cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from queueduct.core._backend cimport SegmentBackend
from queueduct.native._native cimport Buffer
from queueduct.slots._native cimport Lease, SlotOutcome, Slots, SlotsQueue


@cython.final
cdef class SlotsBackend(SegmentBackend):
    cdef SlotsQueue* queue
    cdef Slots* slots
    cdef uint64_t slot_bytes
    cdef uint32_t takes              # so far: every TAKES_BETWEEN_RECOVERIES-th may recover

    cdef uint32_t me(self) except 0
    cdef int hold(self, Lease* lease, int64_t deadline) except -1
    cdef int publish(self, Lease* lease, uint64_t length, bint waited) except -1
    cdef int published(self, SlotOutcome outcome, bint waited) except -1
    cdef int take(self, Lease* lease, int64_t deadline) except -1
    cdef int leave(self, Lease* lease, bint waited) except -1
    cdef int put_back(self, Lease* lease) except -1
    cdef int _put_bytes(self, const void* data, uint64_t length, int64_t deadline) except -1
    cdef int fill(self, Lease* lease, const void* data, uint64_t length) except -1
    cdef object copy_out(self, const Lease* lease)
    cdef object decoded(self, object copied)
    cdef int end_one(self, Lease* lease, uint32_t forks, object copied, object error) except -1
    cdef int _take_some(self, Lease* leases, uint64_t limit, uint64_t* count, int64_t deadline) except -1
    cdef object _converted(self, Lease* leases, uint64_t count, uint64_t* over)
    cdef int _end_some(self, Lease* leases, uint64_t count, uint64_t released, bint waited) except -1
    cdef bint go_on(self, SlotOutcome outcome, bint for_items, int64_t deadline, bint is_first) except -1
