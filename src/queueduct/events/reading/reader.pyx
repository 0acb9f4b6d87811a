# cython: language_level=3, binding=False, freethreading_compatible=True
"""A reader of an event queue: it sees every item from its position on, and takes no lock.

An ephemeral reader ends with its process. A durable one has a name, and keeps the position that it has committed.
"""

cimport cython
from cpython.bytes cimport PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint64_t

from queueduct.events._backend cimport EventsBackend
from queueduct.events.reading._fetch cimport (
    array_on, bytes_in, decoded, fetch_list, fetch_one, fetch_records, window_on,
)
from queueduct.events._native cimport *
from queueduct.events.reading._position cimport count
from queueduct.items._item_kinds cimport BYTES, OBJECT, RECORD, REFERENCE
from queueduct.native._native cimport array_data, has_gil
from queueduct.items._objects cimport unpickle_all, unpickle_one
from queueduct.core._queue cimport AT_ONCE, FOREVER, TIMED_OUT, checked_int, computed_deadline, waited_until

from types import GenericAlias

import numpy

from queueduct.async_calls import AsyncGets
from queueduct.errors import ShutDown
from queueduct.events.reading._columns import ArrowReading
from queueduct.items.views import BegunView, ViewSession


cdef Reader make_reader(object queue, EventsBackend backend, str name, str named_start, uint64_t start):
    """``named_start`` is None, "earliest" or "latest"."""
    cdef Reader self = Reader.__new__(Reader)
    self.join(queue, backend, name, named_start, start)
    return self


def begun_view(Reader reader, limit):
    """Returns a view that has begun already. Raises Empty if there is no record now."""
    return BegunView(ViewSession(reader, limit, True, 0))


@cython.no_gc_clear  # its end needs the backend; no cycle consists of readers alone
cdef class Reader(ReaderPosition, ArrowReading, AsyncGets):
    """Reads an event queue, for one thread at a time. Made by ``EventQueue.subscribe``.

    >>> log = queueduct.EventQueue()
    >>> reader = log.subscribe()
    >>> log.put("a")
    >>> reader.get()
    'a'
    """
    # Every call is a critical section: without a GIL, too, no other thread enters it until it waits.

    __class_getitem__ = classmethod(GenericAlias)

    def __init__(self, *args, **kwargs):
        raise TypeError("a reader is made by EventQueue.subscribe()")

    @cython.critical_section
    def get(self, block=True, timeout=None):
        """Get the next item; wait if ``block``, at most ``timeout`` seconds. Raises Empty, ShutDown or DataLost.

        >>> log = queueduct.EventQueue()
        >>> reader = log.subscribe()
        >>> log.put("a")
        >>> reader.get(timeout=5)
        'a'
        """
        cdef int64_t deadline = computed_deadline(block, timeout)
        cdef object item = self.get_one(deadline, False)
        if item is TIMED_OUT:
            raise self.why_empty(waited_until(deadline, timeout))
        return item

    @cython.critical_section
    def get_nowait(self):
        """``get(block=False)``.

        >>> queueduct.EventQueue().subscribe().get_nowait()
        Traceback (most recent call last):
        queueduct.errors.QueueEmpty: the queue without a name has nothing new for ...
        """
        cdef object item = self.get_one(AT_ONCE, False)
        if item is TIMED_OUT:
            raise self.why_empty(0)
        return item

    @cython.critical_section
    def try_get(self, default=None):
        """Get the next item if there is one now, else return ``default``. Never waits.

        >>> queueduct.EventQueue().subscribe().try_get("nothing")
        'nothing'
        """
        cdef object item = self.get_one(AT_ONCE, False)
        return default if item is TIMED_OUT else item

    cdef object get_one(self, int64_t deadline, bint goes_on):
        """Returns one item, or TIMED_OUT. With ``goes_on`` it goes on in the last session while that has items."""
        cdef Run run
        cdef ReadResult found = ReadResult.nothing
        cdef object item
        cdef uint64_t position, length
        self.check()
        while True:
            if not has_gil and self.backend.item_kind == REFERENCE:
                item = self.take_reference(goes_on, &found)
                if item is not TIMED_OUT:
                    return item
                if self.stopped(found, deadline):
                    return TIMED_OUT
                continue
            position = self.cursor.position
            if goes_on and self.cursor.position < self.session_end:
                found = ReadResult.items
            else:
                found = begin_session(self.backend.map[0], self.line[0], self.cursor, self.session_end)
            if found == ReadResult.items:
                found = next_run(
                    self.backend.map[0], self.line[0], not self.is_durable, self.cursor, self.session_end, 1, run
                )
            if found == ReadResult.items:
                item = fetch_one(self.backend, run)
                self.backend.check_open()
                if self.cursor.position != position:  # another thread has got it
                    continue
                if still_holds(self.backend.map[0], self.line[0]):
                    self.backend.check_found(found)
                    if item is None and self.backend.item_kind != REFERENCE:
                        self.backend.raise_unreadable()
                    if self.backend.item_kind == OBJECT:
                        return self.unpickled(item)
                    length = self.backend.map.item_bytes
                    if self.backend.item_kind == BYTES:
                        length = PyBytes_GET_SIZE(item)
                    item = decoded(self.backend, item)
                    self.cursor.position += 1
                    count(self, 1, length)
                    return item
                found = ReadResult.lost
            if self.stopped(found, deadline):
                return TIMED_OUT

    cdef object unpickled(self, object item):
        """Unpickles the item, and moves past it unless an exception that is not the item's own ends that."""
        cdef bint is_over = False
        cdef uint64_t length = PyBytes_GET_SIZE(item)
        self.is_busy = True
        try:
            item = unpickle_one(item, &is_over)
        finally:
            self.is_busy = False
            self.cursor.position += is_over
            if is_over and self.is_ours():
                count(self, 1, length)
        self.check_process()
        return item

    cdef object take_reference(self, bint goes_on, ReadResult* found):
        """Returns one reference, or TIMED_OUT. Without a GIL the log's lock keeps others from dropping it."""
        cdef Run run
        cdef object item = TIMED_OUT
        self.backend.enter(FOREVER)
        if self.backend.is_closing:  # its lines are no longer held
            found[0] = ReadResult.nothing
        elif goes_on and self.cursor.position < self.session_end:
            found[0] = ReadResult.items
        else:
            found[0] = begin_session(self.backend.map[0], self.line[0], self.cursor, self.session_end)
        if found[0] == ReadResult.items:
            found[0] = next_run(
                self.backend.map[0], self.line[0], not self.is_durable, self.cursor, self.session_end, 1, run
            )
        if found[0] == ReadResult.items and not still_holds(self.backend.map[0], self.line[0]):
            found[0] = ReadResult.lost
        if found[0] == ReadResult.items:
            item = fetch_one(self.backend, run)
            self.cursor.position += 1
            count(self, 1, self.backend.map.item_bytes)
        self.backend.leave()
        self.backend.check_open()
        return item

    @cython.critical_section
    def get_many(self, max_items, block=True, timeout=None):
        """Get at least one item and at most ``max_items``, without waiting for more than the first.

        Returns a list, or one array if items are records. Raises Empty, ShutDown or DataLost.

        >>> log = queueduct.EventQueue()
        >>> reader = log.subscribe()
        >>> log.put("a")
        >>> reader.get_many(100)
        ['a']
        """
        cdef object found
        cdef int64_t deadline
        cdef uint64_t end = 0
        cdef ReadResult outcome
        limit = checked_int("max_items", max_items)
        if limit < 1:
            raise ValueError(f"max_items must be at least 1: max_items={max_items}")
        deadline = computed_deadline(block, timeout)
        self.check()
        while True:
            outcome = begin_session(self.backend.map[0], self.line[0], self.cursor, end)
            if outcome == ReadResult.items:
                found = self.fetch(min(limit, end - self.cursor.position), end)
                if found is not None:
                    return found
                outcome = ReadResult.lost
            if self.stopped(outcome, deadline):
                raise self.why_empty(waited_until(deadline, timeout))

    cdef object fetch(self, uint64_t limit, uint64_t end):
        """Returns up to ``limit`` items of a session, or None if the reader was dropped."""
        cdef bint is_locked = not has_gil and self.backend.item_kind == REFERENCE  # so that no thread drops them
        if is_locked:
            self.backend.enter(FOREVER)
        self.is_busy = True
        try:
            if is_locked:
                self.backend.check_open()  # a handle that was closed before no longer holds its lines
            if self.backend.item_kind == RECORD:
                return self.fetch_all_records(limit, end)
            return self.fetch_all_items(limit, end)
        finally:
            self.is_busy = False
            if is_locked:
                self.backend.leave()

    cdef object fetch_all_records(self, uint64_t limit, uint64_t end):
        cdef Cursor cursor = self.cursor
        cdef uint64_t taken = 0
        cdef Run run
        cdef ReadResult found
        cdef bint is_read
        self.backend.check_count(limit)
        array = numpy.empty(limit, dtype=self.backend.dtype)
        cdef char* data = <char*>array_data(array)
        while taken < limit:
            found = next_run(self.backend.map[0], self.line[0], not self.is_durable, cursor, end, limit - taken, run)
            self.backend.check_found(found)
            if found != ReadResult.items:
                break
            is_read = fetch_records(self.backend, run, data + taken * self.backend.map.item_bytes)
            self.backend.check_open()  # a handle that was closed meanwhile no longer held the chunk
            if not still_holds(self.backend.map[0], self.line[0]):
                break
            if not is_read:
                self.backend.raise_unreadable()
            self.backend.check_found(found)
            taken += run.items
            cursor.position += run.items
            self.cursor = cursor
            count(self, run.items, run.items * self.backend.map.item_bytes)
        if taken == 0:
            return None
        return array if taken == limit else array[:taken]

    cdef object fetch_all_items(self, uint64_t limit, uint64_t end):
        """Moves the position only when all items are fetched: after an exception they are delivered again."""
        cdef Cursor cursor = self.cursor
        cdef list taken = []
        cdef list fetched
        cdef list lengths = None
        cdef uint64_t over = 0
        cdef Run run
        cdef ReadResult found
        while <uint64_t>len(taken) < limit:
            found = next_run(self.backend.map[0], self.line[0], False, cursor, end, limit - len(taken), run)
            self.backend.check_found(found)
            if found != ReadResult.items:
                break
            if not has_gil and self.backend.item_kind == REFERENCE:
                if not still_holds(self.backend.map[0], self.line[0]):
                    break  # a reference that is read is counted at once: so it must still be there
            fetched = fetch_list(self.backend, run)
            self.backend.check_open()
            if not still_holds(self.backend.map[0], self.line[0]):
                break
            if fetched is None:
                self.backend.raise_unreadable()
            cursor.position += run.items
            if taken:
                taken += fetched
            else:
                taken = fetched
        if not taken:
            return None
        if self.backend.item_kind == OBJECT:
            lengths = list(map(len, taken))
            try:
                unpickle_all(taken, &over)
            finally:
                if self.is_ours():
                    count(self, over, sum(lengths[:over]))
                if self.cursor.position + over != cursor.position:  # not at the end of a run
                    cursor.position = self.cursor.position + over
                    cursor.chunk.data = NULL
                self.pass_by(cursor)
            self.check_process()
        else:
            self.pass_by(cursor)
            count(self, len(taken), bytes_in(taken) if self.backend.item_kind == BYTES else 0)
        return taken

    def __iter__(self):
        """Gets items until the queue is shut down and all are read."""
        return self

    @cython.critical_section
    def __next__(self):
        try:
            return self.get_one(FOREVER, True)
        except ShutDown:
            raise StopIteration from None

    def view(self, max_items=None, *, block=False, timeout=None):
        """Return the next records without a copy: ``with reader.view() as array``. The array is read-only.

        It has at most ``max_items`` records of one chunk, and none if there are none. With ``block`` the ``with`` waits
        for at least one, with a ``timeout`` at most so many seconds, and raises Empty or ShutDown. The array is valid
        inside the ``with``; leaving that without an exception moves past the records.

        >>> log = queueduct.EventQueue.create(None, item="f8")
        >>> reader = log.subscribe()
        >>> log.put(1.5)
        >>> with reader.view() as array:
        ...     print(array.sum())
        1.5
        """
        cdef uint64_t limit = self.view_limit(max_items)
        if not block and timeout is None:
            return ViewSession(self, limit)
        computed_deadline(True, timeout)  # refuses a wrong one here
        return ViewSession(self, limit, True, timeout)

    cdef uint64_t view_limit(self, object max_items) except 0:
        if self.backend is None or self.backend.item_kind != RECORD:
            raise TypeError("view() needs a queue of records: create it with item=<a numpy dtype>")
        limit = 1 << 48 if max_items is None else checked_int("max_items", max_items)
        if limit < 1:
            raise ValueError(f"max_items must be at least 1: max_items={max_items}")
        return min(limit, 1 << 48)

    @cython.critical_section
    def _begin_view(self, limit, viewer, waits, timeout):
        """``viewer`` identifies the view at its end. Without ``waits`` an array may have no records."""
        cdef int64_t deadline = computed_deadline(waits, timeout)
        cdef uint64_t end = 0
        cdef Run run
        cdef ReadResult found
        self.check()
        while True:
            found = begin_session(self.backend.map[0], self.line[0], self.cursor, end)
            if found == ReadResult.items:
                found = next_run(self.backend.map[0], self.line[0], not self.is_durable, self.cursor, end, limit, run)
            if found == ReadResult.items:
                self.window = window_on(self.backend, run, self.window)
                self.backend.check_found(found)
                array = array_on(self.backend, run, self.window)
                self.is_busy = True
                self.viewer = viewer
                return array
            if self.stopped(found, deadline):
                if waits:
                    raise self.why_empty(waited_until(deadline, timeout))
                return numpy.empty(0, dtype=self.backend.dtype)

    @cython.critical_section
    def _end_view(self, records, viewer):
        """Moves past so many records. Raises DataLost if the reader was dropped while the view was open.

        A missing page was read as zeros: then this raises, and does not move.
        """
        cdef bint is_faulted
        if self.viewer != viewer:
            return  # that view has ended already
        self.viewer = 0
        is_faulted = self.window is not None and self.window.is_faulted()
        self.is_busy = False
        if is_faulted:
            self.window = None
            self.backend.raise_if_cut()
        self.backend.check_sound()
        if records == 0 and not is_faulted:
            return
        self.check()
        if not still_holds(self.backend.map[0], self.line[0]):
            self.rejoin()
        self.backend.check_sound()
        if is_faulted:
            self.backend.raise_unreadable()
        self.cursor.position += <uint64_t>records
        count(self, records, <uint64_t>records * self.backend.map.item_bytes)

    def aview(self, max_items=None, timeout=None):
        """``async with r.aview() as array:``: view for asyncio; waits for a record, at most ``timeout`` seconds.

        >>> import asyncio
        >>> log = queueduct.EventQueue.create(None, item="f8")
        >>> reader = log.subscribe()
        >>> log.put(1.5)
        >>> async def total():
        ...     async with reader.aview() as array:
        ...         return float(array.sum())
        >>> asyncio.run(total())
        1.5
        """
        from queueduct.core.aio import Borrowing  # here, as in Queue
        limit = self.view_limit(max_items)
        return Borrowing(self._bridge().take, begun_view, (self, limit), timeout)

    def __aiter__(self):
        """Gets items until the queue is shut down and all are read."""
        return self

    def __anext__(self):
        return self._bridge().next()

    @cython.critical_section
    def _bridge(self):
        if self.waiters is None:
            from queueduct.core.aio import Bridge
            self.waiters = Bridge(self)
        return self.waiters

    @cython.critical_section
    def _wait_ready(self, for_items, slots, seconds):
        cdef uint64_t position
        cdef int64_t left = <int64_t>(seconds * 1e9)
        self.check_usable()
        position = self.cursor.position
        with nogil:
            self.backend.queue.wait_for_items(position, left)
        self.check_usable()
        self.backend.check_sound()

    def __repr__(self):
        cdef str kind = f"durable {self.own_name!r}" if self.is_durable else "ephemeral"
        cdef str state = "closed" if self.is_closed else f"position={self.cursor.position}"
        return f"<queueduct.Reader {kind} {state}>"

    def __reduce__(self):
        raise TypeError("a reader stays with the process that subscribed: pickle the queue and subscribe there")
