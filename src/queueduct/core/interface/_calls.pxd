from libc.stdint cimport int64_t, uint64_t

from queueduct.native._native cimport Flag

cdef object TIMED_OUT             # what get and get_many of a backend return when the time is up
cdef int64_t FOREVER, AT_ONCE     # deadlines

cdef int64_t computed_deadline(bint block, object timeout) except -1
cdef bint is_negative(object timeout) except -1
cdef int64_t remaining_ns(int64_t deadline)
cdef double waited_until(int64_t deadline, object timeout) except -1
cdef object checked_int(str label, object value)
cdef dict checked_sizes(dict sizes)
cdef list checked_positions(object positions)


cdef inline int64_t deadline_of(object block, object timeout) except -1:
    """Returns when the call gives up, on the monotonic clock."""
    return FOREVER if block is True and timeout is None else computed_deadline(block, timeout)


cdef class Backend:
    """The working part of a handle. A thread in a call holds a reference, so its memory outlives a close()."""
    cdef object name              # the queue's, or None (an object, not a str: so the class has garbage collection)
    cdef object label             # how messages name it
    cdef object told              # the same at any place of a sentence
    cdef object nothing           # what QueueEmpty is made of if the call has not waited
    cdef Flag is_closing          # the handle was closed: a thread that waits must return
    cdef bint is_read_only        # of a watch: nothing of the segment may be written
    cdef object refusal           # in a forked child's copy of a queue without a name: why it refuses; else None

    cdef int put(self, object item, int64_t deadline) except -1
    cdef object get(self, int64_t deadline)
    cdef object put_many(self, object items, int64_t deadline)
    cdef object get_many(self, uint64_t limit, int64_t deadline)
    cdef object batch(self, object items)
    cdef bint wait_done(self, int64_t deadline) except -1
    cdef int task_done(self) except -1
    cdef int wait(self, bint for_items, uint64_t slots, int64_t deadline) except -1
    cdef uint64_t slots_for(self, object item) except 0
    cdef object size(self)
    cdef int shut_down(self, bint immediate) except -1
    cdef void wake_everybody(self) noexcept
    cdef int check_open(self) except -1
    cdef int check_sound(self) except -1
    cdef int call_it(self, object name) except -1
    cdef object count_leased(self)
    cdef object count_others(self)
    cdef object why_empty(self, double waited)
    cdef object why_full(self, double waited)


cdef Backend closed_backend(object name)


cdef inline object sound(Backend backend, object value):
    """Returns a value that was read from shared memory. Raises if a process has truncated that memory."""
    backend.check_sound()
    return value
