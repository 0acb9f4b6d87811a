cimport cython
from libc.stdint cimport int64_t, uint64_t

from penstock._batches cimport Gathered
from penstock._mapped cimport MappedBody
from penstock._native cimport Outcome, Peeked, Ring, SharedLedger, SharedQueue


@cython.final
cdef class SharedBody(MappedBody):
    cdef SharedQueue* queue
    cdef const Ring* ring

    cdef int _raise_corrupt(self) except -1
    cdef int _find_ledger(self, SharedLedger* ledger) except -1
    cdef int _check_length(self, uint64_t length) except -1
    cdef int _put_bytes(self, const void* data, uint64_t length, int64_t deadline) except -1
    cdef inline int _after_put(self, bint waited) except -1
    cdef object _put_records(self, object array, int64_t deadline)
    cdef object _put_bytes_many(self, Gathered batch, int64_t deadline)
    cdef Gathered gather(self, object items)
    cdef object _room_for(self, uint64_t length)
    cdef void* _data_of(self, object target) noexcept
    cdef int _finish(self, SharedLedger ledger, const Peeked& peeked, object target) except -1
    cdef inline int _after_get(self, bint waited) except -1
    cdef object _get_bytes(self, int64_t deadline)
    cdef object _recover(self, Outcome outcome, SharedLedger ledger, bint skipped)
    cdef object _take_records(self, uint64_t limit, SharedLedger ledger, Peeked* peeked)
    cdef object _take_bytes(self, uint64_t limit, SharedLedger ledger, Peeked* peeked, list spare)
    cdef list _decoded(self, list found)
    cdef bint _wait_for_room(self, Outcome outcome, uint64_t slots, int64_t deadline, SharedLedger* ledger) except -1
    cdef bint _wait_for_items(self, int64_t deadline, SharedLedger* ledger) except -1
    cdef bint _after_wait(self, SharedLedger* ledger) except -1
    cdef bint _go_on_putting(
        self, Outcome outcome, uint64_t total, uint64_t slots, int64_t deadline, SharedLedger* ledger
    ) except -1
