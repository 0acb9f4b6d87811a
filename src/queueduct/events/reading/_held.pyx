# cython: language_level=3, binding=False, freethreading_compatible=True
"""The readers of a log, and which of them keep its memory from being freed."""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

from queueduct.events._backend cimport EventsBackend
from queueduct.events._native cimport *
from queueduct.core._queue cimport FOREVER

from queueduct.errors import QueueFull, told_readers
from queueduct.stats import ReaderInfo

cdef enum:
    NAMED = 4  # readers that a message names

cdef struct SeenReader:
    uint64_t place
    uint32_t name_length
    bint is_durable
    bint is_attached
    char name[96]  # reader_name_bytes

cdef str FULL = (
    "the queue {queue} is full: {size} of max_bytes={capacity} are in use; {readers}{waited}; let them read and "
    "commit, unsubscribe() those that are not needed, or create the queue with a larger max_bytes or "
    "on_full='drop_slowest'"
)

cdef extern from *:
    """
    #include <algorithm>
    #include <vector>
    namespace queueduct {
    // The slowest first. A reader that is dropped, or dead and ephemeral, keeps no memory.
    template <class Reader>
    void keep_slowest(std::vector<Reader>& readers, bool dropped_too, std::uint64_t dropped) {
      std::erase_if(readers, [&](const Reader& each) {
        return ((each.place & dropped) != 0 && !dropped_too) || !(each.is_attached || each.is_durable);
      });
      std::stable_sort(readers.begin(), readers.end(), [&](const Reader& one, const Reader& other) {
        return (one.place & ~dropped) < (other.place & ~dropped);
      });
    }
    }
    """
    void keep_slowest_of "queueduct::keep_slowest"(vector[SeenReader]&, bint, uint64_t)


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
    """The same without the lock, and without a change: for watchers. Dead processes' ephemeral ones are left out."""
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


cdef vector[SeenReader] slowest(EventsBackend backend, bint dropped_too, uint64_t* end) except *:
    """Returns the readers, the slowest first. Reads without the lock: a hint.

    A dropped reader holds back no memory, but still has its line.
    """
    cdef vector[SeenReader] seen
    seen.reserve(backend.map.reader_lines)
    end[0] = copy_lines(backend, seen)
    keep_slowest_of(seen, dropped_too, dropped_bit)
    return seen


cdef list told(vector[SeenReader]& seen, uint64_t end):
    cdef uint64_t i
    return [ReaderInfo(*fields_of(seen[i], end)) for i in range(seen.size())]


cdef tuple fields_of(const SeenReader& each, uint64_t end):
    """Returns the fields of a ReaderInfo, which costs more than they do."""
    cdef uint64_t committed = each.place & ~dropped_bit
    return (
        each.name[:each.name_length].decode(errors="replace") if each.is_durable else None,
        committed, end - committed if end > committed else 0, bool(each.is_attached), bool(each.place & dropped_bit),
    )


cdef str held_back(EventsBackend backend, bint dropped_too):
    """Returns the slowest readers, for a message."""
    cdef uint64_t end = 0
    cdef vector[SeenReader] seen = slowest(backend, dropped_too, &end)
    named = tuple([ReaderInfo(*fields_of(seen[i], end)) for i in range(min(seen.size(), <size_t>NAMED))])
    return told_readers(named, seen.size())


cdef object why_full(EventsBackend backend, double waited):
    """Returns the QueueFull of a log."""
    cdef uint64_t end = 0
    cdef vector[SeenReader] seen = slowest(backend, False, &end)
    named = tuple([fields_of(seen[i], end) for i in range(min(seen.size(), <size_t>NAMED))])
    return QueueFull(
        FULL, backend.name, waited, backend.map.control.used_bytes.load(), backend.map.max_bytes, None, seen.size(),
        named,
    )
