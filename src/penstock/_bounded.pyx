# cython: language_level=3, binding=False, freethreading_compatible=True
# distutils: language = c++
"""BoundedQueue: convert, wait, raise. The algorithm is in native/, the policy in segment.py and items.py."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer
from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.ref cimport Py_INCREF, PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

import numpy

from penstock import _aio, items, segment
from penstock.errors import (
    CorruptSegment,
    Empty,
    Full,
    QueueClosed,
    QueueExists,
    ShutDown,
    TooManyParticipants,
)
from penstock.stats import BoundedStats

include "_bounded_native.pxi"

cdef enum Form:
    LOCAL = 0    # references within this process
    BYTES = 1    # the numbers of items.py from here on
    RECORD = 2
    OBJECT = 3

cdef uint64_t LONG_COPY = 65536          # bytes from which a copy is worth giving up the GIL
cdef int64_t FOREVER = 0x7FFFFFFFFFFFFFFF
cdef object encode_object = items.encode_object
cdef object decode_object = items.decode_object


cdef inline int64_t deadline_of(object block, object timeout) except -1:
    """When to give up, on the monotonic clock: 1 is at once, FOREVER is never."""
    return FOREVER if block is True and timeout is None else computed_deadline(block, timeout)


cdef int64_t computed_deadline(bint block, object timeout) except -1:
    cdef double seconds
    if not block:
        return 1
    if timeout is None:
        return FOREVER
    seconds = timeout
    if not seconds >= 0:
        raise ValueError(f"timeout must be a non-negative number or None: timeout={timeout!r}")
    if seconds == 0:
        return 1
    return FOREVER if seconds > 1e9 else monotonic_ns() + <int64_t>(seconds * 1e9)


cdef int64_t remaining_ns(int64_t deadline):
    return park_limit_ns if deadline == FOREVER else deadline - monotonic_ns()


@cython.final
cdef class Held:
    """A buffer that somebody lends us, for as long as this lives."""
    cdef Py_buffer view

    def __cinit__(self, lender):
        PyObject_GetBuffer(lender, &self.view, PyBUF_SIMPLE)

    def __dealloc__(self):
        PyBuffer_Release(&self.view)


cdef class BoundedQueue:
    """A bounded queue of many producers and many consumers: each item goes to one of them.

    ``BoundedQueue(1024)`` passes references between the threads of this process.
    ``BoundedQueue.create("ticks", capacity=65536, item=dtype)`` lives in shared memory, by name:
    other processes ``BoundedQueue.open("ticks")`` it, or get it pickled.
    """
    cdef Form form
    cdef const Ring* ring            # of either of the next two
    cdef SharedQueue* shared
    cdef LocalQueue* local
    cdef char* local_memory
    cdef Range* guard
    cdef Counter guests              # threads in here without the GIL: the memory must stay
    cdef bint is_closed
    cdef object segment
    cdef object dtype
    cdef object waiters              # asyncio's, made at its first use
    cdef object __weakref__

    def __cinit__(self, *args, **kwargs):
        self.is_closed = True            # until there is a ring

    def __init__(self, capacity=1024):
        if self.ring is not NULL:
            raise TypeError("a queue is initialised once")
        segment.Geometry("bounded", checked_int("capacity", capacity), 8, 1).check()
        cdef uint64_t slots = capacity
        cdef uint64_t total = LocalQueue.offsets(slots).total
        self.local_memory = <char*>aligned_alloc(4096, total)
        if self.local_memory is NULL:
            raise MemoryError(f"no memory for a queue of capacity={capacity}: {total} bytes")
        memset(self.local_memory, 0, total)
        self.local = new LocalQueue(<byte*>self.local_memory, slots)
        self.ring = &self.local.ring()
        self.form = LOCAL
        self.is_closed = False

    @classmethod
    def create(cls, name, capacity=1024, *, item=bytes, slot_bytes=None, participants=256, exist_ok=False):
        """Make a queue of that name in shared memory.

        ``item`` is ``bytes``, a numpy dtype, or ``object`` (pickled). ``capacity`` counts slots, a power of
        two; a bytes or object item longer than ``slot_bytes`` takes several. ``participants`` is how many
        threads of all processes may use it at once. With ``exist_ok`` an existing queue of the same shape
        is opened instead.
        """
        item_type = items.ItemType.of(item)
        if slot_bytes is None:
            slot_bytes = item_type.dtype.itemsize if item_type.dtype is not None \
                else items.DEFAULT_SLOT_BYTES[item_type.kind]
        elif item_type.dtype is not None and slot_bytes != item_type.dtype.itemsize:
            raise ValueError(
                f"slot_bytes of records is the dtype's itemsize: slot_bytes={slot_bytes}, "
                f"itemsize={item_type.dtype.itemsize}; leave it out"
            )
        geometry = segment.Geometry(
            "bounded",
            checked_int("capacity", capacity),
            checked_int("slot_bytes", slot_bytes),
            checked_int("participants", participants),
        )
        try:
            return cls._attach(segment.create(name, geometry, item_type), True)
        except QueueExists:
            if not exist_ok:
                raise
        opened = segment.open_segment(name, kind="bounded")
        if opened.geometry != geometry or opened.item != item_type:
            opened.close()
            raise QueueExists(
                f"a queue named {name!r} exists and is of another shape: {opened.geometry}, "
                f"item={opened.item.spec!r}; asked for {geometry}, item={item_type.spec!r}"
            )
        return cls._attach(opened, True)

    @classmethod
    def open(cls, name, *, allow_pickle=True):
        """Open the bounded queue of that name. Without ``allow_pickle``, one of objects is refused."""
        return cls._attach(segment.open_segment(name, kind="bounded"), allow_pickle)

    @classmethod
    def _attach(cls, opened, allow_pickle):
        cdef BoundedQueue self = cls.__new__(cls)
        self._take_over(opened, allow_pickle)
        return self

    cdef int _take_over(self, object opened, bint allow_pickle) except -1:
        cdef BoundedOffsets at
        cdef Identity identity
        cdef Held memory
        cdef object boot = segment.boot_id()
        try:
            if opened.item.kind == OBJECT and not allow_pickle:
                raise ValueError(
                    f"the queue {opened.name!r} carries pickled objects, and unpickling runs code: "
                    "open it with allow_pickle=True if you trust whoever puts"
                )
            memory = Held(opened.memory)
            offsets = opened.offsets
            at.control = offsets["control_offset"]
            at.participants = offsets["participants_offset"]
            at.generations = offsets["generations_offset"]
            at.lengths = offsets["lengths_offset"]
            at.payload = offsets["payload_offset"]
            identity.boot_id[0] = int.from_bytes(boot[:8], "little")
            identity.boot_id[1] = int.from_bytes(boot[8:], "little")
            identity.start_ticks = segment.process_start_ticks()
            self.guard = watch(memory.view.buf, memory.view.len)
            self.shared = new SharedQueue(
                <byte*>memory.view.buf, at, opened.geometry.capacity, opened.geometry.slot_bytes,
                opened.geometry.participants, opened.take_lock_fd(), identity,
            )
        except BaseException:
            opened.close()
            raise
        self.segment = opened
        self.dtype = opened.item.dtype
        self.form = <Form><int>opened.item.kind
        self.ring = &self.shared.ring()
        self.is_closed = False
        return 0

    def __dealloc__(self):
        if self.local is not NULL:
            self._drop_references()
        self._free()

    cdef void _free(self) noexcept:
        """Give up memory and locks. Nobody is inside."""
        forget(self.guard)
        self.guard = NULL
        del self.shared
        self.shared = NULL
        del self.local
        self.local = NULL
        free(self.local_memory)
        self.local_memory = NULL

    cdef void _drop_references(self) noexcept:
        """Forget what a local queue still holds."""
        cdef void* reference = NULL
        cdef object item
        while try_drain_reference(self.local.ring(), reference):
            item = owned(reference)
            item = None

    # -- state ------------------------------------------------------------------------------------------

    cdef int _check_open(self) except -1:
        if self.is_closed:
            raise QueueClosed(f"this handle of the queue {self._label()} is closed; open it again")
        return 0

    cdef object _label(self):
        return repr(self.segment.name) if self.segment is not None else "without a name"

    cdef int _raise_corrupt(self) except -1:
        if is_broken(self.guard):
            raise CorruptSegment(f"the segment of {self._label()} was truncated while it was in use; recreate the queue")
        raise CorruptSegment(
            f"the positions and generations of {self._label()} contradict each other: "
            f"push_position={self.ring.push_position.load()}, pop_position={self.ring.pop_position.load()}, "
            f"capacity={self.ring.capacity}; recreate the queue"
        )

    cdef int _find_ledger(self, SharedLedger* ledger) except -1:
        """This thread's line in the participant table; a thread joins at its first operation."""
        cdef Joined joined
        if self.shared.find_ledger(ledger[0]):
            return 0
        joined = self.shared.join()
        if joined == Joined.yes and self.shared.find_ledger(ledger[0]):
            return 0
        if joined == Joined.table_full:
            raise TooManyParticipants(
                f"all {self.segment.geometry.participants} participants of {self._label()} are in use; "
                "close handles that are not needed, or create the queue with a larger participants="
            )
        if joined == Joined.too_many_threads:
            raise TooManyParticipants(f"more than {thread_limit} threads of this process use penstock at once")
        raise CorruptSegment(f"the queue {self._label()} could not be opened again after a fork; open it by name")

    @property
    def capacity(self):
        """Slots: with items of one slot, how many fit."""
        self._check_open()
        return self.ring.capacity

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
        self._check_open()
        return count_items(self.ring[0], self._may_hold_gaps())

    cdef bint _may_hold_gaps(self):
        return self.shared is not NULL and (
            self.shared.control().has_long_items.load() != 0 or self.shared.control().tombstones.load() != 0
        )

    def empty(self):
        """Is there nothing to get? A hint, as with every queue that others use."""
        return self.qsize() == 0

    def full(self):
        """Is there no free slot? A hint too."""
        self._check_open()
        return slots_in_use(self.ring[0]) >= self.ring.capacity

    def __len__(self):
        return self.qsize()

    def __bool__(self):
        return True

    def stats(self):
        """One look at the queue's counters."""
        self._check_open()
        cdef uint64_t pushed = self.ring.push_position.load()
        cdef uint64_t popped = self.ring.pop_position.load()
        cdef bint is_shared = self.shared is not NULL
        return BoundedStats(
            capacity=self.ring.capacity,
            size=self.qsize(),
            slots_pushed=pushed & ~closed_bit,
            slots_popped=popped & ~closed_bit,
            slot_bytes=self.ring.slot_bytes if is_shared else 0,
            total_bytes=self.segment.total_bytes if is_shared else LocalQueue.offsets(self.ring.capacity).total,
            is_shut_down=bool(pushed & closed_bit),
            participants=self.shared.count_alive() if is_shared else 0,
            participants_limit=self.segment.geometry.participants if is_shared else 0,
            tombstones=self.shared.control().tombstones.load() if is_shared else 0,
            adopted=self.shared.control().adopted.load() if is_shared else 0,
        )

    def __repr__(self):
        cdef str state = "closed" if self.is_closed else f"capacity={self.ring.capacity}, size={self.qsize()}"
        return f"<penstock.BoundedQueue {self._label()} {state}>"

    # -- put --------------------------------------------------------------------------------------------

    def put(self, item, block=True, timeout=None):
        """Put an item; wait for room if ``block``, at most ``timeout`` seconds. Raises Full or ShutDown."""
        if self._put(item, deadline_of(block, timeout)) == 0:
            raise Full

    def put_nowait(self, item):
        """``put(item, block=False)``."""
        if self._put(item, 1) == 0:
            raise Full

    def try_put(self, item):
        """Put an item if there is room now. True if it is in; never waits."""
        return self._put(item, 1) == 1

    cdef int _put(self, object item, int64_t deadline) except -1:
        cdef Held lent
        if self.is_closed:
            self._check_open()
        if self.form == LOCAL:
            return self._put_reference(item, deadline)
        if self.form == BYTES:
            if type(item) is not bytes:
                lent = borrow(item)
                self._check_open()  # to convert an item can run any code, even one that closes us
                return self._put_bytes(lent.view.buf, lent.view.len, deadline)
        elif self.form == OBJECT:
            item = encode_object(item)
            self._check_open()
        else:
            item = self._record(item)
            self._check_open()
            return self._put_bytes(array_data(item), self.ring.slot_bytes, deadline)
        return self._put_bytes(PyBytes_AS_STRING(item), PyBytes_GET_SIZE(item), deadline)

    cdef object _record(self, object item):
        """One record, as an array of one in our dtype."""
        cdef object array = numpy.ascontiguousarray(item, dtype=self.dtype) if self.dtype.subdtype is None \
            else numpy.ascontiguousarray(item, dtype=self.dtype.base)
        if array.nbytes != self.dtype.itemsize:
            raise ValueError(
                f"one item of dtype {self.dtype} has {self.dtype.itemsize} bytes: got shape {array.shape}, "
                f"{array.nbytes} bytes; use put_many for several"
            )
        return array

    cdef int _check_length(self, uint64_t length) except -1:
        if length > item_bytes_limit or self.ring.slots_for(length) > self.ring.claim_limit():
            raise ValueError(
                f"an item of {length} bytes can never fit into {self._label()}: the limit is "
                f"{min(self.ring.claim_limit() * self.ring.slot_bytes, item_bytes_limit)} bytes "
                f"(capacity={self.ring.capacity} * slot_bytes={self.ring.slot_bytes}); "
                "create the queue with a larger capacity or slot_bytes"
            )
        return 0

    cdef int _put_bytes(self, const void* data, uint64_t length, int64_t deadline) except -1:
        cdef SharedLedger ledger
        cdef Outcome outcome
        cdef uint64_t slots = 1
        cdef bint waited = False
        if length > self.ring.slot_bytes or length > item_bytes_limit:
            self._check_length(length)
            slots = self.ring.slots_for(length)
            self.shared.note_long_items()
        self._find_ledger(&ledger)
        while True:
            if length < LONG_COPY:
                outcome = try_put_bytes(self.ring[0], ledger, data, length)
            else:
                self.guests.enter()
                with nogil:
                    outcome = try_put_bytes(self.ring[0], ledger, data, length)
                    if outcome == Outcome.done:
                        self.shared.items().notify()
                if not self._back(outcome == Outcome.done):
                    return 1
            if outcome == Outcome.done and not is_broken(self.guard):
                self.shared.items().notify()
                if waited and looks_pushable(self.ring[0], 1):
                    self.shared.room().notify()
                return 1
            if not self._wait_for_room(outcome, slots, deadline, &ledger):
                return 0
            waited = True

    cdef int _put_reference(self, object item, int64_t deadline) except -1:
        cdef Outcome outcome
        cdef bint waited = False
        while True:
            Py_INCREF(item)
            outcome = try_put_reference(self.ring[0], Local(), <PyObject*>item)
            if outcome == Outcome.done:
                notify_local(self.local.items())
                if waited and looks_pushable(self.ring[0], 1):
                    notify_local(self.local.room())
                return 1
            drop(<PyObject*>item)
            if not self._wait_for_room(outcome, 1, deadline, NULL):
                return 0
            waited = True

    cdef bint _wait_for_room(self, Outcome outcome, uint64_t slots, int64_t deadline, SharedLedger* ledger) except -1:
        """After a put that did not succeed: True to try again, False when the time is up."""
        cdef int64_t left
        if outcome == Outcome.closed:
            raise ShutDown(f"the queue {self._label()} is shut down")
        if outcome == Outcome.corrupt or is_broken(self.guard):
            self._raise_corrupt()
        if ledger is not NULL and self.shared.recovery_is_due(outcome) and self.shared.make_room(ledger[0]):
            return True
        if deadline == 1:
            return False
        left = remaining_ns(deadline)
        if left <= 0:
            return False
        if ledger is NULL:
            return self._park(self.local.room(), left, for_items=False)
        self.guests.enter()
        with nogil:
            self.shared.wait_for_room(slots, left)
        return self._after_wait(ledger)

    cdef bint _park(self, Event event, int64_t left, bint for_items) except -1:
        """Sleep on a local queue. Announced before the GIL is let go: see notify_local."""
        cdef uint32_t ticket = event.announce()
        if (looks_poppable(self.ring[0]) or is_ended(self.ring[0])) if for_items else looks_pushable(self.ring[0], 1):
            return True
        self.guests.enter()
        with nogil:
            event.park(ticket, min(left, park_limit_ns))
        return self._after_wait(NULL)

    cdef bint _after_wait(self, SharedLedger* ledger) except -1:
        """A signal may have come, the handle may have been closed, we may be a forked child by now."""
        self._leave()
        PyErr_CheckSignals()
        self._check_open()
        if ledger is not NULL:
            self._find_ledger(ledger)
        return True

    cdef int _leave(self) except -1:
        """Back with the GIL. Who closed the handle meanwhile has left the memory to the last one out."""
        if self.guests.leave() == 0 and self.is_closed and not without_gil:
            self._free()
            if self.segment is not None:
                self.segment.close()
        return 0

    cdef bint _back(self, bint finished) except -1:
        """Back from a copy: True if the handle is still open. If not, what is unfinished is refused."""
        self._leave()
        if self.is_closed and not finished:
            self._check_open()
        return not self.is_closed

    def put_many(self, items, block=True, timeout=None):
        """Put items in order; returns how many are in.

        Waits until all are in, at most ``timeout`` seconds. Raises Full, or ShutDown, only if none is in.
        """
        cdef int64_t deadline = deadline_of(block, timeout)
        if self.form == RECORD:
            self._check_open()
            return self._put_records(self._records(items), deadline)
        if type(items) is not tuple:
            items = list(items)  # ours: what the caller does to its own list meanwhile is nothing to us
        self._check_open()
        if self.form == LOCAL:
            return self._put_references(items, deadline)
        return self._put_bytes_many(items, deadline)

    cdef object _records(self, object items):
        """Several records, as a contiguous array in our dtype."""
        cdef object array
        if not isinstance(items, (list, numpy.ndarray)) and not hasattr(items, "__array__") \
                and not PyObject_CheckBuffer(items):
            items = list(items)
        if self.dtype.subdtype is None:
            array = numpy.ascontiguousarray(items, dtype=self.dtype)
        else:
            array = numpy.ascontiguousarray(items, dtype=self.dtype.base)
        if array.nbytes % self.dtype.itemsize != 0:
            raise ValueError(
                f"put_many takes whole items of dtype {self.dtype}: got shape {array.shape} of {array.dtype}"
            )
        return array

    cdef object _put_records(self, object array, int64_t deadline):
        cdef SharedLedger ledger
        cdef Outcome outcome
        cdef const char* data = <const char*>array_data(array)
        cdef uint64_t count = array.nbytes // self.dtype.itemsize
        cdef uint64_t total = 0
        cdef uint64_t put = 0
        self._check_open()
        self._find_ledger(&ledger)
        while total < count:
            if (count - total) * self.ring.slot_bytes < LONG_COPY:
                outcome = try_put_records(self.ring[0], ledger, data + total * self.ring.slot_bytes, count - total, put)
            else:
                self.guests.enter()
                with nogil:
                    outcome = try_put_records(
                        self.ring[0], ledger, data + total * self.ring.slot_bytes, count - total, put
                    )
                    if outcome == Outcome.done:
                        self.shared.items().notify()
                if not self._back(outcome == Outcome.done and total + put == count):
                    return count
            if outcome == Outcome.done and not is_broken(self.guard):
                total += put
                self.shared.items().notify()
            elif not self._go_on_putting(outcome, total, 1, deadline, &ledger):
                break
        return total

    cdef bint _go_on_putting(
        self, Outcome outcome, uint64_t total, uint64_t slots, int64_t deadline, SharedLedger* ledger
    ) except -1:
        """In a batch: what is in counts, so only an empty-handed batch raises."""
        if total > 0 and outcome == Outcome.closed:
            return False
        if self._wait_for_room(outcome, slots, deadline, ledger):
            return True
        if total == 0:
            raise Full
        return False

    cdef object _put_references(self, object items, int64_t deadline):
        cdef Outcome outcome
        cdef uint64_t total = 0
        cdef object item
        for item in items:
            while True:
                Py_INCREF(item)
                outcome = try_put_reference(self.ring[0], Local(), <PyObject*>item)
                if outcome == Outcome.done:
                    break
                drop(<PyObject*>item)
                if total > 0:
                    notify_local(self.local.items())
                if not self._go_on_putting(outcome, total, 1, deadline, NULL):
                    return total
            total += 1
        if total > 0:
            notify_local(self.local.items())
        return total

    cdef object _put_bytes_many(self, object items, int64_t deadline):
        cdef SharedLedger ledger
        cdef Outcome outcome
        cdef list lent = []
        cdef uint64_t total = 0
        cdef uint64_t put = 0
        cdef uint64_t length = 0
        cdef uint64_t bytes_in_all = 0
        cdef uint64_t i = 0
        cdef Buffer* buffers
        cdef uint64_t count
        if self.form == OBJECT:
            items = [encode_object(item) for item in items]
        count = len(items)
        buffers = <Buffer*>PyMem_Malloc((count + 1) * sizeof(Buffer))
        if buffers is NULL:
            raise MemoryError()
        try:
            for item in items:
                if type(item) is bytes:
                    buffers[i].data = PyBytes_AS_STRING(item)
                    buffers[i].bytes = PyBytes_GET_SIZE(item)
                else:
                    held = borrow(item)
                    lent.append(held)
                    buffers[i].data = (<Held>held).view.buf
                    buffers[i].bytes = (<Held>held).view.len
                i += 1
            self._check_open()
            for i in range(count):
                if buffers[i].bytes > self.ring.slot_bytes or buffers[i].bytes > item_bytes_limit:
                    self._check_length(buffers[i].bytes)
                    self.shared.note_long_items()
                bytes_in_all += buffers[i].bytes
            self._find_ledger(&ledger)
            while total < count:
                if bytes_in_all < LONG_COPY:
                    outcome = try_put_bytes_many(self.ring[0], ledger, buffers + total, count - total, put)
                else:
                    self.guests.enter()
                    with nogil:
                        outcome = try_put_bytes_many(self.ring[0], ledger, buffers + total, count - total, put)
                        if outcome == Outcome.done:
                            self.shared.items().notify()
                    if not self._back(outcome == Outcome.done and total + put == count):
                        return count
                if outcome == Outcome.done and not is_broken(self.guard):
                    total += put
                    self.shared.items().notify()
                elif not self._go_on_putting(
                    outcome, total, self.ring.slots_for(buffers[total].bytes), deadline, &ledger
                ):
                    break
        finally:
            PyMem_Free(buffers)
        return total

    # -- get --------------------------------------------------------------------------------------------

    def get(self, block=True, timeout=None):
        """Get an item; wait for one if ``block``, at most ``timeout`` seconds. Raises Empty or ShutDown."""
        cdef object item = self._get(deadline_of(block, timeout))
        if item is NOTHING:
            raise Empty
        return item

    def get_nowait(self):
        """``get(block=False)``."""
        cdef object item = self._get(1)
        if item is NOTHING:
            raise Empty
        return item

    def try_get(self, default=None):
        """Get an item if there is one now, else ``default``; never waits."""
        cdef object item = self._get(1)
        return default if item is NOTHING else item

    cdef object _get(self, int64_t deadline):
        cdef object item
        if self.is_closed:
            self._check_open()
        if self.form == LOCAL:
            return self._get_reference(deadline)
        item = self._get_bytes(deadline)
        if self.form == BYTES or item is NOTHING:
            return item
        return decode_object(item) if self.form == OBJECT else item[()]

    cdef object _room_for(self, uint64_t length):
        """Memory of our own for one item, made before the item is claimed: a MemoryError loses nothing."""
        cdef object target
        if self.form != RECORD:
            return PyBytes_FromStringAndSize(NULL, length)
        target = numpy.empty((), dtype=self.dtype)
        self._check_open()  # the collector may have run, and with it any code
        return target

    cdef void* _data_of(self, object target):
        return array_data(target) if self.form == RECORD else <void*>PyBytes_AS_STRING(target)

    cdef int _finish(self, SharedLedger ledger, const Peeked& peeked, object target) except -1:
        cdef void* to = self._data_of(target)
        if peeked.bytes < LONG_COPY:
            finish_pop(self.ring[0], ledger, peeked, to)
        else:
            self.guests.enter()
            with nogil:
                finish_pop(self.ring[0], ledger, peeked, to)
                self.shared.room().notify()
            self._back(True)
            return 0
        self.shared.room().notify()
        return 0

    cdef object _get_bytes(self, int64_t deadline):
        cdef SharedLedger ledger
        cdef Outcome outcome
        cdef Peeked peeked
        cdef object target
        cdef bint waited = False
        self._find_ledger(&ledger)
        while True:
            outcome = peek(self.ring[0], ledger, peeked)
            if outcome == Outcome.done:
                target = self._room_for(peeked.bytes)
                if not claim_pop(self.ring[0], ledger, peeked.span):
                    continue
                self._finish(ledger, peeked, target)
                if is_broken(self.guard):
                    self._raise_corrupt()
                if waited and not self.is_closed and looks_poppable(self.ring[0]):
                    self.shared.items().notify()
                return target
            target = self._recover(outcome, &ledger, peeked.skipped > 0)
            if target is RETRY:
                continue
            if target is not NOTHING:
                return target
            if not self._wait_for_items(deadline, &ledger):
                return NOTHING
            waited = True

    cdef object _recover(self, Outcome outcome, SharedLedger* ledger, bint skipped):
        """After a get that found nothing: an item of a dead consumer, RETRY if the dead were in the way, or NOTHING."""
        cdef Found found
        cdef object target
        if skipped:
            self.shared.room().notify()
        if outcome == Outcome.corrupt or is_broken(self.guard):
            self._raise_corrupt()
        if outcome == Outcome.closed and is_discarded(self.ring[0]):
            raise ShutDown(f"the queue {self._label()} is shut down")
        if outcome != Outcome.closed and not self.shared.recovery_is_due(outcome):
            return NOTHING
        found = self.shared.recovery().run()
        if found.unclaimed:
            self._raise_corrupt()
        if found.adoptable:
            target = self._room_for(found.peeked.bytes)
            if self.shared.recovery().try_adopt(ledger[0], found):
                self._finish(ledger[0], found.peeked, target)
                return target
            return RETRY
        if found.changed:
            self.shared.room().notify()
            return RETRY
        if outcome == Outcome.closed:
            raise ShutDown(f"the queue {self._label()} is shut down")
        return NOTHING

    cdef object _get_reference(self, int64_t deadline):
        cdef Outcome outcome
        cdef void* reference = NULL
        cdef bint waited = False
        while True:
            outcome = try_get_reference(self.ring[0], Local(), reference)
            if outcome == Outcome.done:
                notify_local(self.local.room())
                if waited and looks_poppable(self.ring[0]):
                    notify_local(self.local.items())
                return owned(reference)
            if outcome == Outcome.closed:
                raise ShutDown("the queue is shut down")
            if outcome == Outcome.corrupt:
                self._raise_corrupt()
            if not self._wait_for_items(deadline, NULL):
                return NOTHING
            waited = True

    cdef bint _wait_for_items(self, int64_t deadline, SharedLedger* ledger) except -1:
        """True to try again, False when the time is up."""
        cdef int64_t left
        if deadline == 1:
            return False
        left = remaining_ns(deadline)
        if left <= 0:
            return False
        if ledger is NULL:
            return self._park(self.local.items(), left, for_items=True)
        self.guests.enter()
        with nogil:
            self.shared.wait_for_items(left)
        return self._after_wait(ledger)

    def get_many(self, max_items, block=True, timeout=None):
        """Get at least one item and at most ``max_items``, without waiting for more than the first.

        A list, or for records one array. Raises Empty or ShutDown.
        """
        cdef int64_t deadline = deadline_of(block, timeout)
        cdef object found
        cdef uint64_t limit
        max_items = checked_int("max_items", max_items)
        if max_items < 1:
            raise ValueError(f"max_items must be at least 1: max_items={max_items}")
        limit = min(max_items, 1 << 32)
        self._check_open()
        if self.form == LOCAL:
            found = self._get_references(limit, deadline)
        else:
            found = self._get_batch(limit, deadline)
        if found is NOTHING:
            raise Empty
        return found

    cdef object _get_references(self, uint64_t limit, int64_t deadline):
        cdef void* reference = NULL
        cdef list found = []
        cdef object first
        self._check_open()
        first = self._get_reference(deadline)
        if first is NOTHING:
            return NOTHING
        found.append(first)
        while <uint64_t>len(found) < limit and try_get_reference(self.ring[0], Local(), reference) == Outcome.done:
            found.append(owned(reference))
        notify_local(self.local.room())
        return found

    cdef object _get_batch(self, uint64_t limit, int64_t deadline):
        cdef SharedLedger ledger
        cdef Outcome outcome
        cdef Peeked peeked
        cdef object batch
        cdef list spare = []
        cdef bint waited = False
        self._find_ledger(&ledger)
        while True:
            outcome = peek(self.ring[0], ledger, peeked)
            if outcome == Outcome.done:
                if self.form == RECORD:
                    batch = self._take_records(limit, ledger, &peeked)
                else:
                    batch = self._take_bytes(limit, ledger, &peeked, spare)
                if batch is None:
                    continue
                if is_broken(self.guard):
                    self._raise_corrupt()
                if waited and not self.is_closed and looks_poppable(self.ring[0]):
                    self.shared.items().notify()
                return batch
            batch = self._recover(outcome, &ledger, peeked.skipped > 0)
            if batch is RETRY:
                continue
            if batch is not NOTHING:
                return batch[numpy.newaxis] if self.form == RECORD else self._decoded([batch])
            if not self._wait_for_items(deadline, &ledger):
                return NOTHING
            waited = True

    cdef object _take_records(self, uint64_t limit, SharedLedger ledger, Peeked* peeked):
        """The records from the peeked one on; None if somebody else was faster."""
        cdef object target
        widen_records(self.ring[0], limit, peeked[0])
        target = numpy.empty(peeked.span.slots, dtype=self.dtype)
        self._check_open()
        if not claim_pop(self.ring[0], ledger, peeked.span):
            return None
        self._finish(ledger, peeked[0], target)
        return target

    cdef object _take_bytes(self, uint64_t limit, SharedLedger ledger, Peeked* peeked, list spare):
        """The same for bytes. What was allocated for a claim that failed is kept in `spare` for the next."""
        cdef uint64_t most = min(limit, <uint64_t>4096, self.ring.capacity)
        cdef uint64_t* lengths = <uint64_t*>PyMem_Malloc(most * sizeof(uint64_t))
        cdef uint64_t count, i, position
        cdef uint64_t in_all = 0
        if lengths is NULL:
            raise MemoryError()
        try:
            count = widen_bytes(self.ring[0], most, lengths, peeked[0])
            for i in range(count):
                in_all += lengths[i]
                if i == <uint64_t>len(spare):
                    spare.append(PyBytes_FromStringAndSize(NULL, lengths[i]))
                elif <uint64_t>PyBytes_GET_SIZE(spare[i]) != lengths[i]:
                    spare[i] = PyBytes_FromStringAndSize(NULL, lengths[i])
            del spare[count:]
            if not claim_pop(self.ring[0], ledger, peeked.span):
                return None
            position = peeked.span.position
            for i in range(count):
                copy_out(self.ring[0], position, PyBytes_AS_STRING(spare[i]), lengths[i])
                position += self.ring.slots_for(lengths[i])
            give_back(self.ring[0], ledger, peeked.span)
        finally:
            PyMem_Free(lengths)
        self.shared.room().notify()
        return self._decoded(spare)

    cdef list _decoded(self, list found):
        return [decode_object(item) for item in found] if self.form == OBJECT else found

    def __iter__(self):
        """Items until the queue is shut down and empty."""
        return self

    def __next__(self):
        try:
            return self._get(FOREVER)
        except ShutDown:
            raise StopIteration from None

    # -- asyncio ----------------------------------------------------------------------------------------

    def aput(self, item, timeout=None):
        """``await q.aput(item)``: put without blocking the event loop."""
        return self._bridge().put(item, timeout)

    def aget(self, timeout=None):
        """``await q.aget()``: get without blocking the event loop. A cancelled aget takes no item."""
        return self._bridge().get(timeout)

    cdef object _bridge(self):
        if self.waiters is None:
            self.waiters = _aio.Bridge(self)
        return self.waiters

    def _wait_ready(self, for_items, seconds):
        """Until there may be an item (or room), or the time is up. Takes nothing."""
        cdef int64_t deadline = deadline_of(True, seconds)
        cdef SharedLedger ledger
        cdef SharedLedger* line = NULL
        self._check_open()
        if self.shared is not NULL:
            self._find_ledger(&ledger)
            line = &ledger
        if for_items:
            self._wait_for_items(deadline, line)
        else:
            self._wait_for_room(Outcome.full, 1, deadline, line)

    # -- the end ----------------------------------------------------------------------------------------

    def shutdown(self, immediate=False):
        """No more puts; gets go on until the queue is empty, or with ``immediate`` end at once.

        As queue.Queue.shutdown of Python 3.13. Everybody who waits is woken.
        """
        self._check_open()
        cdef bint first
        if self.shared is not NULL:
            shut_down(self.ring[0], self.shared.items(), self.shared.room(), immediate)
            return
        first = not is_discarded(self.ring[0])
        shut_down(self.ring[0], self.local.items(), self.local.room(), immediate)
        if immediate and first:
            self.guests.enter()  # an item's end can run any code
            self._drop_references()
            self._leave()

    def close(self):
        """Give up this handle. The queue stays, for others and by its name; waiting threads get QueueClosed."""
        if self.is_closed:
            return
        self.is_closed = True
        self.guests.enter()
        if self.shared is not NULL:
            self.shared.items().wake_all()
            self.shared.room().wake_all()
        else:
            self.local.items().wake_all()
            self.local.room().wake_all()
            self._drop_references()
        self._leave()

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
                "use BoundedQueue.create(name, ...) to share one between processes"
            )
        from penstock.opening import reopen
        return reopen, (self.segment.name, str(self.segment.path.parent), self.segment.segment_id, type(self))


cdef object NOTHING = object()
cdef object RETRY = object()


cdef Held borrow(object item):
    """The bytes of anything that has some."""
    if isinstance(item, str):
        raise TypeError("a queue of bytes takes bytes, not str: encode it first, or create the queue with item=object")
    if isinstance(item, numpy.ndarray) and item.dtype.hasobject:
        raise TypeError("an array of Python objects has no bytes of its own: create the queue with item=object")
    try:
        return Held(item)
    except (TypeError, BufferError, ValueError) as error:
        raise TypeError(
            f"a queue of bytes takes bytes or a contiguous buffer, not {type(item).__name__}; "
            "create the queue with item=object for Python objects"
        ) from error


cdef object checked_int(str label, object value):
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{label} must be an int: {label}={value!r}")
    return value.__index__()


cdef int traverse(PyObject* queue, visitproc visit, void* arg) noexcept:
    """For the cycle collector: a local queue's items are reachable from it."""
    cdef LocalQueue* local = (<BoundedQueue>queue).local
    cdef int stop = original_traverse(queue, visit, arg)
    return stop if stop or local is NULL else visit_references(local.ring(), visit, arg)


cdef int clear(PyObject* queue) noexcept:
    if (<BoundedQueue>queue).local is not NULL:
        (<BoundedQueue>queue)._drop_references()
    return original_clear(queue)


cdef traverseproc original_traverse = (<PyTypeObject*>BoundedQueue).tp_traverse
cdef inquiry original_clear = (<PyTypeObject*>BoundedQueue).tp_clear
(<PyTypeObject*>BoundedQueue).tp_traverse = traverse
(<PyTypeObject*>BoundedQueue).tp_clear = clear
