from libc.stdint cimport int64_t, uint64_t

cdef object NOTHING               # what get and get_many of a body give when the time is up
cdef int64_t FOREVER, AT_ONCE     # deadlines

cdef int64_t computed_deadline(bint block, object timeout) except -1
cdef int64_t remaining_ns(int64_t deadline)
cdef object checked_int(str label, object value)
cdef list checked_positions(object positions)


cdef class Body:
    """The working part of a handle. Who is in a call holds a reference, so its memory outlives a close()."""
    cdef object label             # for messages: the queue's name, quoted (an object: the collector must see us)
    cdef bint is_closing          # the handle was closed: who waits in here must leave

    cdef int put(self, object item, int64_t deadline) except -1
    cdef object get(self, int64_t deadline)
    cdef object put_many(self, object items, int64_t deadline)
    cdef object get_many(self, uint64_t limit, int64_t deadline)
    cdef int wait(self, bint for_items, uint64_t slots, int64_t deadline) except -1
    cdef uint64_t slots_for(self, object item) except 0
    cdef object size(self)
    cdef int end(self, bint immediate) except -1
    cdef void wake_everybody(self) noexcept
    cdef int check_open(self) except -1


cdef class Queue:
    cdef Body body
    cdef Body retired             # without a GIL: what somebody may just have fetched
    cdef object segment           # None: lives in this process
    cdef object waiters           # asyncio's, made at its first use
    cdef object __weakref__
