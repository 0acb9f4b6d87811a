# cython: language_level=3, binding=False, freethreading_compatible=True
"""The surface that every queue has: who calls what, how long they wait, and how it ends.

A queue is a surface and a body. Each kind brings its bodies, which never see a timeout, only a deadline.
A closed handle has a body that refuses everything.
"""

from libc.stdint cimport int64_t, uint64_t

from penstock._native cimport has_gil, monotonic_ns, park_limit_ns

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


cdef list checked_positions(object positions):
    """As ints, without those that no item can have."""
    cdef list checked = [checked_int("position", position) for position in positions]
    return [position for position in checked if 0 <= position < 1 << 63]


cdef class Body:
    """What a kind of queue has to bring. This one refuses everything: the body of a closed handle."""

    def __cinit__(self, *args, **kwargs):
        self.label = "without a name"

    cdef int check_open(self) except -1:
        if self.is_closing:
            raise QueueClosed(f"this handle of the queue {self.label} is closed; open it again")
        return 0

    cdef int put(self, object item, int64_t deadline) except -1:
        """1: it is in. 0: the time is up."""
        return self.check_open()

    cdef object get(self, int64_t deadline):
        """An item, or NOTHING when the time is up."""
        self.check_open()

    cdef object put_many(self, object items, int64_t deadline):
        """How many are in."""
        self.check_open()

    cdef object get_many(self, uint64_t limit, int64_t deadline):
        """Items, or NOTHING when the time is up."""
        self.check_open()

    cdef int wait(self, bint for_items, uint64_t slots, int64_t deadline) except -1:
        """Until there may be an item, or so many free slots; takes nothing, and needs no line."""
        return self.check_open()

    cdef uint64_t slots_for(self, object item) except 0:
        """How many slots an item takes."""
        self.check_open()
        return 1

    cdef object size(self):
        """How many items there are."""
        self.check_open()

    cdef int end(self, bint immediate) except -1:
        """Shut down."""
        return self.check_open()

    cdef void wake_everybody(self) noexcept:
        """So that those who wait see that the handle is closed."""


cdef Body closed_body(object label):
    cdef Body body = Body()
    body.label = label
    body.is_closing = True
    return body


cdef class Queue:
    """What all queues have in common."""

    def __cinit__(self, *args, **kwargs):
        self.body = closed_body("that was never made")  # until a kind has made it a queue

    # -- put and get ------------------------------------------------------------------------------------

    def put(self, item, block=True, timeout=None):
        """Put an item; wait for room if ``block``, at most ``timeout`` seconds. Raises Full or ShutDown."""
        cdef Body body = self.body
        if not body.put(item, deadline_of(block, timeout)):
            raise Full

    def put_nowait(self, item):
        """``put(item, block=False)``."""
        cdef Body body = self.body
        if not body.put(item, AT_ONCE):
            raise Full

    def try_put(self, item):
        """Put an item if there is room now. True if it is in; never waits."""
        cdef Body body = self.body
        return body.put(item, AT_ONCE) == 1

    def get(self, block=True, timeout=None):
        """Get an item; wait for one if ``block``, at most ``timeout`` seconds. Raises Empty or ShutDown."""
        cdef Body body = self.body
        cdef object item = body.get(deadline_of(block, timeout))
        if item is NOTHING:
            raise Empty
        return item

    def get_nowait(self):
        """``get(block=False)``."""
        cdef Body body = self.body
        cdef object item = body.get(AT_ONCE)
        if item is NOTHING:
            raise Empty
        return item

    def try_get(self, default=None):
        """Get an item if there is one now, else ``default``; never waits."""
        cdef Body body = self.body
        cdef object item = body.get(AT_ONCE)
        return default if item is NOTHING else item

    def put_many(self, items, block=True, timeout=None):
        """Put items in order; returns how many are in.

        Waits until all are in, at most ``timeout`` seconds. Raises Full, or ShutDown, only if none is in.
        """
        cdef Body body = self.body
        return body.put_many(items, deadline_of(block, timeout))

    def get_many(self, max_items, block=True, timeout=None):
        """Get at least one item and at most ``max_items``, without waiting for more than the first.

        A list, or for records one array. Raises Empty or ShutDown.
        """
        cdef Body body = self.body
        cdef object found
        limit = checked_int("max_items", max_items)
        if limit < 1:
            raise ValueError(f"max_items must be at least 1: max_items={max_items}")
        found = body.get_many(min(limit, 1 << 62), deadline_of(block, timeout))
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

    def _slots_for(self, item):
        cdef Body body = self.body
        return body.slots_for(item)

    def _wait_ready(self, for_items, slots, seconds):
        """Until there may be an item, or so many free slots, or the time is up. Takes nothing."""
        cdef Body body = self.body
        body.wait(for_items, slots, computed_deadline(True, seconds))

    # -- looks ------------------------------------------------------------------------------------------

    @property
    def name(self):
        """The queue's name; None within a process."""
        return None if self.segment is None else self.segment.name

    @property
    def kind(self):
        """The kind, as penstock.queues() names it; None within a process."""
        return None if self.segment is None else self.segment.geometry.kind

    @property
    def item(self):
        """What it carries: bytes, object or a dtype."""
        return object if self.segment is None else self.segment.item.spec

    @property
    def closed(self):
        """Was this handle closed?"""
        return self.body.is_closing

    def qsize(self):
        """How many items there are: exact when nobody is at work on it."""
        cdef Body body = self.body
        return body.size()

    def empty(self):
        """Is there nothing to get? A hint, as with every queue that others use."""
        return self.qsize() == 0

    def __len__(self):
        return self.qsize()

    def __bool__(self):
        return True

    def __repr__(self):
        cdef str state = "closed" if self.body.is_closing else f"capacity={self.capacity}, size={self.qsize()}"
        return f"<penstock.{type(self).__name__} {self.body.label} {state}>"

    # -- the end ----------------------------------------------------------------------------------------

    def shutdown(self, immediate=False):
        """No more puts; gets go on until the queue is empty, or with ``immediate`` end at once.

        As queue.Queue.shutdown of Python 3.13. Everybody who waits is woken.
        """
        cdef Body body = self.body
        body.end(immediate)

    def close(self):
        """Give up this handle. The queue stays, for others and by its name; waiting threads get QueueClosed."""
        cdef Body body = self.body
        if body.is_closing:
            return
        body.is_closing = True
        self.body = closed_body(body.label)
        if not has_gil:
            self.retired = body
        body.wake_everybody()

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
