from libc.stdint cimport int64_t, uint32_t, uint64_t

from penstock._events_body cimport EventsBody
from penstock._events_native cimport Cursor, Found, ReaderLine, Run


cdef class Reader:
    cdef EventsBody body
    cdef object queue             # the handle: it stays open as long as a reader of it lives
    cdef object waiters           # asyncio's, made at its first use
    cdef object own_name          # None: ephemeral
    cdef Cursor cursor
    cdef ReaderLine* line
    cdef uint32_t number
    cdef uint32_t generation      # of forks
    cdef bint is_durable
    cdef bint is_closed
    cdef bint is_busy             # a thread is in the middle of a session
    cdef uint64_t session_end     # what iteration has seen
    cdef object __weakref__

    cdef int check_usable(self) except -1
    cdef int check(self) except -1
    cdef object get_one(self, int64_t deadline, bint goes_on)
    cdef object fetch(self, uint64_t limit, uint64_t end)
    cdef object fetch_all_records(self, uint64_t limit, uint64_t end)
    cdef object fetch_all_items(self, uint64_t limit, uint64_t end)
    cdef bint stopped(self, Found found, int64_t deadline) except -1
    cdef int rejoin(self) except -1
    cdef bint is_ours(self) noexcept
    cdef int release(self) except -1

cdef Reader make_reader(object queue, EventsBody body, object name, object start)
