# cython: language_level=3, binding=False, freethreading_compatible=True
"""The surface that every queue has: its calls, how long they wait, and how it ends.

A queue is this surface and a backend. Each kind has its own backends, which get a deadline and never a timeout.
A closed handle has a backend that refuses everything.
"""

from libc.stdint cimport int64_t, uint64_t

import os
import weakref
from types import GenericAlias

cimport cython

from queueduct.core.interface._calls cimport closed_backend
from queueduct.items._buffers cimport refuse_stream

from queueduct.errors import CorruptSegment, QueueNotShared, ShutDown
from queueduct.items.types import ItemType
from queueduct.segments import anonymous, catalog, creation

# Queues without a name, by id: a forked child has only copies of them, which no other process can see.
cdef object unnamed = weakref.WeakValueDictionary()


cdef object refusal_of(object kind):
    return (
        f"a {kind.__name__} without a name lives in the process that made it, and this is a forked child of that: "
        f"use {kind.__name__}.create(name, ...), which parent and child share"
    )


cdef int refuse_in_child(object kind, uint64_t born) except -1:
    """For a queue without a backend; ``born`` is the number of forks before it was made."""
    if born != forks:
        raise QueueNotShared(
            f"an {kind.__name__} lives in the process that made it, and this is a forked child of that: "
            "let one process hand out the indices, through a named queue"
        )
    return 0


cdef int raise_no_truth(object kind) except -1:
    """Called for bool(q). True would let ``while q: q.get()`` wait for ever; False would let ``if q:`` miss a queue."""
    raise TypeError(
        "a queue is neither true nor false, since it may be empty in one moment and not in the next: bool() of a "
        f"{kind.__name__}; ask whether it is None, or for its empty(), or call try_get()"
    )


cdef int raise_no_name(object kind, object given) except -1:
    """Called for BoundedQueue("jobs"): the class itself makes a queue between threads."""
    name = kind.__name__
    raise TypeError(
        f"{name}() makes a queue between threads, which has no name: got {given!r}; for a queue with a name use "
        f"{name}.create(name, ...) or {name}.open(name)"
    )


def leave_to_parent():
    """Called in a forked child, which still has only one thread."""
    global forks
    forks += 1
    for queue in list(unnamed.values()):
        (<Queue>queue).refuse()
    unnamed.clear()


os.register_at_fork(after_in_child=leave_to_parent)


cdef Backend UNMADE = closed_backend(None)  # the backend of a handle before install()
UNMADE.label = "that was never made"


cdef int install(Queue queue, Backend backend) except -1:
    """Gives the handle its backend, once. The backend is new: no other thread knows it."""
    if not install_backend(queue, UNMADE, backend):
        raise TypeError("a queue is initialised once")
    return 0


cdef class Queue:
    """The base class of all queues. A queue is neither true nor false: ``bool(q)`` raises TypeError."""

    def __cinit__(self, *args, **kwargs):
        self.backend = UNMADE

    __class_getitem__ = classmethod(GenericAlias)

    @classmethod
    def _create(cls, name, item, directory, exist_ok, replace, sizes, **options):
        """Creates a queue in shared memory. A size that is None is computed from the other sizes and the item."""
        item_type = ItemType.of(item)
        geometry = cls._geometry.of(item_type, **checked_sizes(sizes), **options)
        geometry.check()
        geometry.check_item(item_type)
        if name is None:
            return anonymous.create_anonymous(geometry, item_type, cls._attach, directory=directory)
        return creation.create(
            name, geometry, item_type, cls._attach, directory=directory, exist_ok=exist_ok, replace=replace
        )

    @classmethod
    def open(cls, name, *, directory=None, allow_pickle=True, timeout=None):
        """Open the queue of this kind and name; wait for it to be created, at most ``timeout`` seconds.

        Without ``allow_pickle`` a queue of pickled objects is refused.

        >>> made = queueduct.BoundedQueue.create("ticks", item="f8")
        >>> q = queueduct.BoundedQueue.open("ticks")
        >>> q.unlink()
        """
        opened = catalog.await_segment(name, directory=directory, kind=cls._geometry.kind, timeout=timeout)
        return cls._attach(opened, allow_pickle)

    @classmethod
    def _attach(cls, opened, allow_pickle=True):
        """Makes a handle of an open segment. Closes the segment if that fails."""
        cdef Queue self = cls.__new__(cls)
        cdef Backend backend
        try:
            opened.item.check_pickle(opened.name, allow_pickle)
            backend = self.attach(opened)
            install(self, backend)
            self.after_attach(backend, opened)
        except BaseException:
            opened.close()
            raise
        self.segment = opened
        return self

    cdef Backend attach(self, object opened):
        """Returns the kind's backend, which takes over the memory and the descriptor of an open segment."""
        raise TypeError("a queue is of one of the kinds: use BoundedQueue, GrowingQueue, EventQueue, ...")

    cdef int after_attach(self, Backend backend, object opened) except -1:
        """Called when the handle has its backend, so that other threads may use it."""
        return 0

    cdef object why_full(self, Backend backend, double waited):
        return backend.why_full(waited)

    cdef int stay_in_process(self) except -1:
        """Registers a queue without a name, so that a forked child refuses it."""
        unnamed[id(self)] = self
        return 0

    cdef int refuse(self) except -1:
        """Called in a forked child: from now on every call raises, also calls and readers in progress."""
        cdef Backend backend = held(self)
        cdef Backend refusing
        if backend.is_closing:
            return 0
        backend.refusal = refusal_of(type(self))
        backend.is_closing = True
        refusing = closed_backend(backend.name)
        refusing.refusal = backend.refusal
        self.retired = backend  # keeps its items alive until the child ends
        replace_backend(self, backend, refusing)
        return 0

    def put(self, item, block=True, timeout=None):
        """Put an item; wait for room if ``block``, at most ``timeout`` seconds. Raises Full or ShutDown.

        >>> q = queueduct.BoundedQueue(1)
        >>> q.put("a")
        >>> q.put("b", timeout=0)
        Traceback (most recent call last):
        queueduct.errors.QueueFull: the queue without a name is full...
        """
        cdef Backend backend = held(self)
        cdef int64_t deadline = deadline_of(block, timeout)
        if not backend.put(item, deadline):
            raise self.why_full(backend, waited_until(deadline, timeout))

    def put_nowait(self, item):
        """``put(item, block=False)``.

        >>> queueduct.BoundedQueue(8).put_nowait("a")
        """
        cdef Backend backend = held(self)
        if not backend.put(item, AT_ONCE):
            raise self.why_full(backend, 0)

    def try_put(self, item):
        """Put an item if there is room now. Returns True if it is in. Never waits.

        >>> q = queueduct.BoundedQueue(1)
        >>> q.try_put("a"), q.try_put("b")
        (True, False)
        """
        cdef Backend backend = held(self)
        return backend.put(item, AT_ONCE) == 1

    def get(self, block=True, timeout=None):
        """Get an item; wait for one if ``block``, at most ``timeout`` seconds. Raises Empty or ShutDown.

        >>> q = queueduct.BoundedQueue(8)
        >>> q.put("a")
        >>> q.get(timeout=5)
        'a'
        """
        cdef Backend backend = held(self)
        cdef int64_t deadline = deadline_of(block, timeout)
        cdef object item = backend.get(deadline)
        if item is TIMED_OUT:
            raise backend.why_empty(waited_until(deadline, timeout))
        return item

    def get_nowait(self):
        """``get(block=False)``.

        >>> queueduct.BoundedQueue(8).get_nowait()
        Traceback (most recent call last):
        queueduct.errors.QueueEmpty: the queue without a name is empty
        """
        cdef Backend backend = held(self)
        cdef object item = backend.get(AT_ONCE)
        if item is TIMED_OUT:
            raise backend.why_empty(0)
        return item

    def try_get(self, default=None):
        """Get an item if there is one now, else return ``default``. Never waits.

        >>> queueduct.BoundedQueue(8).try_get("nothing")
        'nothing'
        """
        cdef Backend backend = held(self)
        cdef object item = backend.get(AT_ONCE)
        return default if item is TIMED_OUT else item

    def put_many(self, items, block=True, timeout=None):
        """Put items in order; returns how many are in. A queue of records also takes a dict of columns or a table.

        Waits until all are in, at most ``timeout`` seconds. Raises Full, or ShutDown, only if none is in.

        >>> queueduct.BoundedQueue(8).put_many(["a", "b"])
        2
        """
        cdef Backend backend = held(self)
        cdef int64_t deadline = deadline_of(block, timeout)
        cdef object put
        if deadline != FOREVER:
            refuse_stream(items)
        put = backend.put_many(items, deadline)
        if put is None:
            raise self.why_full(backend, waited_until(deadline, timeout))
        return put

    def get_many(self, max_items, block=True, timeout=None):
        """Get at least one item and at most ``max_items``, without waiting for more than the first.

        Returns a list, or one array if items are records. Raises Empty or ShutDown.

        >>> q = queueduct.BoundedQueue.create(None, item="f8")
        >>> q.put_many([1.5, 2.5])
        2
        >>> q.get_many(100)
        array([1.5, 2.5])
        """
        cdef Backend backend = held(self)
        cdef object found
        cdef int64_t deadline
        limit = checked_int("max_items", max_items)
        if limit < 1:
            raise ValueError(f"max_items must be at least 1: max_items={max_items}")
        deadline = deadline_of(block, timeout)
        found = backend.get_many(min(limit, 1 << 62), deadline)
        if found is TIMED_OUT:
            raise backend.why_empty(waited_until(deadline, timeout))
        return found

    def put_arrow(self, data, block=True, timeout=None):
        """put_many of an Arrow table or stream, or a data frame, also of one column into a queue of bytes.

        >>> import pyarrow
        >>> q = queueduct.BoundedQueue.create(None, item=[("price", "f8")])
        >>> q.put_arrow(pyarrow.table({"price": [1.5, 2.5]}))
        2
        """
        if deadline_of(block, timeout) != FOREVER:
            refuse_stream(data)
        from queueduct.arrow.sources import records_from  # here: it imports pyarrow
        return self.put_many(records_from(data, self.item), block, timeout)

    def __iter__(self):
        return self

    def __next__(self):
        try:
            return self.get()
        except ShutDown:
            raise StopIteration from None

    def __aiter__(self):
        return self

    def __anext__(self):
        return self._bridge().next()

    @cython.critical_section
    def _bridge(self):
        if self.waiters is None:
            from queueduct.core.aio import Bridge  # here: importing asyncio takes as long as importing all of queueduct
            self.waiters = Bridge(self)
        return self.waiters

    def _batch(self, items, timeout=None):
        if timeout is not None:
            refuse_stream(items)
        return held(self).batch(items)

    def _slots_for(self, item):
        cdef Backend backend = held(self)
        return backend.slots_for(item)

    def _wait_ready(self, for_items, slots, seconds):
        cdef Backend backend = held(self)
        backend.wait(for_items, slots, computed_deadline(True, seconds))
        backend.check_sound()

    @property
    def name(self):
        """The queue's name; None if it has none."""
        return None if self.segment is None else self.segment.name

    @property
    def kind(self):
        """The kind, as queueduct.queues() names it; None within a process."""
        return None if self.segment is None else self.segment.geometry.kind

    @property
    def directory(self):
        """The directory of the queue's file, a pathlib.Path; None within a process."""
        return None if self.segment is None else self.segment.path.parent

    @property
    def segment_id(self):
        """16 bytes that tell this queue from a later one of the same name; None within a process."""
        return None if self.segment is None else self.segment.segment_id

    @property
    def item(self):
        """The type of its items: bytes, object or a dtype."""
        return object if self.segment is None else self.segment.item.spec

    @property
    def closed(self):
        """True if this handle was closed."""
        return True if held(self).is_closing else False

    def qsize(self):
        """Return how many items there are: exact while no other thread or process uses the queue.

        >>> queueduct.BoundedQueue(8).qsize()
        0
        """
        cdef Backend backend = held(self)
        return sound(backend, backend.size())

    def empty(self):
        """Return True if there is nothing to get. A hint: other threads and processes may change it at once.

        >>> queueduct.BoundedQueue(8).empty()
        True
        """
        return self.qsize() == 0

    def __len__(self):
        return self.qsize()

    def __bool__(self):
        return raise_no_truth(type(self))

    def __repr__(self):
        cdef Backend backend = held(self)
        cdef str state
        try:
            state = "closed" if backend.is_closing else f"capacity={self.capacity}, size={self.qsize()}"
        except CorruptSegment:
            state = "corrupt"
        return f"<queueduct.{type(self).__name__} {backend.label} {state}>"

    def shutdown(self, immediate=False):
        """Refuse further puts. Gets go on until the queue is empty, or with ``immediate`` end at once.

        As queue.Queue.shutdown of Python 3.13. All waiting threads are woken.

        >>> q = queueduct.BoundedQueue(8)
        >>> q.put("a")
        >>> q.shutdown()
        >>> list(q)
        ['a']
        """
        cdef Backend backend = held(self)
        backend.shut_down(immediate)
        backend.check_sound()

    def close(self):
        """Close this handle. The queue stays, under its name; waiting threads get QueueClosed.

        Its memory and its descriptor are freed when the last call in progress has returned.

        >>> with queueduct.BoundedQueue.create(None) as q:  # closes it at its end
        ...     q.put(b"a")
        >>> q.closed
        True
        """
        cdef Backend backend = held(self)
        if type(backend) is Backend:  # it is closed already
            return
        backend.is_closing = True
        if replace_backend(self, backend, closed_backend(backend.name)) and not backend.is_read_only:
            backend.wake_everybody()

    def unlink(self, missing_ok=False):
        """Remove the queue's name, if it is still this queue's; else raises QueueNotFound or QueueReplaced.

        With ``missing_ok`` a name that is gone is no error. Those who have the queue open can still use it.

        >>> q = queueduct.BoundedQueue.create("ticks")
        >>> q.unlink()
        >>> queueduct.queues()
        []
        """
        if self.name is None:
            raise ValueError("a queue without a name has nothing to unlink")
        catalog.unlink_segment(self.segment, missing_ok=missing_ok)

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
        if self.name is None:
            return anonymous.reopen_passed, (*anonymous.pass_on(self.segment, self), type(self))
        return catalog.reopen, (self.segment.name, str(self.directory), self.segment.segment_id, type(self))
