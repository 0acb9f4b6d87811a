# cython: language_level=3, binding=False, freethreading_compatible=True
"""Gets of pickled objects from an overwriting queue. Unpickling runs code, so messages are leased until it is done.

If an interrupt or a kill ends that code, all messages of the call are redelivered.
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t, uint32_t, uint64_t

from queueduct.native._native cimport is_broken
from queueduct.items._objects cimport unpickle_all
from queueduct.overwriting._native cimport *


@cython.final
@cython.no_gc_clear  # its end needs the backend
cdef class Kept:

    cdef int begin(self, SegmentBackend backend, OverwritingShared* queue, uint64_t limit) except -1:
        self.backend = backend
        self.queue = queue
        self.limit = min(limit, queue.leased_messages().cells())
        self.kept = <LeasedMessage*>PyMem_Malloc(self.limit * sizeof(LeasedMessage))
        if self.kept is NULL:
            raise MemoryError()
        self.lease = new OverwritingLease(queue[0])
        return 0

    def __dealloc__(self):
        if self.lease is not NULL and self.lease.is_ours():
            self.give_back(0)
        del self.lease
        PyMem_Free(self.kept)

    cdef int allocate(self):
        """Allocates memory for the cells. Returns 0 or an error number."""
        cdef int error
        with nogil:
            error = self.lease.allocate()
        return error

    cdef Claim claim(self, uint32_t line, int64_t limit_ns) noexcept:
        """Returns done if it has claimed some messages, full if no cell is free. Otherwise as a get."""
        cdef Claim claim = Claim.empty
        cdef bint is_discarded = self.queue.ring().is_discarded()
        self.lease.borrow(line)
        if self.backend.gave_back and not is_discarded:
            self.count = self.lease.take_over(self.kept, self.limit)
            self.backend.gave_back = self.count != 0
        if self.count == 0:
            claim = self.lease.try_claim(self.kept, self.limit, limit_ns, self.count)
        if self.count == 0 and claim != Claim.corrupt and not is_discarded:
            self.count = self.lease.take_over(self.kept, self.limit)
        if self.count == 0:
            return claim
        self.lease.set_apart()  # code that runs from now on, even a finalizer's, may use the queue
        return Claim.done

    cdef list converted(self, uint64_t item_bytes):
        """Returns objects up to one that cannot be unpickled; None in a forked child, or if a page was truncated."""
        cdef list found = []
        cdef uint64_t i
        cdef uint64_t over = 0
        for i in range(self.count):
            found.append(
                PyBytes_FromStringAndSize(<char*>self.queue.leased_messages().data(self.kept[i].cell), item_bytes)
            )
        if is_broken(self.backend.guard):
            return None
        try:
            unpickle_all(found, &over)
        finally:
            if not self.lease.is_ours():
                over = 0
            elif over == self.count:
                self.lease.finish(self.kept, over)
            elif over:
                self.give_back(over)  # the rest
        return found if over else None

    cdef void give_back(self, uint64_t released) noexcept:
        """Gives back all but the first ``released``. This handle gets them next; others when they find no new one."""
        self.lease.release(self.kept, released)
        self.lease.let_go()
        self.backend.gave_back = True
        self.queue.items().notify()


@cython.final
cdef class Unread:
    """Pickles that are out of the queue, and that only this handle has. Keeping one more needs no memory."""

    cdef bint has_some(self, uint32_t forks) except -1:
        """Returns true if there are pickles. After a fork a child has none of its parent's."""
        with cython.critical_section(self):
            if self.forks != forks:
                self.first = None
                self.forks = forks
        return self.first is not None

    cdef list take(self):
        """Removes and returns the first node, or None. Its [1] is no longer its next one."""
        cdef list node
        with cython.critical_section(self):
            node = self.first
            if node is not None:
                self.first = node[1]
        return node

    cdef int keep(self, list node) except -1:
        """Adds a node before all others."""
        with cython.critical_section(self):
            node[1] = self.first
            self.first = node
        return 0

    cdef uint64_t count(self) except? 0:
        cdef uint64_t found = 0
        cdef list node
        with cython.critical_section(self):
            node = self.first
            while node is not None:
                found += 1
                node = node[1]
        return found
