# cython: language_level=3, binding=False, freethreading_compatible=True
"""Gets of pickled objects, for every queue of rings. Unpickling runs code, so items stay claimed until it is done.

If an interrupt or a kill ends that code, all items of the call are redelivered, at their positions. For a queue within
a process, whose objects are not pickled: waiting for its tasks.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint32_t, uint64_t

from queueduct.rings.shared._backend cimport RingBackend
from queueduct.native._native cimport *
from queueduct.items._objects cimport unpickle_all, unpickle_one
from queueduct.core._queue cimport AT_ONCE, TIMED_OUT, remaining_ns

cdef enum:
    BATCH_LIMIT = 4096   # items that one claim takes at most


cdef object get_object(RingBackend backend, int64_t deadline):
    """Returns an object, or TIMED_OUT if the time is up."""
    cdef Claimed claimed
    cdef object found
    cdef bint is_over
    while True:
        is_over = False
        claimed = Claimed.__new__(Claimed)
        claimed.begin(backend, 1)
        if not claimed.claim(deadline):
            return TIMED_OUT
        try:
            found = unpickle_one(claimed.copy_of(0), &is_over)
        finally:
            claimed.end(1 if is_over else 0)
        if claimed.is_finished:
            return found
        # unpickling has forked, and this is the child: the claimed item is the parent's


cdef object get_objects(RingBackend backend, uint64_t limit, int64_t deadline):
    """Returns a list of objects, up to one that cannot be unpickled, or TIMED_OUT."""
    cdef Claimed claimed
    cdef list found
    cdef uint64_t i
    cdef uint64_t over = 0
    while True:
        claimed = Claimed.__new__(Claimed)
        claimed.begin(backend, min(limit, BATCH_LIMIT))
        if not claimed.claim(deadline):
            return TIMED_OUT
        found = []
        for i in range(claimed.count):
            found.append(claimed.copy_of(i))
        try:
            unpickle_all(found, &over)
        finally:
            claimed.end(over)
        if claimed.is_finished:
            return found


@cython.final
@cython.freelist(8)
@cython.no_gc_clear  # its end needs the backend
cdef class Claimed:
    """The items that one get has claimed. If it is dropped before its end, it gives them back."""
    cdef RingBackend backend
    cdef RingLease* lease
    cdef Redelivered* items
    cdef Redelivered one
    cdef uint64_t limit
    cdef uint64_t count
    cdef bint waited
    cdef bint is_finished

    cdef int begin(self, RingBackend backend, uint64_t limit) except -1:
        self.backend = backend
        self.limit = limit
        self.items = &self.one if limit == 1 else <Redelivered*>PyMem_Malloc(limit * sizeof(Redelivered))
        if self.items is NULL:
            raise MemoryError()
        self.lease = backend.new_lease()
        return 0

    def __dealloc__(self):
        if self.lease is not NULL and self.lease.is_ours():
            self._give_back(0)
        del self.lease
        if self.items is not &self.one:
            PyMem_Free(self.items)

    cdef void _give_back(self, uint64_t released) noexcept:
        """Gives back all but the first ``released`` items. This handle gets them next, others by a recovery."""
        self.lease.release(self.items, released, False)
        self.lease.let_go()
        self.backend.gave_back = True
        if released:
            self.backend.queue.room().notify()
        self.backend.queue.items().notify()

    cdef bint claim(self, int64_t deadline) except -1:
        """Returns false if the time is up."""
        cdef RingBackend backend = self.backend
        cdef Participant ledger
        cdef Outcome outcome
        cdef bint dead_first = backend.gave_back
        cdef bint is_redelivered
        backend.find_participant(&ledger)
        while True:
            self.lease.borrow(ledger)
            outcome = self.lease.claim(self.items, self.limit, self.count, dead_first, run_without_gil)
            if dead_first:
                is_redelivered = outcome == Outcome.done and self.lease.is_redelivered()
                backend.gave_back = is_redelivered or backend.queue.count_left() != 0
            if outcome == Outcome.done:
                break
            if not backend.go_on_getting(outcome, deadline, &ledger, not self.waited):
                return False
            self.waited = True
            dead_first = False
        self.lease.set_apart()  # code that runs from now on, even a finalizer's, may use the queue
        return True

    cdef object copy_of(self, uint64_t i):
        cdef object data = PyBytes_FromStringAndSize(NULL, self.items[i].bytes)
        self.lease.copy_out(self.items[i], PyBytes_AS_STRING(data), self.items[i].bytes)
        if is_broken(self.backend.guard):
            self.backend.raise_corrupt()
        return data

    cdef int end(self, uint64_t over) except -1:
        """Releases the first ``over`` items for good. The others are given back, now or when this object is dropped."""
        cdef RingBackend backend = self.backend
        if over == 0 or not self.lease.is_ours():
            return 0
        self.is_finished = True
        if over < self.count:
            self._give_back(over)
        else:
            self.lease.finish(self.items, over)
            backend.queue.room().notify()
        if is_broken(backend.guard):
            backend.raise_corrupt()
        if self.waited and backend.may_be_gettable():
            backend.queue.items().notify()
        return 0


# Tasks of a queue within a process.

cdef bint wait_for_tasks(Backend backend, LocalHandle* queue, int64_t deadline) except -1:
    """Waits until task_done() was called for each item that was put. Returns false if the time is up."""
    cdef uint32_t ticket
    cdef int64_t left
    while True:
        ticket = queue.tasks().announce()
        if queue.count_unfinished() == 0:
            return True
        left = 0 if deadline == AT_ONCE else remaining_ns(deadline)
        if left <= 0:
            return False
        with nogil:
            queue.tasks().park_for_all(ticket, min(left, park_limit_ns))
        PyErr_CheckSignals()
        backend.check_open()


cdef int raise_no_task(LocalHandle* queue) except -1:
    raise ValueError(
        f"task_done() must be called once for each item that was put: {queue.pushed()} items were put, and all are "
        "done; call it once after each get()"
    )
