# cython: language_level=3, binding=False, freethreading_compatible=True
"""A reader's position in an event queue: a line in the table of readers, and a cursor.

The queue keeps the items from the line's position on for the reader. After a drop or a cut some of them are lost, and
the reader goes on with the first one that is kept.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint32_t, uint64_t

from queueduct.events._backend cimport EventsBackend
from queueduct.events.reading._held cimport held_back
from queueduct.events._native cimport *
from queueduct.core._put_once cimport encoded_name
from queueduct.core._queue cimport AT_ONCE, FOREVER, checked_int, remaining_ns
from queueduct.native._native cimport count_wait, monotonic_ns

from queueduct.errors import DataLost, QueueClosed, QueueEmpty, ReaderInUse, TooManyReaders

cdef str ALL_READ = "the queue {queue} has nothing new for {reader}, which is at its end, position {position:,}{waited}"


@cython.auto_pickle(False)  # Reader.__reduce__ refuses
@cython.no_gc_clear  # its end needs the backend; no cycle consists of readers alone
cdef class ReaderPosition:
    """The base of Reader. Its calls are critical sections, as the reader's own."""

    def __cinit__(self):
        self.is_closed = True
        self.waited_at = <uint64_t>-1

    def __dealloc__(self):
        """Never waits: the garbage collector may run while this thread holds the lock."""
        if not self.is_closed and self.is_ours():
            self.backend.abandon_reader(self.number)

    cdef int join(self, object queue, EventsBackend backend, str name, str named_start, uint64_t start) except -1:
        """``named_start`` is None, "earliest" or "latest". Nothing may raise under the lock: so all values are C's."""
        cdef Subscribed subscribed
        cdef bytes encoded = b"" if name is None else encoded_name("reader", name)
        cdef const char* text = encoded
        cdef uint32_t length = min(len(encoded), reader_name_bytes)
        cdef bint is_durable = name is not None
        cdef bint is_latest = named_start == "latest"
        cdef uint64_t first = 0 if named_start == "earliest" else start
        cdef EventsWord end
        if len(encoded) > reader_name_bytes:
            raise ValueError(
                f"a reader's name must have at most {reader_name_bytes} bytes: {len(encoded)}, {name[:40]!r}…"
            )
        backend.check_held()
        backend.enter(FOREVER)
        end = end_word(backend.map)
        if is_latest:
            first = end.position()
        if first < earliest_position(backend.map[0]):
            first = earliest_position(backend.map[0])
        subscribed = backend.queue.subscribe(text, length, is_durable, first, self.number, self.cursor)
        backend.leave()
        backend.check_sound()
        if subscribed == Subscribed.table_full:
            raise TooManyReaders(
                f"all {backend.map.reader_lines} readers of {backend.told} are in use: {held_back(backend, True)}; "
                "close some, unsubscribe() durable ones that are not needed, or create the queue with a larger readers="
            )
        if subscribed == Subscribed.busy:
            raise ReaderInUse(f"the reader {name!r} of {backend.told} is held by a live process; close it there first")
        if subscribed == Subscribed.beyond:
            raise ValueError(
                f"start must not be beyond the end of {backend.told}: start={start}, end={end.position()}"
            )
        self.queue = queue
        self.backend = backend
        self.own_name = name
        self.is_durable = name is not None
        self.line = &backend.log.readers().line(self.number)
        self.generation = backend.queue.participant_table().generation()
        self.is_closed = False
        return 0

    cdef int check_usable(self) except -1:
        if self.is_closed:
            raise QueueClosed(f"this reader {self.own_name or ''!r} is closed; subscribe again")
        self.backend.check_open()
        return self.check_process()

    cdef int check_process(self) except -1:
        if self.generation != self.backend.queue.participant_table().generation():
            raise QueueClosed(
                f"a reader of {self.backend.told} stays with the process that subscribed: subscribe again"
            )
        return 0

    cdef int check(self) except -1:
        self.check_usable()
        if self.is_busy:
            raise RuntimeError("a reader is used by one thread at a time, and not inside its own view")
        return 0

    # -- wait and rejoin --------------------------------------------------------------------------------

    cdef bint stopped(self, ReadResult found, int64_t deadline) except -1:
        """Waits after a session without items. Returns true if the time is up, false to try again."""
        cdef int64_t left, began
        cdef uint64_t position = self.cursor.position
        self.backend.check_found(found)
        if found == ReadResult.lost:
            self.rejoin()
            return False
        if found == ReadResult.items:
            return False
        if found == ReadResult.ended:
            self.backend.raise_shut_down()
        # A reader without items to read holds none back: else a producer might wait for a chunk that it has read.
        if not self.is_durable and not move_to(self.backend.map[0], self.line[0], position):
            self.rejoin()
            return False
        if deadline == AT_ONCE:
            return True
        left = remaining_ns(deadline)
        if left <= 0:
            return True
        began = monotonic_ns()
        with nogil:
            self.backend.queue.wait_for_items(position, left)
        if not self.is_closed and self.is_ours():
            count_wait(self.line.counters, True, position != self.waited_at, began)
        self.waited_at = position
        PyErr_CheckSignals()
        self.check()
        return False

    cdef int rejoin(self) except -1:
        """After a drop or a cut. Raises DataLost, once, if items are lost. The reader goes on with the kept ones."""
        cdef uint64_t wanted = self.cursor.position
        cdef uint64_t beyond = self.line.beyond.load()
        cdef uint64_t earliest
        self.backend.enter(FOREVER)
        earliest = self.backend.queue.rejoin(self.number, self.cursor)
        self.backend.leave()
        self.backend.check_sound()
        if beyond != 0:
            raise DataLost(
                f"the machine went down, and {self.backend.told} was cut back to what was on its disk: the reader "
                f"{self.own_name!r} had committed position {beyond}, the log was cut at {wanted}; what lay beyond is "
                "lost, and its positions belong to other items; the reader goes on at the cut",
                beyond, wanted,
            )
        if wanted >= earliest:
            return 0
        raise DataLost(
            f"the reader {self.own_name or 'without a name'!r} of {self.backend.told} was dropped as the slowest when "
            f"the queue was full: wanted={wanted}, earliest={earliest}; it goes on there",
            wanted, earliest,
        )

    cdef int pass_by(self, const Cursor& cursor) except -1:
        """Moves the cursor. The line of an ephemeral reader follows it from chunk to chunk."""
        cdef bint crossed = cursor.chunk.data is NULL or cursor.chunk.number != self.cursor.chunk.number
        self.cursor = cursor
        if crossed and not self.is_durable and not self.backend.is_closing:
            move_to(self.backend.map[0], self.line[0], cursor.position)  # if it was dropped, the next call raises
        return 0

    cdef object why_empty(self, double waited):
        if waited != 0:
            return QueueEmpty(ALL_READ, self.backend.name, waited, None, None, self.cursor.position, self.own_name)
        if self.nothing is None or self.nothing_at != self.cursor.position:
            self.nothing = (ALL_READ, self.backend.name, 0.0, None, None, self.cursor.position, self.own_name)
            self.nothing_at = self.cursor.position
        return QueueEmpty(*self.nothing)

    # -- positions --------------------------------------------------------------------------------------

    @property
    def name(self):
        """The name of a durable reader; None if it is ephemeral."""
        return self.own_name

    @property
    def position(self):
        """The position of the next item to get."""
        self.check_usable()
        return self.cursor.position

    @property
    def committed(self):
        """Items before this may be freed: the committed position, or for an ephemeral reader about the current one."""
        self.check_usable()
        position = self.line.place.load() & ~dropped_bit
        self.backend.check_sound()
        return position

    @property
    def lag(self):
        """How many items are in the log that it has not got."""
        cdef EventsWord end
        self.check_usable()
        end.word = self.backend.map.control.end.load()
        self.backend.check_sound()
        return max(0, <int64_t>(end.position() - self.cursor.position))

    @property
    def closed(self):
        """True if this reader was closed."""
        return True if self.is_closed else False

    @cython.critical_section
    def commit(self, position=None, epoch=None):
        """Finish all items before ``position``: they may be freed, and a restart goes on after them.

        By default all items got so far. Only durable readers commit. If you stored a position elsewhere, pass the
        ``epoch`` that the queue had then: it raises DataLost if the log was cut before it.

        >>> log = queueduct.EventQueue()
        >>> reader = log.subscribe("archive")
        >>> log.put("a")
        >>> item = reader.get()
        >>> reader.commit()
        >>> reader.committed
        1
        """
        cdef EventsWord end
        asked = None if position is None else checked_int("position", position)
        noted = None if epoch is None else checked_int("epoch", epoch)
        self.check()  # after the arguments' own code, which might close the reader
        if not self.is_durable:
            raise ValueError("only a durable reader commits: subscribe with a name")
        end.word = self.backend.map.control.end.load()
        self.backend.check_sound()
        target = self.cursor.position if asked is None else asked
        if 0 <= target < 1 << 52:
            self.backend.check_epoch(target, noted)
        if self.line.beyond.load() != 0:
            self.rejoin()
        if not 0 <= target <= end.position():
            raise ValueError(f"position must be between 0 and the end, {end.position()}: position={target}")
        while not move_to(self.backend.map[0], self.line[0], target):
            self.rejoin()
        if self.cursor.position < <uint64_t>target:
            self.cursor.position = target
            self.cursor.chunk.data = NULL
        self.backend.check_sound()
        if self.backend.syncs_always:
            self.backend.write_to_disk()

    # -- close ------------------------------------------------------------------------------------------

    @cython.critical_section
    def close(self):
        """Close this reader. An ephemeral one is gone; a durable one keeps its committed position.

        >>> log = queueduct.EventQueue()
        >>> with log.subscribe() as reader:  # closes it at its end
        ...     log.put("a")
        >>> reader.closed
        True
        """
        if not self.is_closed:
            self.release()

    cdef bint is_ours(self) noexcept:
        """Returns true if this process holds its line."""
        return not self.backend.is_closing and self.generation == self.backend.queue.participant_table().generation()

    cdef int release(self) except -1:
        self.is_closed = True
        if not self.is_ours():
            return 0
        if self.is_durable:
            self.backend.queue.participant_table().let_go(reader_lock_number(self.number))
            return 0
        self.backend.enter(FOREVER)
        self.backend.queue.unsubscribe(self.number)
        return self.backend.leave()

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.close()
