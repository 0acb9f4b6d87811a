cimport cython
from libc.stdint cimport int64_t, uint64_t

from queueduct.rings._backend cimport RingBackend
from queueduct.native._native cimport Outcome, Peeked, Ring, Participant, BoundedQueueHandle


@cython.final
cdef class BoundedBackend(RingBackend):
    cdef BoundedQueueHandle* queue
    cdef const Ring* ring

    cdef int _put_bytes(self, const void* data, uint64_t length, int64_t deadline) except -1
    cdef object _room_for(self, uint64_t length)
    cdef void* _data_of(self, object target) noexcept
    cdef int _finish(self, Participant ledger, const Peeked& peeked, object target) except -1
    cdef inline int _after_get(self, bint waited) except -1
    cdef object _get_bytes(self, int64_t deadline)
    cdef object _recover(self, Outcome outcome, Participant ledger, bint skipped)
    cdef object _take_records(self, uint64_t limit, Participant ledger, Peeked* peeked)
    cdef object _take_bytes(self, uint64_t limit, Participant ledger, Peeked* peeked, list spare)
