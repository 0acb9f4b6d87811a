# cython: language_level=3, binding=False, freethreading_compatible=True
"""The readers of a log, and which of them keep its memory from being freed."""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

from queueduct.events._backend cimport EventsBackend
from queueduct.events._native cimport *
from queueduct.core._queue cimport FOREVER

from queueduct.stats import ReaderInfo

cdef enum:
    NAMED = 4  # readers that a message names

cdef struct SeenReader:
    uint64_t place
    uint32_t name_length
    bint is_durable
    bint is_attached
    char name[96]  # reader_name_bytes


cdef list list_readers(EventsBackend backend):
    """Returns all registered readers. Abandons dead processes' ephemeral ones first."""
    cdef vector[SeenReader] seen
    cdef uint64_t end
    seen.reserve(backend.map.reader_lines)  # before the lock: under it nothing may raise
    backend.enter(FOREVER)
    if backend.queue.abandon_dead_readers(True):
        backend.log.reclaim(backend.queue.backing())
    end = copy_lines(backend, seen)
    backend.leave()
    backend.check_sound()
    return told(seen, end)


cdef list readers_seen(EventsBackend backend):
    """The same without the lock, and without changing anything: for watchers. Dead processes' ephemeral ones are left out."""
    cdef vector[SeenReader] seen
    cdef uint64_t end
    backend.check_open()
    seen.reserve(backend.map.reader_lines)
    end = copy_lines(backend, seen)
    backend.check_sound()
    return [each for each in told(seen, end) if each.is_attached or each.name is not None]


cdef uint64_t copy_lines(EventsBackend backend, vector[SeenReader]& seen) noexcept:
    """Copies the lines of all readers to `seen`, which has room for them.

    It makes no Python object: that could start a garbage collection and so end a reader, which needs the lock.
    """
    cdef Readers* table = &backend.log.readers()
    cdef SeenReader each
    cdef EventsWord end = end_word(backend.map)
    cdef uint32_t i
    for i in range(table.used()):
        if table.kind(i) == ReaderKind.none:
            continue
        each.is_durable = table.kind(i) == ReaderKind.durable
        each.is_attached = backend.queue.participant_table().is_alive(reader_lock_number(i))
        each.place = table.line(i).place.load()
        each.name_length = min(<uint32_t>table.line(i).name_length.load(), reader_name_bytes)
        memcpy(each.name, table.line(i).name, sizeof(each.name))
        seen.push_back(each)
    return end.position()


cdef list told(vector[SeenReader]& seen, uint64_t end):
    cdef list found = []
    cdef SeenReader each
    for each in seen:
        committed = each.place & ~dropped_bit
        found.append(ReaderInfo(
            each.name[:each.name_length].decode(errors="replace") if each.is_durable else None,
            committed, max(0, end - committed), each.is_attached, bool(each.place & dropped_bit),
        ))
    return found


cdef str held_back(EventsBackend backend, bint dropped_too):
    """Returns the slowest readers, for a message. Reads without the lock: a hint.

    A dropped reader holds back no memory, but still has its line.
    """
    cdef vector[SeenReader] seen
    cdef uint64_t end
    seen.reserve(backend.map.reader_lines)
    end = copy_lines(backend, seen)
    readers = [
        each for each in told(seen, end)
        if (dropped_too or not each.is_dropped) and (each.is_attached or each.name is not None)
    ]
    if not readers:
        return "no reader holds it back"
    readers.sort(key=lambda each: each.committed)
    named = "; ".join(
        f"{'an ephemeral reader' if each.name is None else repr(each.name)} at position {each.committed}, {each.lag} "
        f"behind, {'attached' if each.is_attached else 'held by no process'}{', dropped' if each.is_dropped else ''}"
        for each in readers[:NAMED]
    )
    rest = f"; and {len(readers) - NAMED} more" if len(readers) > NAMED else ""
    return f"readers, the slowest first: {named}{rest}"


cdef str why_full(EventsBackend backend):
    used = backend.map.control.used_bytes.load()
    return (
        f"the queue {backend.label} is full: {used} of max_bytes={backend.map.max_bytes} are in use; "
        f"{held_back(backend, False)}; let them read and commit, unsubscribe() those that are not needed, or create "
        "the queue with a larger max_bytes or on_full='drop_slowest'"
    )
