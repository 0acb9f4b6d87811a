# cython: language_level=3, binding=False, freethreading_compatible=True
"""Leases of every kind: items that a consumer has claimed, and that stay in the queue until it releases them.

A lease is taken, copied and ended here, for all kinds. Each kind has a subclass of Holding with its native calls.
"""

cimport cython
from libc.stdint cimport int64_t, uint64_t

from queueduct.core._backend cimport SegmentBackend, named_backend
from queueduct.core._queue cimport (
    Backend, checked_int, checked_positions, computed_deadline, open_backend, sound, waited_until,
)
from queueduct.items._item_kinds cimport OBJECT, RECORD
from queueduct.native._native cimport array_data, import_array, is_broken

import numpy

from queueduct.errors import QueueClosed
from queueduct.items import types as item_types
from queueduct.lease import Lease

import_array()


@cython.no_gc_clear  # its end needs the backend
cdef class Holding:

    def __cinit__(self, SegmentBackend backend):
        self.backend = backend

    cdef int begin(self, uint64_t limit) except -1: return 0
    cdef int64_t try_claim(self, bint waited) except -1: return 0
    cdef bint wait(self, int64_t deadline) except -1: return False
    cdef bint is_ours(self) noexcept: return False
    cdef uint64_t position_of(self, uint64_t i) noexcept: return 0
    cdef uint64_t deliveries_of(self, uint64_t i) noexcept: return 0
    cdef bytes copied(self, uint64_t i): return b""
    cdef void copy_records(self, char* to) noexcept nogil: pass
    cdef bint end(self, uint64_t released) noexcept nogil: return True
    cdef int after_end(self, bint is_any, bint is_all) except -1: return 0
    cdef list unreleased(self, list asked): return []
    cdef object why_empty(self, double waited): return self.backend.why_empty(waited)

    cdef object take(self, object name, object max_items, object block, object timeout):
        """Returns a Lease of at least one item, dead consumers' items first."""
        cdef int64_t deadline = computed_deadline(block, timeout)
        cdef object limit = checked_int("max_items", max_items)
        cdef int64_t count
        if limit < 1:
            raise ValueError(f"max_items must be at least 1: max_items={max_items}")
        self.begin(min(limit, 1 << 62))
        count = self.try_claim(False)
        while count == 0:
            if not self.wait(deadline):
                raise self.why_empty(waited_until(deadline, timeout))
            self.has_waited = True
            count = self.try_claim(True)
        self.count = count
        found = self._items()
        if is_broken(self.backend.guard):
            self.backend.raise_corrupt()
        return Lease(
            found, self._positions(), self, name,
            is_redelivered=bool(self.is_redelivered), deliveries=self._deliveries(),
        )

    cdef object _items(self):
        """Returns copies of the items. An error here gives the items back."""
        cdef object target
        cdef char* to
        cdef uint64_t i
        cdef list found = []
        if self.backend.item_kind == RECORD:
            target = numpy.empty(self.count, dtype=self.backend.dtype)
            to = <char*>array_data(target)
            with nogil:
                self.copy_records(to)
            return target
        for i in range(self.count):
            target = self.copied(i)
            found.append(item_types.decode_object(target) if self.backend.item_kind == OBJECT else target)
        return found

    cdef object _positions(self):
        cdef uint64_t i
        cdef object positions = numpy.empty(self.count, dtype=numpy.int64)
        cdef int64_t* to = <int64_t*>array_data(positions)
        for i in range(self.count):
            to[i] = self.position_of(i)
        return positions

    cdef object _deliveries(self):
        cdef uint64_t i
        cdef object deliveries = numpy.empty(self.count, dtype=numpy.int64)
        cdef int64_t* to = <int64_t*>array_data(deliveries)
        for i in range(self.count):
            to[i] = self.deliveries_of(i)
        return deliveries

    def release(self, uint64_t count):
        """Releases the first ``count`` items for good, and gives the rest back."""
        cdef bint is_all = count == self.count
        cdef bint is_sound
        if not self.is_ours():
            raise QueueClosed(f"this lease of {self.backend.told} is another process's: a fork does not share it")
        with nogil:
            is_sound = self.end(count)
        self.count = 0
        if not is_sound or is_broken(self.backend.guard):
            self.backend.raise_corrupt()
        self.after_end(count != 0, is_all)
        self.backend.check_sound()


@cython.binding(True)
class LeaseMethods:
    """The methods of every kind of queue with leases; its ``_holding`` is the kind's Holding."""

    __slots__ = ()

    def lease(self, max_items, block=True, timeout=None):
        """Claim at least one item and at most ``max_items``, and keep them in the queue until they are released.

        ``with q.lease(1000) as lease:`` has ``lease.items`` and ``lease.positions``, and releases them at its end. If
        it ends by an exception, or its process dies, another consumer gets them, at the same positions. Raises Empty
        or ShutDown, as a get.

        >>> q = queueduct.BoundedQueue.create(None, item=object)
        >>> q.put("a")
        >>> with q.lease(100) as lease:
        ...     print(lease.items, lease.positions)
        ['a'] [0]
        """
        cdef SegmentBackend backend = named_backend(self, "leases")
        cdef Holding holding = type(self)._holding(backend)
        return holding.take(self.name, max_items, block, timeout)

    def alease(self, max_items, timeout=None):
        """``async with q.alease(1000) as lease:``, or ``lease = await q.alease(1000)``: lease for asyncio.

        A cancelled alease has taken nothing.

        >>> import asyncio
        >>> q = queueduct.BoundedQueue.create(None)
        >>> q.put(b"a")
        >>> async def work():
        ...     async with q.alease(100) as lease:
        ...         return lease.items
        >>> asyncio.run(work())
        [b'a']
        """
        from queueduct.core.aio import Borrowing  # here, as in Queue
        named_backend(self, "leases")
        return Borrowing(self._bridge().take, self.lease, (max_items, False), timeout)

    def join(self, timeout=None):
        """Wait until every item that was put is done, at most ``timeout`` seconds. Returns False if the time is up.

        An item is done when it is out of the queue and no consumer has it on lease; what a dead consumer had is
        delivered again first. In a queue between threads it is done when ``task_done`` was called for it. A queue that
        was shut down with ``immediate`` has nothing to wait for; one between threads waits for what was got before.

        >>> q = queueduct.BoundedQueue.create(None)
        >>> q.put(b"a")
        >>> q.join(timeout=0)
        False
        """
        cdef Backend backend = open_backend(self)
        cdef bint is_done = backend.wait_done(computed_deadline(True, timeout))
        return sound(backend, is_done)

    def task_done(self):
        """Report an item of a queue between threads as done, as queue.Queue.task_done. ValueError if none is left.

        Of a queue in shared memory it does nothing: what get() has returned is out of it, and join() does not wait for
        it. There join() waits for leases, whose release is the report.

        >>> q = queueduct.BoundedQueue(8)
        >>> q.put("a")
        >>> item = q.get()
        >>> q.task_done()
        >>> q.join()
        True
        """
        cdef Backend backend = open_backend(self)
        backend.task_done()

    def unreleased(self, positions):
        """Returns those of the positions that a consumer has claimed and no consumer has released yet.

        >>> q = queueduct.BoundedQueue.create(None)
        >>> q.put_many([b"a", b"b", b"c"])
        3
        >>> lease = q.lease(2)
        >>> q.unreleased([0, 1, 2])
        [0, 1]
        """
        cdef SegmentBackend backend = named_backend(self, "leases")
        cdef Holding holding = type(self)._holding(backend)
        return sound(backend, holding.unreleased(checked_positions(positions)))
