# cython: language_level=3, binding=False, freethreading_compatible=True
"""BoundedQueue: convert, wait, raise. The algorithm is in native/, the policy in segment.py and items.py."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals
from cpython.list cimport PyList_New
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from penstock._native cimport *
from penstock._queue cimport AT_ONCE, FOREVER, NOTHING, Queue, checked_int, enter, remaining_ns

import numpy

from penstock import items, segment
from penstock.errors import CorruptSegment, Full, ShutDown, TooManyParticipants
from penstock.stats import BoundedStats

import_array()

cdef enum Form:
    LOCAL = 0    # references within this process
    BYTES = 1    # from here on the numbers of items.py
    RECORD = 2
    OBJECT = 3

cdef uint64_t LONG_COPY = 65536      # bytes from which a copy is worth giving up the GIL
cdef uint64_t BATCH_LIMIT = 4096     # items of varying length that one claim takes
cdef object RETRY = object()
cdef object encode_object = items.encode_object
cdef object decode_object = items.decode_object


@cython.final
cdef class Held:
    """A buffer that somebody lends us, for as long as this lives."""
    cdef Py_buffer view

    def __cinit__(self, lender):
        PyObject_GetBuffer(lender, &self.view, PyBUF_SIMPLE)

    def __dealloc__(self):
        PyBuffer_Release(&self.view)


cdef Held borrow(object item):
    """The bytes of anything that has some."""
    if isinstance(item, str):
        raise TypeError("a queue of bytes takes bytes, not str: encode it first, or create the queue with item=object")
    try:
        return Held(item)
    except (TypeError, BufferError, ValueError) as error:
        raise TypeError(
            f"a queue of bytes takes bytes or a contiguous buffer, not {type(item).__name__}; "
            "create the queue with item=object for Python objects"
        ) from error


@cython.trashcan(True)  # queues in queues in queues: freeing them must not take a stack frame each
cdef class BoundedQueue(Queue):
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
    cdef object dtype

    def __init__(self, capacity=1024):
        if self.ring is not NULL:
            raise TypeError("a queue is initialised once")
        segment.Geometry("bounded", checked_int("capacity", capacity), sizeof(void*), 1).check()
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
        geometry = segment.Geometry(
            "bounded",
            checked_int("capacity", capacity),
            item_type.slot_bytes(None if slot_bytes is None else checked_int("slot_bytes", slot_bytes)),
            checked_int("participants", participants),
        )
        return cls._attach(segment.create(name, geometry, item_type, exist_ok=exist_ok), True)

    @classmethod
    def open(cls, name, *, allow_pickle=True):
        """Open the bounded queue of that name. Without ``allow_pickle``, one of objects is refused."""
        return cls._attach(segment.open_segment(name, kind="bounded"), allow_pickle)

    @classmethod
    def _attach(cls, opened, allow_pickle):
        cdef BoundedQueue self = cls.__new__(cls)
        try:
            opened.item.check_pickle(opened.name, allow_pickle)
            self._map(opened)
        except BaseException:
            opened.close()
            raise
        return self

    cdef int _map(self, object opened) except -1:
        cdef BoundedOffsets at
        cdef Identity identity
        cdef Held memory = Held(opened.memory)
        cdef dict offsets = opened.offsets
        at.control = offsets["control_offset"]
        at.participants = offsets["participants_offset"]
        at.generations = offsets["generations_offset"]
        at.lengths = offsets["lengths_offset"]
        at.payload = offsets["payload_offset"]
        boot = segment.boot_id()
        identity.boot_id[0] = int.from_bytes(boot[:8], "little")
        identity.boot_id[1] = int.from_bytes(boot[8:], "little")
        identity.start_ticks = segment.process_start_ticks()
        self.guard = watch(memory.view.buf, memory.view.len)
        self.shared = new SharedQueue(
            <byte*>memory.view.buf, at, opened.geometry.capacity, opened.geometry.slot_bytes,
            opened.geometry.participants, opened.take_lock_fd(), identity,
        )
        self.segment = opened
        self.dtype = opened.item.dtype
        self.form = <Form><int>opened.item.kind
        self.ring = &self.shared.ring()
        self.is_closed = False
        return 0

    def __dealloc__(self):
        self._free()

    cdef void _free(self) noexcept:
        if self.local is not NULL:
            self._drop_references()
        forget(self.guard)
        self.guard = NULL
        del self.shared
        self.shared = NULL
        del self.local
        self.local = NULL
        free(self.local_memory)
        self.local_memory = NULL

    cdef void _drop_references(self) noexcept:
        """Forget what a local queue still holds. Nobody else gets from it any more."""
        cdef void* reference = NULL
        cdef object item
        while try_drain_reference(self.local.ring(), reference):
            item = owned(reference)
            item = None

    cdef int _raise_corrupt(self) except -1:
        if is_broken(self.guard):
            raise CorruptSegment(f"the segment of {self._label()} was truncated while it was in use; recreate the queue")
        raise CorruptSegment(
            f"the positions and generations of {self._label()} contradict each other: "
            f"push_position={self.ring.push_position.load()}, pop_position={self.ring.pop_position.load()}, "
            f"capacity={self.ring.capacity}; recreate the queue"
        )

    cdef int _raise_shut_down(self) except -1:
        raise ShutDown(f"the queue {self._label()} is shut down")

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

    # -- looks ------------------------------------------------------------------------------------------

    @property
    def capacity(self):
        """Slots: with items of one slot, how many fit."""
        self._check_open()
        return self.ring.capacity

    cdef object _size(self):
        return count_items(self.ring[0], self.shared is not NULL and self.shared.may_hold_gaps())

    def full(self):
        """Is there no free slot? A hint, as with every queue that others use."""
        self._check_open()
        return slots_in_use(self.ring[0]) >= self.ring.capacity

    def stats(self):
        """One look at the queue's counters."""
        self._check_open()
        cdef uint64_t pushed = self.ring.push_position.load()
        cdef uint64_t popped = self.ring.pop_position.load()
        cdef bint is_shared = self.shared is not NULL
        return BoundedStats(
            capacity=self.ring.capacity,
            size=self._size(),
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

    # -- put --------------------------------------------------------------------------------------------

    cdef int _put(self, object item, int64_t deadline) except -1:
        cdef Held lent
        if self.form == LOCAL:
            return self._put_reference(item, deadline)
        if self.form == RECORD:
            item = self._records(item, one=True)
            return self._put_bytes(array_data(item), self.ring.slot_bytes, deadline)
        if self.form == OBJECT:
            item = encode_object(item)
        elif type(item) is not bytes:
            lent = borrow(item)
            return self._put_bytes(lent.view.buf, lent.view.len, deadline)
        return self._put_bytes(PyBytes_AS_STRING(item), PyBytes_GET_SIZE(item), deadline)

    cdef object _put_many(self, object items, int64_t deadline):
        if self.form == RECORD:
            return self._put_records(self._records(items, one=False), deadline)
        if self.form == OBJECT:
            items = tuple([encode_object(item) for item in items])
        else:
            items = tuple(items)  # ours: what the caller does to its own list meanwhile is nothing to us
        return self._put_references(items, deadline) if self.form == LOCAL else self._put_bytes_many(items, deadline)

    cdef object _records(self, object given, bint one):
        """Records as a contiguous array in our dtype; nothing is narrowed in silence."""
        cdef object base = self.dtype if self.dtype.subdtype is None else self.dtype.base
        cdef object array
        if isinstance(given, numpy.ndarray):
            if given.dtype != base and not numpy.can_cast(given.dtype, base, "same_kind"):
                raise TypeError(f"cannot put items of dtype {given.dtype} as {base}: convert them with astype first")
        elif not one and not isinstance(given, (list, tuple)) and not hasattr(given, "__array__") \
                and not PyObject_CheckBuffer(given):
            given = list(given)
        array = numpy.ascontiguousarray(given, dtype=base)
        if (array.nbytes != self.dtype.itemsize) if one else (array.nbytes % self.dtype.itemsize != 0):
            raise ValueError(
                f"{'put takes one item' if one else 'put_many takes whole items'} of dtype {self.dtype}: "
                f"got shape {array.shape} of {array.dtype}"
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
        self.shared.note_long_items()
        return 0

    cdef int _put_bytes(self, const void* data, uint64_t length, int64_t deadline) except -1:
        cdef SharedLedger ledger
        cdef Outcome outcome
        cdef bint waited = False
        if length > self.ring.slot_bytes or length > item_bytes_limit:
            self._check_length(length)
        self._find_ledger(&ledger)
        while True:
            if length < LONG_COPY:
                outcome = try_put_bytes(self.ring[0], ledger, data, length)
            else:
                with nogil:
                    outcome = try_put_bytes(self.ring[0], ledger, data, length)
            if outcome == Outcome.done:
                self._after_put(waited)
                return 1
            if not self._wait_for_room(outcome, self.ring.slots_for(length), deadline, &ledger):
                return 0
            waited = True

    cdef inline int _after_put(self, bint waited) except -1:
        if is_broken(self.guard):
            self._raise_corrupt()
        self.shared.items().notify()
        if waited and looks_pushable(self.ring[0], 1):
            self.shared.room().notify()
        return 0

    cdef object _put_records(self, object array, int64_t deadline):
        cdef SharedLedger ledger
        cdef Outcome outcome
        cdef const char* data = <const char*>array_data(array)
        cdef uint64_t count = <uint64_t>array.nbytes // self.ring.slot_bytes
        cdef uint64_t total = 0
        cdef uint64_t put = 0
        cdef bint waited = False
        self._find_ledger(&ledger)
        while total < count:
            if (count - total) * self.ring.slot_bytes < LONG_COPY:
                outcome = try_put_records(self.ring[0], ledger, data + total * self.ring.slot_bytes, count - total, put)
            else:
                with nogil:
                    outcome = try_put_records(
                        self.ring[0], ledger, data + total * self.ring.slot_bytes, count - total, put
                    )
            if outcome == Outcome.done:
                total += put
                self._after_put(waited)
            elif not self._go_on_putting(outcome, total, 1, deadline, &ledger):
                break
            else:
                waited = True
        return total

    cdef object _put_bytes_many(self, tuple items, int64_t deadline):
        cdef SharedLedger ledger
        cdef Outcome outcome
        cdef list lent = []
        cdef uint64_t count = len(items)
        cdef uint64_t total = 0
        cdef uint64_t put = 0
        cdef uint64_t in_all = 0
        cdef bint waited = False
        cdef Buffer* buffers = <Buffer*>PyMem_Malloc((count + 1) * sizeof(Buffer))
        if buffers is NULL:
            raise MemoryError()
        try:
            in_all = self._collect(items, buffers, lent)
            self._find_ledger(&ledger)
            while total < count:
                if in_all < LONG_COPY:
                    outcome = try_put_bytes_many(self.ring[0], ledger, buffers + total, count - total, put)
                else:
                    with nogil:
                        outcome = try_put_bytes_many(self.ring[0], ledger, buffers + total, count - total, put)
                if outcome == Outcome.done:
                    total += put
                    self._after_put(waited)
                elif not self._go_on_putting(
                    outcome, total, self.ring.slots_for(buffers[total].bytes), deadline, &ledger
                ):
                    break
                else:
                    waited = True
        finally:
            PyMem_Free(buffers)
        return total

    cdef uint64_t _collect(self, tuple items, Buffer* buffers, list lent) except? 0:
        """Where each item's bytes are; `lent` keeps borrowed ones there. Returns their number."""
        cdef uint64_t in_all = 0
        cdef uint64_t i = 0
        cdef Held held
        for item in items:
            if type(item) is bytes:
                buffers[i].data = PyBytes_AS_STRING(item)
                buffers[i].bytes = PyBytes_GET_SIZE(item)
            else:
                held = borrow(item)
                lent.append(held)
                buffers[i].data = held.view.buf
                buffers[i].bytes = held.view.len
            if buffers[i].bytes > self.ring.slot_bytes or buffers[i].bytes > item_bytes_limit:
                self._check_length(buffers[i].bytes)
            in_all += buffers[i].bytes
            i += 1
        return in_all

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

    # -- get --------------------------------------------------------------------------------------------

    cdef object _get(self, int64_t deadline):
        cdef object item
        if self.form == LOCAL:
            return self._get_reference(deadline)
        item = self._get_bytes(deadline)
        if self.form == BYTES or item is NOTHING:
            return item
        return decode_object(item) if self.form == OBJECT else item[()]

    cdef object _get_many(self, uint64_t limit, int64_t deadline):
        return self._get_references(limit, deadline) if self.form == LOCAL else self._get_batch(limit, deadline)

    cdef object _room_for(self, uint64_t length):
        """Memory of our own for one item, made before the item is claimed: a MemoryError loses nothing."""
        return numpy.empty((), dtype=self.dtype) if self.form == RECORD else PyBytes_FromStringAndSize(NULL, length)

    cdef int _finish(self, SharedLedger ledger, const Peeked& peeked, object target) except -1:
        """Copy out what was claimed, and give its slots back."""
        cdef void* to = array_data(target) if self.form == RECORD else <void*>PyBytes_AS_STRING(target)
        if peeked.bytes < LONG_COPY:
            finish_pop(self.ring[0], ledger, peeked, to)
        else:
            with nogil:
                finish_pop(self.ring[0], ledger, peeked, to)
        return 0

    cdef inline int _after_get(self, bint waited) except -1:
        if is_broken(self.guard):
            self._raise_corrupt()
        self.shared.room().notify()
        if waited and looks_poppable(self.ring[0]):
            self.shared.items().notify()
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
                self._after_get(waited)
                return target
            target = self._recover(outcome, ledger, peeked.skipped > 0)
            if target is RETRY:
                continue
            if target is not NOTHING or not self._wait_for_items(deadline, &ledger):
                return target
            waited = True

    cdef object _recover(self, Outcome outcome, SharedLedger ledger, bint skipped):
        """After a get that found nothing: an item of a dead consumer, RETRY if the dead were in the way, or NOTHING."""
        cdef Found found
        cdef object target
        if skipped:
            self.shared.room().notify()
        if outcome == Outcome.corrupt or is_broken(self.guard):
            self._raise_corrupt()
        if outcome == Outcome.closed:
            if is_discarded(self.ring[0]):
                self._raise_shut_down()
        elif not self.shared.recovery_is_due(outcome):
            return NOTHING
        found = self.shared.recovery().run()
        if found.unclaimed:
            self._raise_corrupt()
        if found.adoptable:
            target = self._room_for(found.peeked.bytes)
            if not self.shared.recovery().try_adopt(ledger, found):
                return RETRY
            self._finish(ledger, found.peeked, target)
            self._after_get(True)
            return target
        if found.changed:
            self.shared.room().notify()
            return RETRY
        if outcome == Outcome.closed:
            self._raise_shut_down()
        return NOTHING

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
                self._after_get(waited)
                return self._decoded(batch) if self.form == OBJECT else batch
            batch = self._recover(outcome, ledger, peeked.skipped > 0)
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
        if not claim_pop(self.ring[0], ledger, peeked.span):
            return None
        self._finish(ledger, peeked[0], target)
        return target

    cdef object _take_bytes(self, uint64_t limit, SharedLedger ledger, Peeked* peeked, list spare):
        """The same for bytes. What was allocated for a claim that failed is kept in `spare` for the next."""
        cdef uint64_t most = min(limit, BATCH_LIMIT, self.ring.capacity)
        cdef uint64_t* lengths = <uint64_t*>PyMem_Malloc(most * sizeof(uint64_t))
        cdef uint64_t count, i, position
        if lengths is NULL:
            raise MemoryError()
        try:
            count = widen_bytes(self.ring[0], most, lengths, peeked[0])
            for i in range(count):
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
        return spare

    cdef list _decoded(self, list found):
        return [decode_object(item) for item in found] if self.form == OBJECT else found

    # -- waiting ----------------------------------------------------------------------------------------

    cdef bint _wait_for_room(self, Outcome outcome, uint64_t slots, int64_t deadline, SharedLedger* ledger) except -1:
        """After a put that did not succeed: True to try again, False when the time is up."""
        cdef int64_t left
        if outcome == Outcome.closed:
            self._raise_shut_down()
        if outcome == Outcome.corrupt or is_broken(self.guard):
            self._raise_corrupt()
        if ledger is not NULL and self.shared.recovery_is_due(outcome) and self.shared.make_room(ledger[0]):
            return True
        if deadline == AT_ONCE:
            return False
        left = remaining_ns(deadline)
        if left <= 0:
            return False
        if ledger is NULL:
            return self._park(self.local.room(), left, for_items=False)
        with nogil:
            self.shared.wait_for_room(slots, left)
        return self._after_wait(ledger)

    cdef bint _wait_for_items(self, int64_t deadline, SharedLedger* ledger) except -1:
        """The same after a get."""
        cdef int64_t left
        if deadline == AT_ONCE:
            return False
        left = remaining_ns(deadline)
        if left <= 0:
            return False
        if ledger is NULL:
            return self._park(self.local.items(), left, for_items=True)
        with nogil:
            self.shared.wait_for_items(left)
        return self._after_wait(ledger)

    cdef bint _park(self, Event event, int64_t left, bint for_items) except -1:
        """Sleep on a local queue. Announced before the GIL is let go: see notify_local."""
        cdef uint32_t ticket = event.announce()
        if (looks_poppable(self.ring[0]) or is_ended(self.ring[0])) if for_items else looks_pushable(self.ring[0], 1):
            return True
        with nogil:
            event.park(ticket, min(left, park_limit_ns))
        return self._after_wait(NULL)

    cdef bint _after_wait(self, SharedLedger* ledger) except -1:
        """A signal may have come, the handle may have been closed, we may be a forked child by now."""
        PyErr_CheckSignals()
        self._check_open()
        if ledger is not NULL:
            self._find_ledger(ledger)
        return True

    cdef int _wait(self, bint for_items, int64_t deadline) except -1:
        cdef SharedLedger ledger
        cdef SharedLedger* line = NULL
        if self.shared is not NULL:
            self._find_ledger(&ledger)
            line = &ledger
        if for_items:
            self._wait_for_items(deadline, line)
        else:
            self._wait_for_room(Outcome.full, 1, deadline, line)
        return 0

    # -- references within this process -----------------------------------------------------------------

    cdef int _put_reference(self, object item, int64_t deadline) except -1:
        cdef Outcome outcome
        cdef bint waited = False
        while True:
            Py_INCREF(item)  # before it is published: a consumer may drop it at once
            outcome = try_put_reference(self.ring[0], Local(), <PyObject*>item)
            if outcome == Outcome.done:
                self._after_put_reference(waited)
                return 1
            Py_DECREF(item)
            if not self._wait_for_room(outcome, 1, deadline, NULL):
                return 0
            waited = True

    cdef object _put_references(self, tuple items, int64_t deadline):
        cdef Outcome outcome
        cdef void** references = references_of(items)
        cdef uint64_t count = len(items)
        cdef uint64_t total = 0
        cdef uint64_t put = 0
        cdef uint64_t wanted
        cdef bint waited = False
        while total < count:
            wanted = min(count - total, self.ring.capacity)
            count_each(references + total, wanted)
            outcome = try_put_references(self.ring[0], Local(), references + total, wanted, put)
            drop_each(references + total + put, wanted - put)
            if outcome == Outcome.done:
                total += put
                self._after_put_reference(waited)
            elif not self._go_on_putting(outcome, total, 1, deadline, NULL):
                break
            else:
                waited = True
        return total

    cdef inline void _after_put_reference(self, bint waited) noexcept:
        notify_local(self.local.items())
        if waited and looks_pushable(self.ring[0], 1):
            notify_local(self.local.room())

    cdef object _get_reference(self, int64_t deadline):
        cdef Outcome outcome
        cdef void* reference = NULL
        cdef bint waited = False
        while True:
            outcome = try_get_reference(self.ring[0], Local(), reference)
            if outcome == Outcome.done:
                self._after_get_reference(waited)
                return owned(reference)
            if not self._wait_for_reference(outcome, deadline):
                return NOTHING
            waited = True

    cdef object _get_references(self, uint64_t limit, int64_t deadline):
        cdef Outcome outcome
        cdef Peeked peeked
        cdef list found
        cdef bint waited = False
        while True:
            outcome = peek_local(self.ring[0], Local(), peeked)
            if outcome == Outcome.done:
                widen_records(self.ring[0], limit, peeked)
                found = PyList_New(peeked.span.slots)  # of NULLs, until they are taken
                if not try_take_references(self.ring[0], Local(), peeked.span, references_of(found)):
                    continue
                self._after_get_reference(waited)
                return found
            if not self._wait_for_reference(outcome, deadline):
                return NOTHING
            waited = True

    cdef inline void _after_get_reference(self, bint waited) noexcept:
        notify_local(self.local.room())
        if waited and looks_poppable(self.ring[0]):
            notify_local(self.local.items())

    cdef bint _wait_for_reference(self, Outcome outcome, int64_t deadline) except -1:
        if outcome == Outcome.closed:
            self._raise_shut_down()
        if outcome == Outcome.corrupt:
            self._raise_corrupt()
        return self._wait_for_items(deadline, NULL)

    # -- the end ----------------------------------------------------------------------------------------

    cdef int _end(self, bint immediate) except -1:
        if self.shared is not NULL:
            shut_down(self.ring[0], self.shared.items(), self.shared.room(), immediate)
        elif shut_down(self.ring[0], self.local.items(), self.local.room(), immediate):
            self._drop_references()
        return 0

    cdef void _wake_everybody(self) noexcept:
        if self.shared is not NULL:
            self.shared.items().wake_all()
            self.shared.room().wake_all()
        elif self.local is not NULL:
            self.local.items().wake_all()
            self.local.room().wake_all()


# For the cycle collector: a local queue's items are reachable from it.

cdef int traverse(PyObject* queue, visitproc visit, void* arg) noexcept:
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
