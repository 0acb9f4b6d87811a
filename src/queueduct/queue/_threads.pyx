# cython: language_level=3, binding=False, freethreading_compatible=True
"""Queues between threads with the calls of the standard library's: references in a growing ring, and a count of tasks.

With a GIL each step is one that no other thread divides, since nothing in it releases the GIL. Without one, the steps
that read and change two words are critical sections.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint32_t

from queueduct.core._queue cimport AT_ONCE, TIMED_OUT, deadline_of, is_negative, remaining_ns, waited_until
from queueduct.native._native cimport Event, park_limit_ns
from queueduct.rings.shared._growing_backend cimport LocalBackend

import threading
from collections import deque
from types import GenericAlias

from queueduct.errors import QueueFull, ShutDown
from queueduct.queue._hooks import WithHooks

cdef str FULL = "the queue {queue} is full: {size:,} of maxsize={capacity} items{waited}; get items, or make it larger"


cdef class Threaded:
    """What both classes share."""
    cdef LocalBackend ring
    cdef object __weakref__

    def __cinit__(self, *args, **kwargs):
        self.ring = LocalBackend(None)

    __class_getitem__ = classmethod(GenericAlias)

    def __reduce__(self):
        raise TypeError(
            f"cannot pickle a {type(self).__name__} of threads: it lives in one process; "
            "use queueduct.multiprocessing.Queue between processes"
        )

    cdef object get_reference(self, int64_t deadline, object timeout):
        cdef object item = self.ring.get(deadline)
        if item is TIMED_OUT:
            raise self.ring.why_empty(waited_until(deadline, timeout))
        return item


cdef class SimpleQueue(Threaded):
    """SimpleQueue()\n--\n
    ``queue.SimpleQueue()``: first in, first out, without limits and tasks. put may be called in a finalizer.

    >>> import queueduct.queue
    >>> q = queueduct.queue.SimpleQueue()
    >>> q.put("a")
    >>> q.get()
    'a'
    """

    def put(self, item, block=True, timeout=None):
        """Put an item. It never waits; ``block`` and ``timeout`` are there for the likeness of Queue.put.

        >>> import queueduct.queue
        >>> q = queueduct.queue.SimpleQueue()
        >>> q.put("a")
        """
        self.ring.put(item, AT_ONCE)

    def put_nowait(self, item):
        """``put(item)``.

        >>> import queueduct.queue
        >>> q = queueduct.queue.SimpleQueue()
        >>> q.put_nowait("a")
        """
        self.ring.put(item, AT_ONCE)

    def get(self, block=True, timeout=None):
        """Get an item; wait for one if ``block``, at most ``timeout`` seconds. Raises Empty.

        >>> import queueduct.queue
        >>> q = queueduct.queue.SimpleQueue()
        >>> q.put("a")
        >>> q.get(timeout=5)
        'a'
        """
        return self.get_reference(checked_deadline(block, timeout), timeout)

    def get_nowait(self):
        """``get(False)``.

        >>> import queueduct.queue
        >>> q = queueduct.queue.SimpleQueue()
        >>> q.get_nowait()
        Traceback (most recent call last):
        queueduct.errors.QueueEmpty: the queue without a name is empty
        """
        return self.get_reference(AT_ONCE, None)

    def empty(self):
        """Return True if there is nothing to get. A hint: other threads may change it at once.

        >>> import queueduct.queue
        >>> q = queueduct.queue.SimpleQueue()
        >>> q.empty()
        True
        """
        return self.ring.size() == 0

    def qsize(self):
        """Return how many items there are.

        >>> import queueduct.queue
        >>> q = queueduct.queue.SimpleQueue()
        >>> q.qsize()
        0
        """
        return self.ring.size()


cdef int64_t checked_deadline(object block, object timeout) except -1:
    if block and timeout is not None and is_negative(timeout):
        raise ValueError("'timeout' must be a non-negative number")
    return deadline_of(bool(block), timeout)


cdef class Queue(Threaded, WithHooks):
    """Queue(maxsize=0)\n--\n
    ``queue.Queue(maxsize)``: first in, first out, at most ``maxsize`` items if that is positive.

    A subclass that overrides ``_init``, ``_put``, ``_get`` or ``_qsize`` works as one of ``queue.Queue``, and as fast.

    >>> import queueduct.queue
    >>> q = queueduct.queue.Queue(maxsize=8)
    >>> q.put("a")
    >>> q.get()
    'a'
    """
    cdef public object maxsize
    """How many items fit; 0 or less for any number."""
    cdef public object unfinished_tasks
    """Items that were put, and for which task_done() was not called yet."""
    cdef public object is_shutdown
    """True if the queue was shut down."""
    cdef public object mutex
    """The lock of ``all_tasks_done``. Puts and gets do not take it."""
    cdef public object all_tasks_done
    """The condition that join() waits for."""

    def __init__(self, maxsize=0):
        initialise = getattr(type(self), "_initialise", None)
        if initialise is not None:  # of a subclass with hooks, whose own __init__ calls this one
            initialise(self, maxsize)
            return
        self.maxsize = maxsize
        self.unfinished_tasks = 0
        self.is_shutdown = False
        self.mutex = threading.Lock()
        self.all_tasks_done = threading.Condition(self.mutex)

    # The hooks of subclasses.

    def _init(self, maxsize):
        self.queue = deque()

    def _qsize(self):
        return len(self.queue)

    def _put(self, item):
        self.queue.append(item)

    def _get(self):
        return self.queue.popleft()

    cdef bint put_item(self, object item, int64_t deadline) except -1:
        """Returns false if the time is up."""
        while True:
            if self.put_if_room(item):
                return True
            if self.is_shutdown:
                raise ShutDown("the queue is shut down")
            if deadline == AT_ONCE or not self.wait_for_room(deadline):
                return False

    cdef object why_full(self, double waited):
        return QueueFull(FULL, None, waited, self.ring.queue.count_items(), self.maxsize)

    @cython.critical_section
    cdef bint put_if_room(self, object item) except -1:
        """Puts the item and counts the task, unless the queue is full or shut down."""
        if self.is_shutdown or (self.maxsize > 0 and self.ring.queue.count_items() >= self.maxsize):
            return False
        self.unfinished_tasks += 1  # before a consumer can have it
        try:
            return self.ring.put(item, AT_ONCE)
        except BaseException:
            self.unfinished_tasks -= 1
            raise

    cdef bint wait_for_room(self, int64_t deadline) except -1:
        return self.park(self.ring.queue.room(), deadline)

    cdef bint park(self, Event room, int64_t deadline) except -1:
        """Waits until an item has left. Returns false if the time is up."""
        cdef uint32_t ticket
        cdef int64_t left = remaining_ns(deadline)
        if left <= 0:
            return False
        ticket = room.announce()
        if self.is_shutdown or self.maxsize <= 0 or self.ring.queue.count_items() < self.maxsize:
            return True
        with nogil:
            room.park(ticket, min(left, park_limit_ns))
        PyErr_CheckSignals()
        self.ring.check_open()
        return True

    def put(self, item, block=True, timeout=None):
        """Put an item; wait for room if ``block``, at most ``timeout`` seconds. Raises Full or ShutDown.

        >>> import queueduct.queue
        >>> q = queueduct.queue.Queue()
        >>> q.put("a")
        """
        cdef int64_t deadline = checked_deadline(block, timeout) if self.maxsize > 0 else AT_ONCE
        if not self.put_item(item, deadline):
            raise self.why_full(waited_until(deadline, timeout))

    def put_nowait(self, item):
        """``put(item, block=False)``.

        >>> import queueduct.queue
        >>> q = queueduct.queue.Queue()
        >>> q.put_nowait("a")
        """
        if not self.put_item(item, AT_ONCE):
            raise self.why_full(0)

    def get(self, block=True, timeout=None):
        """Get an item; wait for one if ``block``, at most ``timeout`` seconds. Raises Empty or ShutDown.

        >>> import queueduct.queue
        >>> q = queueduct.queue.Queue()
        >>> q.put("a")
        >>> q.get(timeout=5)
        'a'
        """
        return self.get_reference(checked_deadline(block, timeout), timeout)

    def get_nowait(self):
        """``get(block=False)``.

        >>> import queueduct.queue
        >>> q = queueduct.queue.Queue()
        >>> q.get_nowait()
        Traceback (most recent call last):
        queueduct.errors.QueueEmpty: the queue without a name is empty
        """
        return self.get_reference(AT_ONCE, None)

    def qsize(self):
        """Return how many items there are.

        >>> import queueduct.queue
        >>> q = queueduct.queue.Queue()
        >>> q.qsize()
        0
        """
        return self.ring.size()

    def empty(self):
        """Return True if there is nothing to get. A hint: other threads may change it at once.

        >>> import queueduct.queue
        >>> q = queueduct.queue.Queue()
        >>> q.empty()
        True
        """
        return self.ring.size() == 0

    def full(self):
        """Return True if there are ``maxsize`` items. A hint: other threads may change it at once.

        >>> import queueduct.queue
        >>> q = queueduct.queue.Queue()
        >>> q.full()
        False
        """
        return 0 < self.maxsize <= self.ring.size()

    @cython.critical_section
    cdef bint finish(self, object tasks) except -1:
        """Returns true if no task is left."""
        if tasks > self.unfinished_tasks:
            raise ValueError("task_done() called too many times")
        self.unfinished_tasks -= tasks
        return self.unfinished_tasks == 0

    def task_done(self):
        """Say that a task that was got is done. Raises ValueError if called more often than put.

        >>> import queueduct.queue
        >>> q = queueduct.queue.Queue()
        >>> q.put("a")
        >>> item = q.get()
        >>> q.task_done()
        >>> q.join()
        """
        if self.finish(1):
            with self.all_tasks_done:
                self.all_tasks_done.notify_all()

    def join(self):
        """Wait until a task_done() has been called for each item that was put.

        >>> import queueduct.queue
        >>> q = queueduct.queue.Queue()
        >>> q.join()
        """
        with self.all_tasks_done:
            while self.unfinished_tasks:
                self.all_tasks_done.wait()

    cdef bint drop_one(self) except -1:
        """Returns false if there is no item, also in a queue that was shut down before."""
        try:
            return self.ring.get(AT_ONCE) is not TIMED_OUT
        except ShutDown:
            return False

    def shutdown(self, immediate=False):
        """Refuse further puts. Gets go on until the queue is empty; with ``immediate`` they end, and tasks are done.

        >>> import queueduct.queue
        >>> q = queueduct.queue.Queue()
        >>> q.shutdown()
        >>> q.put("a")  # raises ShutDown
        Traceback (most recent call last):
        ShutDown
        """
        if hasattr(self, "queue"):  # the items of a subclass with hooks
            raise NotImplementedError(
                "a subclass with hooks of its own can be shut down from Python 3.13 on; override fewer methods"
            )
        self.is_shutdown = True
        while immediate and self.drop_one():
            if self.unfinished_tasks > 0:
                self.finish(1)
        self.ring.shut_down(immediate)
        with self.all_tasks_done:
            self.all_tasks_done.notify_all()
