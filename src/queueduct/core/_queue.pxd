from libc.stdint cimport int64_t, uint64_t

from queueduct.native._native cimport Flag

cdef uint64_t forks               # how many forks there were between the first process and this one
cdef int refuse_in_child(object kind, uint64_t born) except -1

cdef extern from "native/_handover.hpp" namespace "queueduct":
    cdef cppclass BackendHandover:
        pass

cdef object TIMED_OUT             # what get and get_many of a backend return when the time is up
cdef int64_t FOREVER, AT_ONCE     # deadlines

cdef int64_t deadline_of(object block, object timeout) except -1
cdef int64_t computed_deadline(bint block, object timeout) except -1
cdef int64_t remaining_ns(int64_t deadline)
cdef object checked_int(str label, object value)
cdef dict checked_sizes(dict sizes)
cdef list checked_positions(object positions)


cdef class Backend:
    """The working part of a handle. A thread in a call holds a reference, so its memory outlives a close()."""
    cdef object label             # the queue's name, quoted (an object, not a str: so the class has garbage collection)
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


cdef inline object sound(Backend backend, object value):
    """Returns a value that was read from shared memory. Raises if a process has truncated that memory."""
    backend.check_sound()
    return value


cdef class Queue:
    cdef Backend backend          # read with held(): another thread may close the handle
    cdef BackendHandover handover
    cdef Backend retired          # in a forked child: the parent's
    cdef object segment           # None if the queue lives in this process
    cdef object waiters           # asyncio's, made at its first use
    cdef object __weakref__

    cdef Backend attach(self, object opened)
    cdef int after_attach(self, Backend backend, object opened) except -1
    cdef int raise_full(self, Backend backend) except -1
    cdef int stay_in_process(self) except -1
    cdef int refuse(self) except -1

cdef extern from "native/_handover.hpp" namespace "queueduct":
    Backend held(Queue)
    bint replace_backend(Queue, Backend before, Backend after)
    bint install_backend(Queue, Backend unmade, Backend backend)

cdef int install(Queue queue, Backend backend) except -1


cdef inline Backend open_backend(Queue queue):
    """Returns the backend of a handle. Raises if the handle is closed."""
    cdef Backend backend = held(queue)
    backend.check_open()
    return backend
