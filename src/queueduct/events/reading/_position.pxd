from libc.stdint cimport int64_t, uint32_t, uint64_t

from queueduct.events._backend cimport EventsBackend
from queueduct.events._native cimport Cursor, ReadResult, ReaderLine
from queueduct.native._guard cimport Window
from queueduct.native._native cimport Flag, count_got


cdef class ReaderPosition:
    cdef EventsBackend backend
    cdef object queue             # the handle, which stays alive as long as a reader of it
    cdef object own_name          # None if ephemeral
    cdef Cursor cursor
    cdef ReaderLine* line
    cdef uint32_t number
    cdef uint64_t waited_at       # the position that it waited for last
    cdef uint32_t generation      # the process's number of forks when it subscribed
    cdef bint is_durable
    cdef Flag is_closed
    cdef bint is_busy             # a thread is in a session
    cdef Window window            # the mapping of its last view
    cdef tuple nothing            # what QueueEmpty was made of last, for a loop that polls
    cdef uint64_t nothing_at      # the position then
    cdef object __weakref__

    cdef int join(self, object queue, EventsBackend backend, str name, str named_start, uint64_t start) except -1
    cdef int check_usable(self) except -1
    cdef int check_process(self) except -1
    cdef int check(self) except -1
    cdef bint stopped(self, ReadResult found, int64_t deadline) except -1
    cdef int rejoin(self) except -1
    cdef object why_empty(self, double waited)
    cdef int pass_by(self, const Cursor& cursor) except -1
    cdef bint is_ours(self) noexcept
    cdef int release(self) except -1


cdef inline void count(ReaderPosition reader, uint64_t items, uint64_t length) noexcept:
    """Counts items that the reader has moved past."""
    count_got(reader.line.counters, items, length)
