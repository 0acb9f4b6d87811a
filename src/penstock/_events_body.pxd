from libc.stdint cimport int64_t, uint32_t, uint64_t
from libcpp.vector cimport vector

from penstock._events_native cimport (
    Appended, EventLog, EventsMap, EventsQueue, Found, ProducerLine,
)
from penstock._mapped cimport MappedBody
from penstock._native cimport Buffer


cdef class EventsBody(MappedBody):
    cdef EventsQueue* queue
    cdef EventLog* log
    cdef const EventsMap* map
    cdef bint raises_when_full
    cdef bint syncs_always
    cdef bint is_on_disk
    cdef bint is_durable             # on a disk, and to outlive the machine
    cdef uint64_t arena_offset
    cdef vector[void*] forgotten     # references that the log has let go: dropped when nothing is locked
    cdef object __weakref__

    cdef int enter(self, int64_t deadline) except -1
    cdef int leave(self) except -1
    cdef void abandon_reader(self, uint32_t number) noexcept
    cdef uint32_t line(self) except? 0xFFFFFFFF
    cdef int raise_corrupt(self) except -1
    cdef int check_found(self, Found found) except -1
    cdef int check_count(self, uint64_t records) except -1
    cdef int check_length(self, uint64_t length) except -1
    cdef uint64_t append(
        self, const void* records, const Buffer* items, uint64_t count, uint64_t in_all, int64_t deadline,
        ProducerLine* once,
    ) except? 0xFFFFFFFFFFFFFFFF
    cdef Appended _append_locked(
        self, const void* records, const Buffer* items, uint64_t total, uint64_t count, ProducerLine* once,
        uint64_t* put,
    ) noexcept nogil
    cdef bint wait_for_room(self, Appended outcome, bint is_first, int64_t deadline, uint32_t* ticket) except -1
    cdef int after_put(self) except -1
    cdef int write_to_disk(self) except -1
