# cython: language_level=3, binding=False, freethreading_compatible=True
"""The surface that every queue has: who calls what, how long they wait, and how it ends.

A kind derives from Queue and gives the cdef methods; it never sees a timeout, only a deadline.
"""

from libc.stdint cimport int64_t, uint64_t

from penstock._native cimport monotonic_ns, park_limit_ns

from penstock import _aio, segment
from penstock.errors import Empty, Full, QueueClosed, ShutDown

NOTHING = object()
FOREVER = 0x7FFFFFFFFFFFFFFF
AT_ONCE = 1


cdef inline int64_t deadline_of(object block, object timeout) except -1:
    """When to give up, on the monotonic clock."""
    return FOREVER if block is True and timeout is None else computed_deadline(block, timeout)


cdef int64_t computed_deadline(bint block, object timeout) except -1:
    cdef double seconds
    if not block:
        return AT_ONCE
    if timeout is None:
        return FOREVER
    seconds = timeout
    if not seconds >= 0:
        raise ValueError(f"timeout must be a non-negative number or None: timeout={timeout!r}")
    if seconds == 0:
        return AT_ONCE
    return FOREVER if seconds > 1e9 else monotonic_ns() + <int64_t>(seconds * 1e9)


cdef int64_t remaining_ns(int64_t deadline):
    """What is left; for FOREVER as long as anybody sleeps at a time."""
    return park_limit_ns if deadline == FOREVER else deadline - monotonic_ns()


cdef object checked_int(str label, object value):
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{label} must be an int: {label}={value!r}")
    return value.__index__()


cdef class Queue:
    """What all queues have in common."""

    def __cinit__(self, *args, **kwargs):
        self.is_closed = True        # until a kind has made it a queue

    # -- put and get ------------------------------------------------------------------------------------

    def put(self, item, block=True, timeout=None):
        """Put an item; wait for room if ``block``, at most ``timeout`` seconds. Raises Full or ShutDown."""
        cdef int64_t deadline = deadline_of(block, timeout)
        cdef int is_in
        enter(self)
        try:
            is_in = self._put(item, deadline)
        finally:
            self._leave()
        if not is_in:
            raise Full

    def put_nowait(self, item):
        """``put(item, block=False)``."""
        self.put(item, False)

    def try_put(self, item):
        """Put an item if there is room now. True if it is in; never waits."""
        enter(self)
        try:
            return self._put(item, AT_ONCE) == 1
        finally:
            self._leave()

    def get(self, block=True, timeout=None):
        """Get an item; wait for one if ``block``, at most ``timeout`` seconds. Raises Empty or ShutDown."""
        cdef int64_t deadline = deadline_of(block, timeout)
        cdef object item
        enter(self)
        try:
            item = self._get(deadline)
        finally:
            self._leave()
        if item is NOTHING:
            raise Empty
        return item

    def get_nowait(self):
        """``get(block=False)``."""
        return self.get(False)

    def try_get(self, default=None):
        """Get an item if there is one now, else ``default``; never waits."""
        cdef object item
        enter(self)
        try:
            item = self._get(AT_ONCE)
        finally:
            self._leave()
        return default if item is NOTHING else item

    def put_many(self, items, block=True, timeout=None):
        """Put items in order; returns how many are in.

        Waits until all are in, at most ``timeout`` seconds. Raises Full, or ShutDown, only if none is in.
        """
        cdef int64_t deadline = deadline_of(block, timeout)
        enter(self)
        try:
            return self._put_many(items, deadline)
        finally:
            self._leave()

    def get_many(self, max_items, block=True, timeout=None):
        """Get at least one item and at most ``max_items``, without waiting for more than the first.

        A list, or for records one array. Raises Empty or ShutDown.
        """
        cdef int64_t deadline = deadline_of(block, timeout)
        cdef object found
        limit = checked_int("max_items", max_items)
        if limit < 1:
            raise ValueError(f"max_items must be at least 1: max_items={max_items}")
        enter(self)
        try:
            found = self._get_many(min(limit, 1 << 62), deadline)
        finally:
            self._leave()
        if found is NOTHING:
            raise Empty
        return found

    def __iter__(self):
        """Items until the queue is shut down and empty."""
        return self

    def __next__(self):
        try:
            return self.get()
        except ShutDown:
            raise StopIteration from None

    # -- asyncio ----------------------------------------------------------------------------------------

    def aput(self, item, timeout=None):
        """``await q.aput(item)``: put without blocking the event loop."""
        return self._bridge().put(item, timeout)

    def aget(self, timeout=None):
        """``await q.aget()``: get without blocking the event loop. A cancelled aget takes no item."""
        return self._bridge().get(timeout)

    def _bridge(self):
        if self.waiters is None:
            self.waiters = _aio.Bridge(self)
        return self.waiters

    def _wait_ready(self, for_items, seconds):
        """Until there may be an item (or room), or the time is up. Takes nothing."""
        enter(self)
        try:
            self._wait(for_items, computed_deadline(True, seconds))
        finally:
            self._leave()

    # -- looks ------------------------------------------------------------------------------------------

    @property
    def name(self):
        """The queue's name; None within a process."""
        return None if self.segment is None else self.segment.name

    @property
    def item(self):
        """What it carries: bytes, object or a dtype."""
        return object if self.segment is None else self.segment.item.spec

    @property
    def closed(self):
        """Was this handle closed?"""
        return self.is_closed

    def qsize(self):
        """How many items there are: exact when nobody is at work on it."""
        enter(self)
        try:
            return self._size()
        finally:
            self._leave()

    def empty(self):
        """Is there nothing to get? A hint, as with every queue that others use."""
        return self.qsize() == 0

    def __len__(self):
        return self.qsize()

    def __bool__(self):
        return True

    def __repr__(self):
        cdef str state = "closed" if self.is_closed else f"capacity={self.capacity}, size={self.qsize()}"
        return f"<penstock.{type(self).__name__} {self._label()} {state}>"

    cdef object _label(self):
        return repr(self.segment.name) if self.segment is not None else "without a name"

    # -- the end ----------------------------------------------------------------------------------------

    def shutdown(self, immediate=False):
        """No more puts; gets go on until the queue is empty, or with ``immediate`` end at once.

        As queue.Queue.shutdown of Python 3.13. Everybody who waits is woken.
        """
        enter(self)
        try:
            self._end(immediate)
        finally:
            self._leave()

    def close(self):
        """Give up this handle. The queue stays, for others and by its name; waiting threads get QueueClosed."""
        self.guests.enter()
        if not self.is_closed:
            self.is_closed = True
            self._wake_everybody()
        self._leave()

    cdef int _leave(self) except -1:
        """The last one out of a closed handle gives its memory up."""
        if self.guests.leave() == 0 and self.is_closed:
            self._free()
            if self.segment is not None:
                self.segment.close()
        return 0

    cdef int _check_open(self) except -1:
        if self.is_closed:
            raise QueueClosed(f"this handle of the queue {self._label()} is closed; open it again")
        return 0

    def unlink(self):
        """Remove the queue's name; see penstock.unlink."""
        if self.segment is None:
            raise ValueError("a queue without a name has nothing to unlink")
        segment.unlink(self.segment.name, folder=self.segment.path.parent)

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.close()

    def __reduce__(self):
        if self.segment is None:
            raise TypeError(
                "a queue without a name lives in one process and cannot be pickled; "
                f"use {type(self).__name__}.create(name, ...) to share one between processes"
            )
        from penstock.opening import reopen
        return reopen, (self.segment.name, str(self.segment.path.parent), self.segment.segment_id, type(self))

    # -- what each kind gives ---------------------------------------------------------------------------

    cdef int _put(self, object item, int64_t deadline) except -1:
        """1: it is in. 0: the time is up."""
        raise TypeError(f"{type(self).__name__} cannot put")

    cdef object _get(self, int64_t deadline):
        """An item, or NOTHING when the time is up."""
        raise TypeError(f"{type(self).__name__} cannot get")

    cdef object _put_many(self, object items, int64_t deadline):
        """How many are in."""
        raise TypeError(f"{type(self).__name__} cannot put")

    cdef object _get_many(self, uint64_t limit, int64_t deadline):
        """Items, or NOTHING when the time is up."""
        raise TypeError(f"{type(self).__name__} cannot get")

    cdef int _wait(self, bint for_items, int64_t deadline) except -1:
        """Until there may be an item, or room."""
        return 0

    cdef object _size(self):
        return 0

    cdef int _end(self, bint immediate) except -1:
        """Shut down."""
        return 0

    cdef void _wake_everybody(self) noexcept:
        """So that those who wait see that the handle is closed."""

    cdef void _free(self) noexcept:
        """Give up memory and locks. Nobody is inside; may be called twice."""
