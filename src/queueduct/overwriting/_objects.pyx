# cython: language_level=3, binding=False, freethreading_compatible=True
"""Gets of pickled objects from an overwriting queue: unpickling runs code, and what is not unpickled yet is on lease.

So whatever ends that code, an interrupt or a kill, leaves all messages of the call to be delivered again.
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
        """Memory for the cells; 0 or an error number."""
        cdef int error
        with nogil:
            error = self.lease.allocate()
        return error

    cdef Claim claim(self, uint32_t line, int64_t limit_ns) noexcept:
        """done: there are some, and they are ours. full: no free cell. Otherwise as a get."""
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
        self.lease.set_apart()  # what runs from here on, be it the collector's, may use the queue
        return Claim.done

    cdef list converted(self, uint64_t item_bytes):
        """As far as one that cannot be unpickled; None: they are not ours any more, or what they are on was truncated."""
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
                self.give_back(over)  # what is not over
        return found if over else None

    cdef void give_back(self, uint64_t released) noexcept:
        """All but the first so many: this handle gets them before anything else, others when they find nothing."""
        self.lease.release(self.kept, released)
        self.lease.let_go()
        self.backend.gave_back = True
        self.queue.items().notify()


@cython.final
cdef class Unread:
    """Pickles that are out of the queue, and that only this handle has. To keep one more takes no memory."""

    cdef bint has_some(self, uint32_t forks) except -1:
        """In a process that is so many forks old: a child has none of its parent's."""
        with cython.critical_section(self):
            if self.forks != forks:
                self.first = None
                self.forks = forks
        return self.first is not None

    cdef list take(self):
        """The first as [pickle, what is no longer its next]; None if there is none."""
        cdef list node
        with cython.critical_section(self):
            node = self.first
            if node is not None:
                self.first = node[1]
        return node

    cdef int keep(self, list node) except -1:
        """Before all others."""
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
