# cython: language_level=3, binding=False, freethreading_compatible=True
"""EventQueue: how it is made, who reads it, and what it says of itself. The work is in its body and its readers."""

import os

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

from penstock._events_body cimport EventsBody
from penstock._events_fetch cimport decoded, fetch_list, fetch_records
from penstock._events_native cimport *
from penstock._events_once cimport forget_producer, list_producers, put_once
from penstock._events_reader cimport make_reader
from penstock._kinds cimport RECORD
from penstock._native cimport array_data
from penstock._queue cimport FOREVER, Body, Queue, checked_int, computed_deadline

import numpy

from penstock import items, keeper, segment
from penstock.errors import DataLost, ReaderInUse
from penstock.events_geometry import EventsGeometry
from penstock.stats import EventStats, ReaderInfo

cdef int ONE_PROCESS = -2    # Roster::one_process

cdef struct SeenReader:
    uint64_t place
    uint32_t name_length
    bint is_durable
    bint is_attached
    char name[96]  # reader_name_bytes


cdef class EventQueue(Queue):
    """A log that everybody reads: every reader sees every item, memory is freed when all have read it.

    ``EventQueue()`` passes references between the threads of this process.
    ``EventQueue.create("ticks", item=dtype)`` lives in shared memory, or on a disk, by name.
    ``subscribe()`` gives a reader; ``subscribe("name")`` one that keeps its place.
    """

    def __init__(self, *, max_bytes=256 << 20, on_full="wait", first_items=4, chunk_bytes=None, readers=64):
        if not self.body.is_closing or self.segment is not None:
            raise TypeError("a queue is initialised once")
        references = items.ItemType.of(numpy.dtype("u8"))
        geometry = geometry_of(
            references, max_bytes, on_full, first_items, None, chunk_bytes, readers, 0, 1024, "never", 1.0
        )
        geometry.check()
        offsets = geometry.layout(references)
        self.body = EventsBody(
            geometry, offsets, segment.private_memory(offsets["total_bytes"]), None,
            lock_fd=ONE_PROCESS, label="without a name", on_disk=False,
        )

    @classmethod
    def create(
        cls, name, *, item=bytes, max_bytes=256 << 20, on_full="wait", first_items=4, item_bytes=None,
        chunk_bytes=None, readers=64, producers=64, participants=256, sync="interval", sync_interval=1.0,
        exist_ok=False,
    ):
        """Make a queue of that name in shared memory, or on a disk.

        ``item`` is ``bytes``, a numpy dtype, or ``object`` (pickled). At ``max_bytes`` of chunks the queue is
        full: then ``on_full`` is to ``"wait"`` for the slowest reader, to ``"raise"`` Full, or to
        ``"drop_slowest"``, which gets DataLost. Chunks are for ``first_items``, as many again, then twice as
        many, and so on, up to ``chunk_bytes``; ``item_bytes`` is the size of a typical item where they vary.
        On a disk, ``sync`` says what outlives the machine: every put (``"always"``), what is older than
        ``sync_interval`` seconds (``"interval"``), or what was there at the last close or sync (``"never"``).
        With ``exist_ok`` an existing queue of the same shape is opened instead.
        """
        item_type = items.ItemType.of(item)
        geometry = geometry_of(
            item_type, max_bytes, on_full, first_items, item_bytes, chunk_bytes, readers, producers, participants,
            sync, sync_interval,
        )
        return cls._attach(segment.create(name, geometry, item_type, exist_ok=exist_ok), True)

    @classmethod
    def open(cls, name, *, allow_pickle=True):
        """Open the event queue of that name. Without ``allow_pickle``, one of objects is refused."""
        return cls._attach(segment.open_segment(name, kind="events"), allow_pickle)

    @classmethod
    def _attach(cls, opened, allow_pickle):
        cdef EventQueue self = cls.__new__(cls)
        cdef EventsBody body
        try:
            opened.item.check_pickle(opened.name, allow_pickle)
            on_disk = segment.is_on_disk(opened.path.parent)
            body = EventsBody(
                opened.geometry, opened.offsets, opened.take_memory(), opened.item,
                lock_fd=opened.take_lock_fd(), label=repr(opened.name), on_disk=on_disk,
            )
            settle_boot(body)
        except BaseException:
            opened.close()
            raise
        self.body = body
        self.segment = opened
        if body.is_durable and not body.syncs_always:
            keeper.keep(body, opened.geometry.sync_interval_ns / 1e9)
        return self

    # -- put --------------------------------------------------------------------------------------------

    def put_once(self, items, producer, sequence, *, block=True, timeout=None):
        """Put all of ``items`` exactly once for this producer and sequence; returns how many this call has put.

        Sequences of a producer rise. A call that was killed, or ran out of time (Full), is repeated with the
        same items and goes on where it stopped; one that is complete puts nothing.
        """
        return put_once(body_of(self), items, producer, sequence, computed_deadline(block, timeout))

    def producers(self):
        """What put_once keeps of each producer."""
        return list_producers(body_of(self))

    def forget_producer(self, producer):
        """Make room in the table of producers. What it put stays; what it repeats would be put again."""
        forget_producer(body_of(self), producer)

    # -- read -------------------------------------------------------------------------------------------

    def subscribe(self, name=None, start="latest"):
        """A reader from ``start`` on: ``"latest"``, ``"earliest"``, or a position (the earliest kept, if it is gone).

        With a name it is durable: it keeps its committed place while nobody holds it, and is found again by
        its name, wherever ``start`` would be. Without, it goes with its process.
        """
        if name is not None and (not isinstance(name, str) or not name):
            raise ValueError(f"a reader's name must be a str that is not empty: name={name!r}")
        if start not in ("latest", "earliest"):
            if isinstance(start, bool) or not hasattr(type(start), "__index__"):
                raise TypeError(f"start must be 'latest', 'earliest' or a position: start={start!r}")
            if not 0 <= start < 1 << 52:
                raise ValueError(f"start must be 'latest', 'earliest' or a position: start={start!r}")
        return make_reader(self, body_of(self), name, start)

    def unsubscribe(self, name):
        """Forget a durable reader; what it held back may be freed. ValueError if there is none."""
        cdef EventsBody body = body_of(self)
        cdef bytes encoded
        if not isinstance(name, str):
            raise TypeError(f"a reader's name must be a str: name={name!r}")
        encoded = name.encode()
        cdef uint32_t line
        cdef bint is_forgotten = False
        body.enter(FOREVER)
        line = body.log.readers().find(encoded, len(encoded))
        if line != no_reader:
            is_forgotten = body.queue.forget_reader(line)
        body.leave()
        if line == no_reader:
            raise ValueError(f"{body.label} has no durable reader {name!r}")
        if not is_forgotten:
            raise ReaderInUse(f"the reader {name!r} of {body.label} is held by somebody alive; close it there first")

    def readers(self):
        """Everybody who is registered, attached or not."""
        cdef EventsBody body = body_of(self)
        cdef list found = []
        cdef vector[SeenReader] seen
        cdef SeenReader each
        cdef uint32_t i
        cdef Readers* table = &body.log.readers()
        cdef EventsWord end
        body.enter(FOREVER)
        if body.queue.bury_readers(True):
            body.log.reclaim(body.queue.backing())
        end.word = body.map.control.end.load()
        for i in range(table.used()):  # no Python objects here: a collection could end a reader, which needs the lock
            if table.kind(i) == ReaderKind.none:
                continue
            each.is_durable = table.kind(i) == ReaderKind.durable
            each.is_attached = body.queue.roster().is_alive(reader_lock_number(i))
            each.place = table.line(i).place.load()
            each.name_length = min(<uint32_t>table.line(i).name_length.load(), reader_name_bytes)
            memcpy(each.name, table.line(i).name, sizeof(each.name))
            seen.push_back(each)
        body.leave()
        for each in seen:
            position = each.place & ~dropped_bit
            found.append(ReaderInfo(
                each.name[:each.name_length].decode(errors="replace") if each.is_durable else None,
                position, max(0, end.position() - position), each.is_attached, bool(each.place & dropped_bit),
            ))
        return found

    def read(self, start, stop):
        """The items of positions ``start`` to ``stop``, the same each time while they are kept.

        One array, or a list. Raises DataLost if some are no longer kept, ValueError beyond the end.
        """
        cdef EventsBody body = body_of(self)
        cdef EventsWord end
        end.word = body.map.control.end.load()
        first, last = checked_int("start", start), checked_int("stop", stop)
        if not 0 <= first <= last <= end.position():
            raise ValueError(
                f"start and stop must be positions up to the end, {end.position()}: start={start}, stop={stop}"
            )
        if first < earliest_position(body.map[0]):
            raise_lost(body, first)
        return read_records(body, first, last) if body.form == RECORD else read_items(body, first, last)

    @property
    def end(self):
        """Where the next item goes."""
        cdef EventsWord end
        end.word = body_of(self).map.control.end.load()
        return end.position()

    @property
    def earliest(self):
        """The oldest position that is kept."""
        return earliest_position(body_of(self).map[0])

    # -- forget -----------------------------------------------------------------------------------------

    def clear(self):
        """Forget everything: readers go on with what comes next. One in the middle keeps what it holds."""
        cdef EventsBody body = body_of(self)
        body.enter(FOREVER)
        body.queue.keep_last(0)
        body.leave()
        body.queue.room().notify_all()

    def keep_last(self, n):
        """Forget all but the last ``n`` items; 0 clears, more than there are does nothing."""
        cdef EventsBody body = body_of(self)
        cdef uint64_t kept
        count = checked_int("n", n)
        if count < 0:
            raise ValueError(f"n must not be negative: n={n}")
        kept = min(count, 1 << 52)
        body.enter(FOREVER)
        body.queue.keep_last(kept)
        body.leave()
        body.queue.room().notify_all()

    def sync(self):
        """Write everything to the disk now; nothing to do in memory."""
        cdef EventsBody body = body_of(self)
        if self.segment is not None:
            body.write_to_disk()

    def close(self):
        """Give up this handle and its readers. The queue stays, on a disk with all that it has."""
        cdef EventsBody body
        if self.body.is_closing or not isinstance(self.body, EventsBody):
            return
        body = self.body
        try:
            body.sync_if_needed()
        finally:
            body.release_readers()
            Queue.close(self)

    # -- looks ------------------------------------------------------------------------------------------

    @property
    def segment_id(self):
        """Tells a queue from its successor of the same name; None within a process."""
        return None if self.segment is None else self.segment.segment_id

    @property
    def is_shut_down(self):
        """Was it shut down? Then nothing more is put."""
        cdef EventsWord end
        end.word = body_of(self).map.control.end.load()
        return end.is_closed()

    @property
    def capacity(self):
        """Bytes of chunks that the queue holds at most: an event queue has no number of items."""
        return body_of(self).map.max_bytes

    def full(self):
        """Are max_bytes in use? A hint, as with every queue that others use."""
        cdef EventsBody body = body_of(self)
        return body.map.control.used_bytes.load() >= body.map.max_bytes

    def stats(self):
        """One look at the queue."""
        cdef EventsBody body = body_of(self)
        cdef EventsControl* control = body.map.control
        cdef EventsWord end
        cdef uint64_t number
        sizes = []
        end.word = control.end.load()
        for number in range(control.head_chunk.load(), control.chunks_made.load()):
            sizes.append(body.map.chunk(number).items.load())
            if len(sizes) >= <int64_t>body.map.chunk_lines:
                break
        return EventStats(
            end=end.position(),
            earliest=earliest_position(body.map[0]),
            chunk_items=tuple(sizes),
            used_bytes=control.used_bytes.load(),
            max_bytes=body.map.max_bytes,
            resident_bytes=body.resident_bytes(),
            readers=count_readers(body),
            participants=body.queue.count_alive(),
            participants_limit=body.participants,
            is_shut_down=end.is_closed(),
            dropped=control.dropped.load(),
            repairs=control.repairs.load(),
            synced=control.synced.load(),
        )


cdef uint32_t count_readers(EventsBody body) noexcept:
    """Without the lock, and so without a line: who looks is no participant. The ephemeral ones of the dead are gone."""
    cdef Readers* table = &body.log.readers()
    cdef uint32_t count = 0
    cdef uint32_t i
    for i in range(table.used()):
        count += table.kind(i) == ReaderKind.durable or (
            table.kind(i) == ReaderKind.ephemeral and body.queue.roster().is_alive(reader_lock_number(i))
        )
    return count


cdef EventsBody body_of(EventQueue queue):
    cdef Body body = queue.body
    body.check_open()
    return <EventsBody>body


cdef object geometry_of(
    item, max_bytes, on_full, first_items, item_bytes, chunk_bytes, readers, producers, participants, sync,
    sync_interval,
):
    return EventsGeometry.of(
        item,
        max_bytes=checked_int("max_bytes", max_bytes),
        first_items=checked_int("first_items", first_items),
        item_bytes=None if item_bytes is None else checked_int("item_bytes", item_bytes),
        chunk_bytes=None if chunk_bytes is None else checked_int("chunk_bytes", chunk_bytes),
        on_full=on_full,
        sync=sync,
        sync_interval=sync_interval,
        readers=checked_int("readers", readers),
        producers=checked_int("producers", producers),
        participants=checked_int("participants", participants),
    )


cdef int settle_boot(EventsBody body) except -1:
    """After a new start of the machine: only what was synced is there."""
    cdef bint is_settled
    if not body.queue.is_of_another_boot():
        return 0
    body.enter(FOREVER)
    is_settled = body.queue.settle_boot()
    body.leave()
    if not is_settled:
        body.raise_corrupt()
    return 0


cdef int raise_lost(EventsBody body, wanted) except -1:
    earliest = earliest_position(body.map[0])
    if wanted >= earliest:
        body.raise_corrupt()
    raise DataLost(
        f"items of {body.label} are no longer kept: wanted={wanted}, earliest={earliest}", wanted, earliest
    )


cdef object read_records(EventsBody body, uint64_t start, uint64_t stop):
    cdef Run run
    cdef uint64_t at = start
    body.check_count(stop - start)
    array = numpy.empty(stop - start, dtype=body.dtype)
    cdef char* data = <char*>array_data(array)
    while at < stop:
        if run_at(body.map[0], at, stop, stop - at, run) != Found.items:
            raise_lost(body, at)
        fetch_records(body, run, data + (at - start) * body.map.item_bytes)
        if not is_still_kept(body.map[0], run.chunk.number):
            raise_lost(body, at)
        at += run.items
    body.check_found(Found.items)
    return array


cdef object read_items(EventsBody body, uint64_t start, uint64_t stop):
    cdef Run run
    cdef uint64_t at = start
    cdef list fetched = []
    cdef list part
    while at < stop:
        if run_at(body.map[0], at, stop, stop - at, run) != Found.items:
            raise_lost(body, at)
        part = fetch_list(body, run)
        if not is_still_kept(body.map[0], run.chunk.number):
            raise_lost(body, at)
        if part is None:
            body.raise_corrupt()
        fetched += part
        at += run.items
    body.check_found(Found.items)
    return decoded(body, fetched)
