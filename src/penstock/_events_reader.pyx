# cython: language_level=3, binding=False, freethreading_compatible=True
"""A reader of an event queue: sees every item from its place on, takes no lock to do so.

An ephemeral reader goes with its process. A durable one has a name, and its place is what it has committed.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint32_t, uint64_t

from penstock._events_body cimport EventsBody
from penstock._events_fetch cimport array_on, decoded, fetch_list, fetch_one, fetch_records, readable
from penstock._events_native cimport *
from penstock._kinds cimport RECORD
from penstock._native cimport array_data
from penstock._queue cimport AT_ONCE, FOREVER, NOTHING, checked_int, computed_deadline, remaining_ns

import numpy

from penstock import _aio
from penstock.errors import DataLost, Empty, QueueClosed, ReaderInUse, ShutDown, TooManyReaders
from penstock.views import ViewSession


cdef Reader make_reader(object queue, EventsBody body, object name, object start):
    cdef Reader self = Reader.__new__(Reader)
    cdef Subscribed subscribed
    cdef bytes encoded = b"" if name is None else name.encode()
    cdef uint64_t first = 0
    cdef EventsWord end
    if len(encoded) > reader_name_bytes:
        raise ValueError(f"a reader's name must have at most {reader_name_bytes} bytes: {len(encoded)}, {name[:40]!r}…")
    body.enter(FOREVER)
    end.word = body.map.control.end.load()
    if start == "latest":
        first = end.position()
    elif start == "earliest":
        first = earliest_position(body.map[0])
    else:
        first = start
    if first < earliest_position(body.map[0]):
        first = earliest_position(body.map[0])
    subscribed = body.queue.subscribe(encoded, len(encoded), name is not None, first, self.number, self.cursor)
    body.leave()
    if subscribed == Subscribed.table_full:
        raise TooManyReaders(
            f"all {body.map.reader_lines} readers of {body.label} are in use; close some, unsubscribe durable ones "
            "that are not needed, or create the queue with a larger readers="
        )
    if subscribed == Subscribed.busy:
        raise ReaderInUse(f"the reader {name!r} of {body.label} is held by somebody alive; close it there first")
    if subscribed == Subscribed.beyond:
        raise ValueError(f"start must not be beyond the end of {body.label}: start={start}, end={end.position()}")
    self.queue = queue
    self.body = body
    self.own_name = name
    self.is_durable = name is not None
    self.line = &body.log.readers().line(self.number)
    self.generation = body.queue.roster().generation()
    self.is_closed = False
    return self


@cython.no_gc_clear  # its end needs the body; no cycle consists of readers alone
cdef class Reader:
    """Made by ``EventQueue.subscribe``. One thread at a time uses it."""

    def __cinit__(self):
        self.is_closed = True

    def __dealloc__(self):
        """Never waits: the collector may run while this very thread holds the lock."""
        if not self.is_closed and self.is_ours():
            self.body.abandon_reader(self.number)

    cdef int check_usable(self) except -1:
        if self.is_closed:
            raise QueueClosed(f"this reader {self.own_name or ''!r} is closed; subscribe again")
        self.body.check_open()
        if self.generation != self.body.queue.roster().generation():
            raise QueueClosed(f"a reader of {self.body.label} stays with the process that subscribed: subscribe again")
        return 0

    cdef int check(self) except -1:
        self.check_usable()
        if self.is_busy:
            raise RuntimeError("a reader is used by one thread at a time, and not inside its own view")
        return 0

    # -- get --------------------------------------------------------------------------------------------

    def get(self, block=True, timeout=None):
        """The next item; waits for one if ``block``, at most ``timeout`` seconds. Raises Empty, ShutDown, DataLost."""
        cdef object item = self.get_one(computed_deadline(block, timeout), False)
        if item is NOTHING:
            raise Empty
        return item

    def get_nowait(self):
        """``get(block=False)``."""
        cdef object item = self.get_one(AT_ONCE, False)
        if item is NOTHING:
            raise Empty
        return item

    def try_get(self, default=None):
        """The next item if there is one now, else ``default``; never waits."""
        cdef object item = self.get_one(AT_ONCE, False)
        return default if item is NOTHING else item

    cdef object get_one(self, int64_t deadline, bint goes_on):
        """One item, or NOTHING. ``goes_on``: with the last session, as long as it has items."""
        cdef Run run
        cdef Found found
        cdef object item
        self.check()
        while True:
            if goes_on and self.cursor.position < self.session_end:
                found = Found.items
            else:
                found = begin_session(self.body.map[0], self.line[0], self.cursor, self.session_end)
            if found == Found.items:
                found = next_run(
                    self.body.map[0], self.line[0], not self.is_durable, self.cursor, self.session_end, 1, run
                )
            if found == Found.items:
                item = fetch_one(self.body, run)
                self.body.check_open()
                if still_holds(self.body.map[0], self.line[0]):
                    self.body.check_found(found)
                    self.cursor.position += 1
                    return decoded(self.body, item)
                found = Found.lost
            if self.stopped(found, deadline):
                return NOTHING

    def get_many(self, max_items, block=True, timeout=None):
        """At least one item and at most ``max_items``, without waiting for more than the first.

        A list, or for records one array, copied once. Raises Empty, ShutDown or DataLost.
        """
        cdef object found
        cdef int64_t deadline
        cdef uint64_t end = 0
        cdef Found outcome
        limit = checked_int("max_items", max_items)
        if limit < 1:
            raise ValueError(f"max_items must be at least 1: max_items={max_items}")
        deadline = computed_deadline(block, timeout)
        self.check()
        while True:
            outcome = begin_session(self.body.map[0], self.line[0], self.cursor, end)
            if outcome == Found.items:
                found = self.fetch(min(limit, end - self.cursor.position), end)
                if found is not None:
                    return found
                outcome = Found.lost
            if self.stopped(outcome, deadline):
                raise Empty

    cdef object fetch(self, uint64_t limit, uint64_t end):
        """So many items of a session; None: the reader was dropped."""
        self.is_busy = True
        try:
            if self.body.form == RECORD:
                return self.fetch_all_records(limit, end)
            return self.fetch_all_items(limit, end)
        finally:
            self.is_busy = False

    cdef object fetch_all_records(self, uint64_t limit, uint64_t end):
        cdef Cursor cursor = self.cursor
        cdef uint64_t taken = 0
        cdef Run run
        cdef Found found
        self.body.check_count(limit)
        array = numpy.empty(limit, dtype=self.body.dtype)
        cdef char* data = <char*>array_data(array)
        while taken < limit:
            found = next_run(self.body.map[0], self.line[0], not self.is_durable, cursor, end, limit - taken, run)
            self.body.check_found(found)
            if found != Found.items:
                break
            fetch_records(self.body, run, data + taken * self.body.map.item_bytes)
            self.body.check_open()  # a handle that was closed meanwhile held the chunk no longer
            if not still_holds(self.body.map[0], self.line[0]):
                break
            taken += run.items
            cursor.position += run.items
            self.cursor = cursor
        if taken == 0:
            return None
        return array if taken == limit else array[:taken]

    cdef object fetch_all_items(self, uint64_t limit, uint64_t end):
        cdef Cursor cursor = self.cursor
        cdef list taken = []
        cdef list fetched
        cdef list good
        cdef Run run
        cdef Found found
        while <uint64_t>len(taken) < limit and not self.body.is_closing:  # unpickling runs code, which may close us
            found = next_run(self.body.map[0], self.line[0], not self.is_durable, cursor, end, limit - len(taken), run)
            self.body.check_found(found)
            if found != Found.items:
                break
            fetched = fetch_list(self.body, run)
            if not still_holds(self.body.map[0], self.line[0]):
                break
            if fetched is None:
                self.body.raise_corrupt()
            good = readable(self.body, fetched)
            if not good and not taken:
                cursor.position += 1
                self.cursor = cursor
                return [decoded(self.body, fetched[0])]  # raises: it is this one's turn
            if taken:
                taken += good
            else:
                taken = good
            cursor.position += len(good)
            self.cursor = cursor
            if <uint64_t>len(good) < run.items:
                break
        return taken if taken else None

    def __iter__(self):
        """Items until the queue is shut down and all are seen; a session at a time."""
        return self

    def __next__(self):
        try:
            return self.get_one(FOREVER, True)
        except ShutDown:
            raise StopIteration from None

    cdef bint stopped(self, Found found, int64_t deadline) except -1:
        """After a session that gave nothing: True when the time is up, False to try again."""
        cdef int64_t left
        cdef uint64_t position = self.cursor.position
        self.body.check_found(found)
        if found == Found.lost:
            self.rejoin()
            return False
        if found == Found.items:
            return False
        if found == Found.ended:
            self.body.raise_shut_down()
        # Who has nothing to read needs nothing: else a writer might wait for a chunk that we have finished.
        if not self.is_durable and not move_to(self.body.map[0], self.line[0], position):
            self.rejoin()
            return False
        if deadline == AT_ONCE:
            return True
        left = remaining_ns(deadline)
        if left <= 0:
            return True
        with nogil:
            self.body.queue.wait_for_items(position, left)
        PyErr_CheckSignals()
        self.check()
        return False

    cdef int rejoin(self) except -1:
        """After a drop: DataLost, once, if it has lost something; then the reader goes on with what is kept."""
        cdef uint64_t wanted = self.cursor.position
        cdef uint64_t earliest
        self.body.enter(FOREVER)
        earliest = self.body.queue.rejoin(self.number, self.cursor)
        self.body.leave()
        if wanted >= earliest:
            return 0
        raise DataLost(
            f"the reader {self.own_name or 'without a name'!r} of {self.body.label} was dropped as the slowest when the "
            f"queue was full: wanted={wanted}, earliest={earliest}; it goes on there",
            wanted, earliest,
        )

    # -- without a copy ---------------------------------------------------------------------------------

    def view(self, max_items=None):
        """``with reader.view() as array``: the next records on the chunk itself, read-only, nothing copied.

        At most ``max_items``, and as many as stand in one chunk; none if nothing is there. The array is valid
        inside the ``with``; leaving it without an exception takes them.
        """
        if self.body is None or self.body.form != RECORD:
            raise TypeError("view() needs a queue of records: create it with item=<a numpy dtype>")
        limit = 1 << 48 if max_items is None else checked_int("max_items", max_items)
        if limit < 1:
            raise ValueError(f"max_items must be at least 1: max_items={max_items}")
        return ViewSession(self, limit)

    def _begin_view(self, limit):
        cdef uint64_t end = 0
        cdef Run run
        cdef Found found
        self.check()
        while True:
            found = begin_session(self.body.map[0], self.line[0], self.cursor, end)
            if found == Found.items:
                found = next_run(self.body.map[0], self.line[0], not self.is_durable, self.cursor, end, limit, run)
            if found == Found.items:
                self.body.check_found(found)
                self.is_busy = True
                return array_on(self.body, run)
            if self.stopped(found, AT_ONCE):
                return numpy.empty(0, dtype=self.body.dtype)

    def _end_view(self, count):
        """Take so many; raises DataLost if the reader was dropped, and they were overwritten, while it looked."""
        self.is_busy = False
        if count == 0:
            return
        self.check()
        if not still_holds(self.body.map[0], self.line[0]):
            self.rejoin()
        self.cursor.position += <uint64_t>count

    # -- where it is ------------------------------------------------------------------------------------

    @property
    def name(self):
        """By which it is found again; None: ephemeral."""
        return self.own_name

    @property
    def position(self):
        """The position of the next item to get."""
        self.check_usable()
        return self.cursor.position

    @property
    def committed(self):
        """Everything before this may be freed: what was committed, or for an ephemeral reader about where it is."""
        self.check_usable()
        return self.line.place.load() & ~dropped_bit

    @property
    def lag(self):
        """How many items are there that it has not got."""
        cdef EventsWord end
        self.check_usable()
        end.word = self.body.map.control.end.load()
        return max(0, <int64_t>(end.position() - self.cursor.position))

    @property
    def closed(self):
        """Was this reader closed?"""
        return self.is_closed

    def commit(self, position=None):
        """All before ``position`` is done with: it may be freed, and is not seen again after a restart.

        By default everything got so far. Only durable readers commit; the place of others follows them.
        """
        cdef EventsWord end
        self.check()
        if not self.is_durable:
            raise ValueError("only a durable reader commits: subscribe with a name")
        end.word = self.body.map.control.end.load()
        target = self.cursor.position if position is None else checked_int("position", position)
        if not 0 <= target <= end.position():
            raise ValueError(f"position must be between 0 and the end, {end.position()}: position={position}")
        while not move_to(self.body.map[0], self.line[0], target):
            self.rejoin()
        if self.cursor.position < <uint64_t>target:
            self.cursor.position = target
            self.cursor.chunk.data = NULL
        if self.body.syncs_always:
            self.body.write_to_disk()

    # -- asyncio ----------------------------------------------------------------------------------------

    def aget(self, timeout=None):
        """``await r.aget()``: get without blocking the event loop. A cancelled aget takes no item."""
        if self.waiters is None:
            self.waiters = _aio.Bridge(self)
        return self.waiters.get(timeout)

    def _wait_ready(self, for_items, slots, seconds):
        cdef uint64_t position
        cdef int64_t left = <int64_t>(seconds * 1e9)
        self.check_usable()
        position = self.cursor.position
        with nogil:
            self.body.queue.wait_for_items(position, left)
        self.check_usable()

    # -- the end ----------------------------------------------------------------------------------------

    def close(self):
        """Give up this reader. An ephemeral one is gone; a durable one keeps its committed place."""
        if not self.is_closed:
            self.release()

    cdef bint is_ours(self) noexcept:
        """Does this process hold its line?"""
        return not self.body.is_closing and self.generation == self.body.queue.roster().generation()

    cdef int release(self) except -1:
        self.is_closed = True
        if not self.is_ours():
            return 0
        if self.is_durable:
            self.body.queue.roster().let_go(reader_lock_number(self.number))
            return 0
        self.body.enter(FOREVER)
        self.body.queue.unsubscribe(self.number)
        return self.body.leave()

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.close()

    def __repr__(self):
        cdef str kind = f"durable {self.own_name!r}" if self.is_durable else "ephemeral"
        cdef str state = "closed" if self.is_closed else f"position={self.cursor.position}"
        return f"<penstock.Reader {kind} {state}>"

    def __reduce__(self):
        raise TypeError("a reader stays with the process that subscribed: pickle the queue and subscribe there")
