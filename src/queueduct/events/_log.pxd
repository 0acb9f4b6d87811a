from libc.stdint cimport int64_t, uint32_t, uint64_t
from libcpp.vector cimport vector

from queueduct.events._native cimport EventLog, EventsMap, EventsQueue, ReadResult
from queueduct.core._backend cimport SegmentBackend


cdef class LogBackend(SegmentBackend):
    cdef EventsQueue* queue
    cdef EventLog* log
    cdef const EventsMap* map
    cdef bint raises_when_full
    cdef bint syncs_always
    cdef bint is_on_disk
    cdef bint is_durable             # on a disk, and synced
    cdef uint64_t arena_offset
    cdef vector[void*] forgotten     # references that the log has removed: dropped after the lock is released
    cdef object __weakref__

    cdef int enter(self, int64_t deadline) except -1
    cdef int acquire(self, int64_t deadline, bint while_open) except -1
    cdef int leave(self) except -1
    cdef int leave_after_put(self, uint64_t items, uint64_t length) except -1
    cdef void abandon_reader(self, uint32_t number) noexcept
    cdef int raise_unreadable(self) except -1
    cdef int check_found(self, ReadResult found) except -1
    cdef int check_count(self, uint64_t records) except -1
