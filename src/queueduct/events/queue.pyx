# cython: language_level=3, binding=False, freethreading_compatible=True
"""The class EventQueue: create, open, subscribe, read, statistics. Its backend writes and its readers read."""

from types import SimpleNamespace

from libc.stdint cimport uint32_t, uint64_t

from queueduct.core._backend cimport counter_fields
from queueduct.core._put_once cimport encoded_name
from queueduct.core._queue cimport (
    FOREVER, Backend, Queue, checked_int, checked_sizes, held, install, open_backend, raise_no_name, sound,
)
from queueduct.events._backend cimport EventsBackend
from queueduct.events._native cimport *
from queueduct.events.reading._held cimport list_readers, readers_seen, why_full
from queueduct.events.reading._range cimport checked_range, read_items, read_records
from queueduct.events.reading.reader cimport make_reader
from queueduct.items._item_kinds cimport RECORD, REFERENCE

import numpy

from queueduct.core import sync_thread
from queueduct.async_calls import AsyncGets, AsyncPuts
from queueduct.core._put_once import PutOnceMethods
from queueduct.errors import ReaderInUse
from queueduct.events._put_once import EventsProducerCall
from queueduct.events.geometry import EventsGeometry
from queueduct.items.types import ItemType
from queueduct.segments import segment
from queueduct.stats import EventStats
from queueduct.watching._participants import ParticipantMethods

cdef int ONE_PROCESS = -2    # ParticipantTable::one_process


cdef class EventQueue(Queue, AsyncPuts, AsyncGets, PutOnceMethods, ParticipantMethods):
    """EventQueue(*, max_bytes=268435456, on_full='wait', first_items=4, chunk_bytes=None, readers=64)\n--\n
    A log: every reader sees every item. Memory is freed when all readers have read it.

    ``EventQueue()`` passes references between the threads of this process.
    ``EventQueue.create("ticks", item=dtype)`` lives in shared memory, or on a disk, by name.
    ``subscribe()`` returns a reader; ``subscribe("name")`` one that keeps its position.

    >>> log = queueduct.EventQueue()
    >>> first, second = log.subscribe(), log.subscribe()
    >>> log.put("a")
    >>> first.get(), second.get()
    ('a', 'a')
    """

    _geometry = EventsGeometry
    _producer_call = EventsProducerCall

    def __init__(self, *args, max_bytes=268435456, on_full="wait", first_items=4, chunk_bytes=None, readers=64):
        if args:
            raise_no_name(type(self), args[0])
        references = ItemType.of(numpy.dtype("u8"))
        sizes = dict(max_bytes=max_bytes, first_items=first_items, chunk_bytes=chunk_bytes, readers=readers)
        geometry = EventsGeometry.of(
            references, on_full=on_full, sync="never", sync_interval=1.0, item_bytes=None, producers=0,
            participants=1024, **checked_sizes(sizes),
        )
        geometry.check()
        offsets = geometry.layout(references)
        install(self, EventsBackend(SimpleNamespace(
            name=None, geometry=geometry, offsets=offsets, item=None, take_lock_fd=lambda: ONE_PROCESS,
            take_memory=lambda: segment.private_memory(offsets["total_bytes"]),
        ), on_disk=False))
        self.stay_in_process()

    @classmethod
    def create(
        cls, name, *, item=None, max_bytes=268435456, on_full="wait", first_items=4, item_bytes=None,
        chunk_bytes=None, readers=64, producers=64, participants=256, sync="interval", sync_interval=1.0,
        directory=None, exist_ok=False, replace=False,
    ):
        """Create a queue of that name in shared memory, or on a disk.

        ``item`` is ``bytes``, a numpy dtype, or ``object`` (pickled). At ``max_bytes`` of chunks the queue is
        full: then a put waits for the slowest reader (``on_full="wait"``), raises Full (``"raise"``), or drops the
        slowest reader (``"drop_slowest"``), which gets DataLost. The first two chunks hold ``first_items`` each, the
        next ones twice as many, and so on, up to ``chunk_bytes``; ``item_bytes`` is the size of a typical item if they
        vary. On a disk, ``sync`` says which items outlive a crash of the machine: all (``"always"``), those older than
        ``sync_interval`` seconds (``"interval"``), or those put before the last close or sync (``"never"``).
        With ``exist_ok`` an existing queue of the same shape is opened instead; with ``replace`` the new queue takes
        the name of an existing one, and those who have the old one open keep it.
        ``directory`` is where its file is, by default ``$QUEUEDUCT_DIR``, or else ``/dev/shm/queueduct-<uid>``.

        >>> log = queueduct.EventQueue.create("ticks", item=[("symbol", "S8"), ("price", "f8")], max_bytes=1 << 28)
        >>> log.put((b"ACME", 101.5))
        >>> log.end
        1
        >>> log.unlink()
        """
        return cls._create(
            name, item, directory, exist_ok, replace,
            dict(
                max_bytes=max_bytes, first_items=first_items, item_bytes=item_bytes, chunk_bytes=chunk_bytes,
                readers=readers, producers=producers, participants=participants,
            ),
            on_full=on_full, sync=sync, sync_interval=sync_interval,
        )

    cdef Backend attach(self, object opened):
        cdef EventsBackend backend = EventsBackend(opened, on_disk=segment.is_on_disk(opened.path.parent))
        if backend.is_read_only:
            return backend
        backend.settle_boot()
        backend.queue.participant_table().leave_line()  # a thread that only opens a queue is no participant yet
        return backend

    cdef int after_attach(self, Backend backend, object opened) except -1:
        cdef EventsBackend events = <EventsBackend>backend
        if events.is_durable and not events.is_read_only and not events.syncs_always:
            sync_thread.sync_at_intervals(backend, opened.geometry.sync_interval_ns / 1e9)
        return 0

    cdef object why_full(self, Backend backend, double waited):
        return why_full(<EventsBackend>backend, waited)

    # -- read -------------------------------------------------------------------------------------------

    def subscribe(self, name=None, start="latest", *, epoch=None):
        """Return a reader from ``start`` on: ``"latest"``, ``"earliest"``, or a position (the earliest, if it is gone).

        With a name it is durable: it keeps its committed position while no process holds it. Subscribing by that name
        again finds it, and ignores ``start``. Without a name it ends with its process. If you stored a position
        elsewhere, pass the ``epoch`` that the queue had then: it raises DataLost if the log was cut before it since.

        >>> log = queueduct.EventQueue()
        >>> log.put("a")
        >>> log.subscribe(start="earliest").get()
        'a'
        """
        cdef uint64_t first = 0
        cdef EventsBackend backend = open_backend(self)
        if name is not None and (not isinstance(name, str) or not name):
            raise ValueError(f"a reader's name must be a str that is not empty: name={name!r}")
        if isinstance(start, str):
            if str(start) not in ("latest", "earliest"):
                raise TypeError(f"start must be 'latest', 'earliest' or a position: start={start!r}")
            return make_reader(self, backend, None if name is None else str(name), str(start), 0)
        if isinstance(start, bool) or not hasattr(type(start), "__index__"):
            raise TypeError(f"start must be 'latest', 'earliest' or a position: start={start!r}")
        wanted = checked_int("start", start)
        if not 0 <= wanted < 1 << 52:
            raise ValueError(f"start must be 'latest', 'earliest' or a position: start={start!r}")
        first = wanted
        backend.check_epoch(first, epoch)
        return make_reader(self, backend, None if name is None else str(name), None, first)

    def unsubscribe(self, name):
        """Remove a durable reader, so that its memory can be freed. Raises ValueError if there is none.

        >>> log = queueduct.EventQueue()
        >>> log.subscribe("archive").close()
        >>> log.unsubscribe("archive")
        """
        cdef EventsBackend backend = open_backend(self)
        cdef bytes encoded
        if not isinstance(name, str):
            raise TypeError(f"a reader's name must be a str: name={name!r}")
        encoded = encoded_name("reader", name)
        cdef uint32_t line
        cdef bint is_forgotten = False
        backend.enter(FOREVER)
        line = backend.log.readers().find(encoded, len(encoded))
        if line != no_reader:
            is_forgotten = backend.queue.forget_reader(line)
        backend.leave()
        backend.check_sound()
        if line == no_reader:
            raise ValueError(f"{backend.told} has no durable reader {name!r}")
        if not is_forgotten:
            raise ReaderInUse(f"the reader {name!r} of {backend.told} is held by a live process; close it there first")

    def _readers_seen(self):
        """Returns the readers as a watcher sees them, without the lock."""
        return readers_seen(open_backend(self))

    def readers(self):
        """Return all registered readers, attached or not.

        >>> log = queueduct.EventQueue()
        >>> reader = log.subscribe("archive")
        >>> [(each.name, each.lag) for each in log.readers()]
        [('archive', 0)]
        """
        return list_readers(open_backend(self))

    def read(self, start, stop, *, epoch=None):
        """Return the items of positions ``start`` to ``stop``, the same each time while they are kept.

        Returns one array, or a list. Raises DataLost if some are no longer kept, ValueError beyond the end. If you
        stored the positions elsewhere, pass the ``epoch`` of then: it raises DataLost if the log was cut before them.

        >>> log = queueduct.EventQueue()
        >>> reader = log.subscribe()  # keeps the items
        >>> log.put_many(["a", "b", "c"])
        3
        >>> log.read(1, 3)
        ['b', 'c']
        """
        cdef EventsBackend backend = open_backend(self)
        first, last = checked_range(backend, start, stop, epoch)
        return read_records(backend, first, last) if backend.item_kind == RECORD else read_items(backend, first, last)

    def read_arrow(self, start, stop, *, epoch=None, strings="string"):
        """Return what ``read`` returns as an Arrow table. With ``strings="binary"`` bytes need not be UTF-8.

        Items of bytes are one column, ``value``. Needs queueduct[arrow].

        >>> log = queueduct.EventQueue.create(None, item=[("price", "f8")])
        >>> log.put_many([(1.5,), (2.5,)])
        2
        >>> log.read_arrow(0, 2).column("price").to_pylist()
        [1.5, 2.5]
        """
        from queueduct.arrow.tables import read_table  # here: it imports pyarrow
        first, last = checked_range(open_backend(self), start, stop, epoch)
        return read_table(self, first, last, strings)

    def __arrow_c_schema__(self):
        """The columns, for Arrow's consumers."""
        from queueduct.arrow.streams import schema_capsule  # here, as above
        return schema_capsule(self.item)

    def __arrow_c_stream__(self, requested_schema=None):
        """All that is kept at this moment, for Arrow's consumers. No reader moves; what is freed is DataLost."""
        from queueduct.arrow.streams import queue_stream  # here, as above
        return queue_stream(self, requested_schema)

    @property
    def end(self):
        """The position of the next item."""
        cdef EventsBackend backend = open_backend(self)
        return sound(backend, end_word(backend.map).position())

    @property
    def epoch(self):
        """How often the log was cut after a crash of the machine. Store it with a position that you store elsewhere."""
        return (<EventsBackend>open_backend(self)).queue.epoch()

    def valid_until(self, epoch):
        """Return up to where positions of that epoch are still the same items: the lowest cut since, or the end.

        >>> log = queueduct.EventQueue()
        >>> log.put("a")
        >>> log.valid_until(log.epoch)
        1
        """
        cdef EventsBackend backend = open_backend(self)
        noted = checked_int("epoch", epoch)
        backend.check_epoch(0, noted)
        return min(<uint64_t>end_word(backend.map).position(), <uint64_t>valid_until(backend.map.control[0], noted))

    def durable_end(self, sync=True):
        """Return the position before which all items outlive a crash of the machine.

        Copy items to other systems only up to here. In memory that is ``end``: nothing outlives the machine. On a disk
        it is the end of what was synced; with ``sync`` everything is written first, at most once in 20 ms.

        >>> log = queueduct.EventQueue()
        >>> log.put("a")
        >>> log.durable_end()
        1
        """
        return (<EventsBackend>open_backend(self)).durable_end(sync)

    @property
    def earliest(self):
        """The position of the oldest item that is kept."""
        cdef EventsBackend backend = open_backend(self)
        return sound(backend, earliest_position(backend.map[0]))

    # -- forget -----------------------------------------------------------------------------------------

    def clear(self):
        """Remove all items: readers go on with the next one. A reader in a call keeps the items it is reading.

        >>> log = queueduct.EventQueue()
        >>> log.put_many(["a", "b"])
        2
        >>> log.clear()
        >>> log.earliest
        2
        """
        keep_last(open_backend(self), 0)

    def keep_last(self, n):
        """Remove all but the last ``n`` items; 0 clears, more than there are does nothing.

        >>> log = queueduct.EventQueue()
        >>> log.put_many(["a", "b", "c"])
        3
        >>> log.keep_last(1)
        >>> log.earliest
        2
        """
        cdef EventsBackend backend = open_backend(self)
        count = checked_int("n", n)
        if count < 0:
            raise ValueError(f"n must not be negative: n={n}")
        keep_last(backend, min(count, 1 << 52))

    def sync(self):
        """Write everything to the disk now. In memory it does nothing.

        >>> queueduct.EventQueue().sync()
        """
        cdef EventsBackend backend = open_backend(self)
        if self.segment is not None:
            backend.write_to_disk()
        backend.check_sound()

    def close(self):
        """Close this handle and its readers. The queue stays; on a disk it is synced first.

        >>> with queueduct.EventQueue() as log:  # closes it at its end
        ...     log.put("a")
        """
        cdef Backend backend = held(self)
        if backend.is_closing or not isinstance(backend, EventsBackend):
            return
        try:
            (<EventsBackend>backend).sync_if_needed()
        finally:
            backend.is_closing = True  # before the readers are released: a thread checks it after each copy
            (<EventsBackend>backend).release_readers()
            Queue.close(self)

    # -- statistics -------------------------------------------------------------------------------------

    @property
    def is_shut_down(self):
        """True if the queue was shut down: nothing more is put."""
        cdef EventsBackend backend = open_backend(self)
        return sound(backend, end_word(backend.map).is_closed())

    @property
    def capacity(self):
        """The most bytes of chunks that the queue holds: an event queue does not limit the number of items."""
        return (<EventsBackend>open_backend(self)).map.max_bytes

    def full(self):
        """Return True if max_bytes are in use. A hint: other threads and processes may change it at once.

        >>> queueduct.EventQueue().full()
        False
        """
        cdef EventsBackend backend = open_backend(self)
        return sound(backend, backend.map.control.used_bytes.load() >= backend.map.max_bytes)

    def stats(self):
        """One look at the queue.

        >>> queueduct.EventQueue().stats().readers
        0
        """
        cdef EventsBackend backend = open_backend(self)
        cdef EventsControl* control = backend.map.control
        cdef uint64_t earliest = earliest_position(backend.map[0])  # first: the end is never before it
        cdef EventsWord end = end_word(backend.map)
        cdef uint64_t number
        cdef Counted counted = backend.queue.counted()
        if backend.item_kind == REFERENCE:
            counted.bytes_put = counted.bytes_got = 0
        sizes = []
        for number in range(control.head_chunk.load(), control.chunks_made.load()):
            sizes.append(backend.map.chunk(number).items.load())
            if len(sizes) >= <int64_t>backend.map.chunk_lines:
                break
        return sound(backend, EventStats(
            size=end.position() - earliest,
            resident_bytes=backend.resident_bytes(),
            max_bytes=backend.map.max_bytes,
            is_shut_down=end.is_closed(),
            participants=backend.participant_table.count_alive(),
            participants_limit=backend.participants,
            end=end.position(),
            earliest=earliest,
            chunk_items=tuple(sizes),
            used_bytes=control.used_bytes.load(),
            readers=count_readers(backend),
            readers_dropped=control.dropped.load(),
            repairs=control.repairs.load(),
            synced=control.confirmed.load(),
            epoch=control.cuts.load(),
            **counter_fields(counted),
        ))


cdef uint32_t count_readers(EventsBackend backend) noexcept:
    """Counts without the lock, so that the caller need not join. Leaves out dead processes' ephemeral readers."""
    cdef Readers* table = &backend.log.readers()
    cdef uint32_t count = 0
    cdef uint32_t i
    for i in range(table.used()):
        count += table.kind(i) == ReaderKind.durable or (
            table.kind(i) == ReaderKind.ephemeral and backend.queue.participant_table().is_alive(reader_lock_number(i))
        )
    return count


cdef int keep_last(EventsBackend backend, uint64_t count) except -1:
    backend.enter(FOREVER)
    with nogil:  # on a disk it may sync
        backend.queue.keep_last(count)
    backend.leave()
    backend.check_sound()
    backend.queue.room().notify_all()
    return 0
