# cython: language_level=3, binding=False, freethreading_compatible=True
"""The queues that replace multiprocessing's: a growing queue without a name, and what the standard library promises.

A put encodes the item in the caller and is done when it returns: there is no thread behind it. A limit counts items,
however long they are (native/growing/item_limit.hpp).
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from queueduct.core._queue cimport (
    AT_ONCE, TIMED_OUT, checked_int, deadline_of, held, is_negative, remaining_ns, waited_until,
)
from queueduct.items._buffers cimport Held, borrow
from queueduct.items.messages._messages cimport decode_message, encode_message, keep_if_intact
from queueduct.items.messages._plain cimport write_plain
from queueduct.native._native cimport Outcome, Participant, run_without_gil
from queueduct.rings.shared._backend cimport RingBackend
from queueduct.rings.shared._growing_backend cimport GrowingBackend

import copyreg
import os
import weakref
from types import GenericAlias

from queueduct.errors import QueueFull
from queueduct.rings.growing import GrowingQueue
from queueduct.segments import anonymous

cdef str FULL = "the queue {queue} is full: {size:,} of maxsize={capacity} items{waited}; get items, or make it larger"

cdef enum:
    SHORT_BYTES = 1023             # of messages that are made on the stack
    LIMIT_BYTES = 128              # of an ItemLimit, a whole line
    SLOT_BYTES = 128
    FIRST_BYTES = 128 * 1024       # 1,024 short items before it grows
    STEPS = 9                      # the last level has 8 GB
    LOCK_NS = 20000000
    PARTICIPANTS = 512

cdef object MAXSIZE_LIMIT = 2**31 - 1

# Of each queue in this process, for the fork handler.
cdef object queues = weakref.WeakSet()


def leave_to_parent():
    """In a forked child: tasks and messages that the parent has taken are the parent's."""
    for queue in list(queues):
        (<SharedQueue>queue).forget()


os.register_at_fork(after_in_child=leave_to_parent)


cdef class SharedQueue:
    """What the three classes share."""

    __class_getitem__ = classmethod(GenericAlias)

    cdef int make(self, uint64_t maxsize, object participants) except -1:
        cdef int error
        self.take(GrowingQueue.create(
            None, item=bytes, slot_bytes=SLOT_BYTES, first_bytes=FIRST_BYTES, steps=STEPS, participants=participants,
            producers=0,
        ))
        if maxsize:
            self.find_limit()
            error = self.limit.initialise(maxsize)
            if error:
                raise OSError(error, f"no lock for a queue of maxsize={maxsize}: {os.strerror(error)}")
        return 0

    cdef int take(self, object inner) except -1:
        self.inner = inner
        self.ring = <GrowingBackend?>held(self.inner)
        self.kept = []
        self.taken = []
        queues.add(self)
        return 0

    cdef int forget(self) except -1:
        self.kept = []
        self.taken = []
        return 0

    cdef int find_limit(self) except -1:
        """Sets where the limit is: in the last line before the control block, which an item text of 5 bytes leaves."""
        cdef uint64_t control = self.inner.segment.offsets["control_offset"]
        self.memory = Held(self.ring.memory)
        self.limit = <ItemLimit*>(<char*>self.memory.view.buf + control - LIMIT_BYTES)
        return 0

    def __reduce__(self):
        return copyreg.__newobj__, (type(self),), self.__getstate__()

    def __getstate__(self):
        """What a spawned process gets. A subclass may add to it, and take it apart in its __setstate__."""
        self.check_open()
        return *anonymous.pass_on(self.inner.segment, self), self.limit is not NULL

    def __setstate__(self, state):
        passed, folder, has_limit = state
        if self.ring is not None:
            raise TypeError(f"a {type(self).__name__} is opened once")
        self.take(anonymous.reopen_passed(passed, folder, GrowingQueue))
        if has_limit:
            self.find_limit()

    cdef int check_open(self) except -1:
        if self.is_closed:
            raise ValueError(f"{type(self).__name__} {self!r} is closed")
        if self.ring is None:
            raise ValueError(f"this {type(self).__name__} was never made: call its __init__")
        return 0

    # -- put --------------------------------------------------------------------------------------------

    cdef int put_item(self, object item, int64_t deadline) except -1:
        """Returns 0 if the time is up."""
        cdef char short_copy[SHORT_BYTES + 1]
        cdef Py_ssize_t length
        cdef object data
        cdef Held lent
        self.check_open()
        self.has_put = True
        if type(item) is bytes and PyBytes_GET_SIZE(item) <= SHORT_BYTES:
            length = PyBytes_GET_SIZE(item)
            memcpy(short_copy, PyBytes_AS_STRING(item), length)
            short_copy[length] = 0
            return self.put_message(short_copy, length + 1, deadline)
        length = write_plain(item, short_copy, sizeof(short_copy))
        if length:
            return self.put_message(short_copy, length, deadline)
        data = encode_message(item)
        if type(data) is bytes:
            return self.put_message(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), deadline)
        lent = borrow(data)
        return self.put_message(lent.view.buf, lent.view.len, deadline)

    cdef int put_message(self, const void* data, uint64_t length, int64_t deadline) except -1:
        if length > SLOT_BYTES:
            self.check_length(length)
        if self.limit is NULL:
            return self.ring._put_bytes(data, length, deadline)
        return self.put_within_limit(data, length, deadline)

    cdef int check_length(self, uint64_t length) except -1:
        cdef RingBackend ring = self.ring
        if ring.slots_of(length) > ring.item_slots_limit:
            raise ValueError(
                f"an item must have at most {ring.item_slots_limit * ring.slot_bytes} bytes when pickled: "
                f"{length} bytes; put it in parts, or put the name of a file"
            )
        if self.limit is not NULL:
            ring.check_length(length)  # which also tells the consumers of long items
        return 0

    cdef int put_within_limit(self, const void* data, uint64_t length, int64_t deadline) except -1:
        cdef RingBackend ring = self.ring
        cdef Participant ledger
        cdef Outcome outcome
        cdef bint waited = False
        while True:
            ring.find_participant(&ledger)
            if not self.limit.try_lock() and not self.wait_for_lock():
                if deadline != AT_ONCE and remaining_ns(deadline) <= 0:
                    return 0
                continue
            # no Python code runs until the unlock
            if take_credit_of(self.limit[0], ring.queue[0]):
                outcome = ring.queue.put_bytes(ledger, data, length, run_without_gil)
                self.limit.unlock()
                if outcome == Outcome.done:
                    ring.after_put(waited)
                    return 1
                if not ring.wait_for_room(outcome, ring.slots_of(length), deadline, &ledger, not waited):
                    return 0
            else:
                self.limit.unlock()
                ring.check_sound()
                if not self.wait_for_room(deadline):
                    return 0
            waited = True

    cdef bint wait_for_lock(self) except -1:
        cdef bint is_locked
        cdef ItemLimit* limit = self.limit
        with nogil:
            is_locked = limit.lock(LOCK_NS)
        if is_locked:
            return True
        PyErr_CheckSignals()
        self.ring.check_open()
        return False

    cdef bint wait_for_room(self, int64_t deadline) except -1:
        """Waits until an item has left. Returns false if the time is up."""
        cdef int64_t left = 0 if deadline == AT_ONCE else remaining_ns(deadline)
        if left <= 0:
            return False
        with nogil:
            wait_below(self.limit[0], self.ring.queue[0], self.idle, left)
        PyErr_CheckSignals()
        self.ring.check_open()
        return True

    # -- get --------------------------------------------------------------------------------------------

    cdef object get_item(self, int64_t deadline):
        """Returns an item, or TIMED_OUT."""
        cdef object data
        self.check_open()
        data = self.kept.pop() if self.kept else self.ring._get_bytes(deadline)
        if data is TIMED_OUT:
            return data
        try:
            return decode_message(data)
        except BaseException as error:
            keep_if_intact(self.kept, error, data)
            raise

    cdef object why_full(self, double waited):
        if self.limit is NULL:
            return self.ring.why_full(waited)
        return QueueFull(FULL, None, waited, self.ring.queue.count_items(), self.limit.limit())

    cdef object count(self):
        self.check_open_or_closed()
        return self.ring.size() + len(self.kept)

    cdef int check_open_or_closed(self) except -1:
        if self.ring is None:
            self.check_open()
        return 0

    # -- surface ----------------------------------------------------------------------------------------

    def empty(self):
        """Return True if there is nothing to get. A hint: other processes may change it at once.

        >>> import queueduct.multiprocessing
        >>> q = queueduct.multiprocessing.Queue()
        >>> q.empty()
        True
        """
        if self.is_closed and (self.has_put or isinstance(self, SimpleQueue)):
            raise OSError(f"{type(self).__name__} {self!r} is closed")  # as multiprocessing, once it was used
        return self.count() == 0

    @property
    def _closed(self):
        return True if self.is_closed else False

    def close(self):
        """Close the queue in this process: what was put stays for the other processes.

        >>> import queueduct.multiprocessing
        >>> q = queueduct.multiprocessing.Queue()
        >>> q.close()
        """
        if not self.is_closed and self.inner is not None:
            self.is_closed = True
            self.inner.close()

    def __repr__(self):
        return f"<queueduct.multiprocessing.{type(self).__name__} at {id(self):#x}>"


cdef class Queue(SharedQueue):
    """Queue(maxsize=0, *, ctx=None)\n--\n
    ``multiprocessing.Queue(maxsize)``: first in, first out, at most ``maxsize`` items if that is positive.

    >>> import queueduct.multiprocessing
    >>> q = queueduct.multiprocessing.Queue(maxsize=8)
    >>> q.put({"job": 1})
    >>> q.get()
    {'job': 1}
    """

    def __init__(self, maxsize=0, *, ctx=None):
        if self.ring is None:
            self.make(checked_maxsize(maxsize), PARTICIPANTS)

    def put(self, obj, block=True, timeout=None):
        """Put an object; wait for room if ``block``, at most ``timeout`` seconds. Raises Full.

        The object is pickled here: an error of its pickling is raised here, and nothing is put.

        >>> import queueduct.multiprocessing
        >>> q = queueduct.multiprocessing.Queue()
        >>> q.put({"job": 1})
        """
        cdef int64_t deadline = deadline_as_standard(block, timeout)
        if not self.put_item(obj, deadline):
            raise self.why_full(waited_until(deadline, timeout))

    def get(self, block=True, timeout=None):
        """Get an object; wait for one if ``block``, at most ``timeout`` seconds. Raises Empty.

        >>> import queueduct.multiprocessing
        >>> q = queueduct.multiprocessing.Queue()
        >>> q.put({"job": 1})
        >>> q.get()
        {'job': 1}
        """
        cdef int64_t deadline = deadline_as_standard(block, timeout)
        cdef object item = self.get_item(deadline)
        if item is TIMED_OUT:
            raise self.ring.why_empty(waited_until(deadline, timeout))
        return item

    def put_nowait(self, obj):
        """``put(obj, False)``.

        >>> import queueduct.multiprocessing
        >>> q = queueduct.multiprocessing.Queue()
        >>> q.put_nowait({"job": 1})
        """
        if not self.put_item(obj, AT_ONCE):
            raise self.why_full(0)

    def get_nowait(self):
        """``get(False)``.

        >>> import queueduct.multiprocessing
        >>> q = queueduct.multiprocessing.Queue()
        >>> q.get_nowait()
        Traceback (most recent call last):
        queueduct.errors.QueueEmpty: the queue without a name is empty
        """
        return self.get(False)

    def qsize(self):
        """Return how many objects there are.

        >>> import queueduct.multiprocessing
        >>> q = queueduct.multiprocessing.Queue()
        >>> q.qsize()
        0
        """
        return self.count()

    def full(self):
        """Return True if there are ``maxsize`` objects. A hint: other processes may change it at once.

        >>> import queueduct.multiprocessing
        >>> q = queueduct.multiprocessing.Queue()
        >>> q.full()
        False
        """
        return self.limit is not NULL and self.count() >= self.limit.limit()

    def join_thread(self):
        """Does nothing, since there is no thread: what was put is in. Raises if the queue is not closed.

        >>> import queueduct.multiprocessing
        >>> q = queueduct.multiprocessing.Queue()
        >>> q.close()
        >>> q.join_thread()
        """
        if not self.is_closed:
            raise AssertionError(f"Queue {self!r} not closed")

    def cancel_join_thread(self):
        """Does nothing: no thread has to be waited for.

        >>> import queueduct.multiprocessing
        >>> q = queueduct.multiprocessing.Queue()
        >>> q.cancel_join_thread()
        """


cdef class SimpleQueue(SharedQueue):
    """SimpleQueue(*, ctx=None)\n--\n
    ``multiprocessing.SimpleQueue()``: first in, first out, without limits and timeouts.

    >>> import queueduct.multiprocessing
    >>> q = queueduct.multiprocessing.SimpleQueue()
    >>> q.put({"job": 1})
    >>> q.get()
    {'job': 1}
    """

    def __init__(self, *, ctx=None):
        if self.ring is None:
            self.make(0, PARTICIPANTS)

    def put(self, obj):
        """Put an object.

        >>> import queueduct.multiprocessing
        >>> q = queueduct.multiprocessing.SimpleQueue()
        >>> q.put({"job": 1})
        """
        self.put_item(obj, deadline_of(True, None))

    def get(self):
        """Get an object; wait for one.

        >>> import queueduct.multiprocessing
        >>> q = queueduct.multiprocessing.SimpleQueue()
        >>> q.put({"job": 1})
        >>> q.get()
        {'job': 1}
        """
        return self.get_item(deadline_of(True, None))


cdef uint64_t checked_maxsize(object maxsize) except? 0xFFFFFFFFFFFFFFFF:
    """Returns it, or 0 for no limit."""
    size = checked_int("maxsize", maxsize)
    if size > MAXSIZE_LIMIT:
        raise OverflowError(f"maxsize must be at most {MAXSIZE_LIMIT}: maxsize={size}; 0 means no limit")
    return max(size, 0)


cdef int64_t deadline_as_standard(object block, object timeout) except -1:
    """A negative timeout is over at once here, as in multiprocessing."""
    if timeout is not None and block and is_negative(timeout):
        return AT_ONCE
    return deadline_of(block if type(block) is bool else bool(block), timeout)
