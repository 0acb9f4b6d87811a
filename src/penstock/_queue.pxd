from libc.stdint cimport int64_t, uint64_t

from penstock._native cimport Guests

cdef object NOTHING               # what _get and _get_many give when the time is up
cdef int64_t FOREVER, AT_ONCE     # deadlines

cdef int64_t remaining_ns(int64_t deadline)
cdef object checked_int(str label, object value)


cdef class Queue:
    cdef Guests guests            # threads inside: the memory must stay
    cdef bint is_closed
    cdef object segment           # None: lives in this process
    cdef object waiters           # asyncio's, made at its first use
    cdef object __weakref__

    cdef int _leave(self) except -1
    cdef int _check_open(self) except -1
    cdef object _label(self)

    # What each kind gives. Called inside, between enter and leave.
    cdef int _put(self, object item, int64_t deadline) except -1
    cdef object _get(self, int64_t deadline)
    cdef object _put_many(self, object items, int64_t deadline)
    cdef object _get_many(self, uint64_t limit, int64_t deadline)
    cdef int _wait(self, bint for_items, int64_t deadline) except -1
    cdef object _size(self)
    cdef int _end(self, bint immediate) except -1
    cdef void _wake_everybody(self) noexcept
    cdef void _free(self) noexcept


cdef inline int enter(Queue queue) except -1:
    """First in, then look: who closes looks the other way round."""
    queue.guests.enter()
    if queue.is_closed:
        queue._leave()
        queue._check_open()
    return 0
