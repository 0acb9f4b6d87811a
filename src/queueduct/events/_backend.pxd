from libc.stdint cimport int64_t, uint32_t, uint64_t

from queueduct.events._log cimport LogBackend
from queueduct.events._native cimport Appended
from queueduct.native._native cimport Buffer, ProducerLine


cdef class EventsBackend(LogBackend):
    cdef int64_t synced_ns           # when the last sync on demand began

    cdef uint64_t append(
        self, const void* records, const Buffer* items, uint64_t count, uint64_t in_all, int64_t deadline,
        ProducerLine* once,
    ) except? 0xFFFFFFFFFFFFFFFF
    cdef Appended _append_locked(
        self, const void* records, const Buffer* items, uint64_t total, uint64_t count, ProducerLine* once,
        uint64_t* put,
    ) noexcept nogil
    cdef bint wait_for_room(
        self, Appended outcome, int error, bint is_first, int64_t deadline, uint32_t* ticket, bint is_first_wait
    ) except -1
    cdef uint64_t _bytes_of(self, const Buffer* items, uint64_t begin, uint64_t count) noexcept
    cdef int raise_not_written(self, int error) except -1
    cdef int after_put(self) except -1
    cdef int write_to_disk(self) except -1
    cdef int settle_boot(self) except -1
    cdef int _settle_under_lock(self) except -1
    cdef int check_epoch(self, uint64_t position, object epoch) except -1
    cdef uint64_t durable_end(self, bint sync) except? 0xFFFFFFFFFFFFFFFF
