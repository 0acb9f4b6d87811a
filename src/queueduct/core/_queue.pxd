from libc.stdint cimport int64_t, uint64_t

from queueduct.core.interface._calls cimport (  # also for the kinds, which cimport all they need from here
    AT_ONCE, FOREVER, TIMED_OUT, Backend, checked_int, checked_positions, checked_sizes, computed_deadline, deadline_of,
    is_negative, remaining_ns, sound, waited_until,
)

cdef uint64_t forks               # how many forks there were between the first process and this one
cdef int refuse_in_child(object kind, uint64_t born) except -1
cdef int raise_no_truth(object kind) except -1
cdef int raise_no_name(object kind, object given) except -1

cdef extern from "native/_handover.hpp" namespace "queueduct":
    cdef cppclass BackendHandover:
        pass


cdef class Queue:
    cdef Backend backend          # read with held(): another thread may close the handle
    cdef BackendHandover handover
    cdef Backend retired          # in a forked child: the parent's
    cdef object segment           # None if the queue lives in this process
    cdef object waiters           # asyncio's, made at its first use
    cdef object __weakref__

    cdef Backend attach(self, object opened)
    cdef int after_attach(self, Backend backend, object opened) except -1
    cdef object why_full(self, Backend backend, double waited)
    cdef int stay_in_process(self) except -1
    cdef int refuse(self) except -1

cdef extern from "native/_handover.hpp" namespace "queueduct":
    Backend held(Queue)
    bint replace_backend(Queue, Backend before, Backend after)
    bint install_backend(Queue, Backend unmade, Backend backend)

cdef int install(Queue queue, Backend backend) except -1


cdef inline Queue not_none(Queue queue):
    """Returns the queue that a method of Python was called with. Cython's types let None pass."""
    if queue is None:
        raise TypeError("this method needs a queue, and got None: call it of a queue")
    return queue


cdef inline Backend open_backend(Queue queue):
    """Returns the backend of a handle. Raises if the handle is closed."""
    cdef Backend backend = held(not_none(queue))
    backend.check_open()
    return backend
