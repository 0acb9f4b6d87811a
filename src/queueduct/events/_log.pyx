# cython: language_level=3, binding=False, freethreading_compatible=True
"""The log of a handle: its memory, its lock, and the references that it removes.

Within a process the log holds references. It drops removed ones after it has released the lock: a finalizer may do
anything, even put into the same queue.
"""

from cpython.exc cimport PyErr_CheckSignals
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t

from queueduct.core._backend cimport line_of
from queueduct.core._queue cimport AT_ONCE, remaining_ns
from queueduct.events._native cimport *
from queueduct.items._item_kinds cimport REFERENCE
from queueduct.native._native cimport (
    Identity, Joined, PyTypeObject, byte, drop_held, is_broken, traverseproc, visitproc,
)

from queueduct.errors import CorruptSegment, TooManyParticipants
from queueduct.segments import boot

cdef enum:
    BRIEFLY_NS = 100000000  # how long even a call that never waits waits for the lock

cdef extern from "events/_references.hpp" namespace "queueduct":
    int visit_events(const EventsMap&, visitproc, void*) noexcept
    void collect_events(const EventsMap&, vector[void*]&) noexcept


cdef void keep_for_later(void* context, void** references, uint64_t count) noexcept nogil:
    cdef vector[void*]* forgotten = <vector[void*]*>context
    cdef uint64_t i
    for i in range(count):
        forgotten.push_back(references[i])


cdef BootWitnesses witnesses(bint on_disk) except *:
    """Returns the witnesses of this boot. A queue in memory needs none: it cannot outlive the boot."""
    cdef BootWitnesses found
    if not on_disk:
        return found
    boot_id, offset = boot.witnesses()
    found.boot_id[0] = int.from_bytes(boot_id[:8], "little")
    found.boot_id[1] = int.from_bytes(boot_id[8:], "little")
    found.has_clock = offset is not None
    found.clock_offset_ns = offset or 0
    found.is_on_disk = on_disk
    return found


cdef class LogBackend(SegmentBackend):

    def __cinit__(self, opened, *, on_disk):
        cdef EventsOffsets at
        cdef EventsMap shape
        cdef BootWitnesses boot_witnesses = witnesses(on_disk)
        cdef Identity identity
        cdef byte* memory = self.take_over(opened, &identity)
        cdef dict offsets = opened.offsets
        cdef object geometry = opened.geometry
        at.control = offsets["control_offset"]
        at.participants = offsets["participants_offset"]
        at.readers = offsets["readers_offset"]
        at.producers = offsets["producers_offset"]
        at.chunks = offsets["chunks_offset"]
        at.blocks = offsets["blocks_offset"]
        at.arena = self.arena_offset = offsets["arena_offset"]
        shape.block_count = geometry.block_count
        shape.block_bytes = geometry.block_bytes
        shape.chunk_lines = geometry.chunk_lines
        shape.max_bytes = geometry.max_bytes
        shape.first_items = geometry.first_items
        shape.item_bytes = geometry.item_bytes
        shape.reader_lines = geometry.readers
        shape.varies = opened.item is not None and opened.item.varies
        shape.may_drop = geometry.on_full == 3
        self.raises_when_full = geometry.on_full == 2
        self.is_on_disk = on_disk
        self.is_durable = on_disk and geometry.sync != 3
        self.syncs_always = on_disk and geometry.sync == 1
        self.queue = new EventsQueue(
            memory, at, shape, self.participants, geometry.producers, opened.take_lock_fd(), identity, self.is_durable,
            boot_witnesses,
        )
        self.log = &self.queue.log()
        self.map = &self.log.map()
        if self.item_kind == REFERENCE:
            self.log.on_forget(keep_for_later, &self.forgotten)
        self.participant_table = &self.queue.participant_table()
        self.check_attached()

    def __dealloc__(self):
        if self.queue is not NULL and self.item_kind == REFERENCE:
            collect_events(self.map[0], self.forgotten)
            drop_held(self.forgotten.data(), self.forgotten.size())
        del self.queue

    cdef int raise_corrupt(self) except -1:
        self.raise_if_truncated()
        raise CorruptSegment(
            f"the chunks of {self.told} contradict each other: end={self.map.control.end.load():#x}, "
            f"head_chunk={self.map.control.head_chunk.load()}, chunks_made={self.map.control.chunks_made.load()}; "
            "recreate the queue"
        )

    cdef int raise_unreadable(self) except -1:
        """Raises after a copy of kept items that met a missing page or an impossible index."""
        self.raise_if_cut()
        raise CorruptSegment(
            f"items of {self.told} could not be read where they lie: their index is damaged, or the file has a hole "
            "there, or its disk fails; nothing was taken. If it stays so, go on with a reader behind them, or "
            "recreate the queue"
        )

    cdef int check_found(self, ReadResult found) except -1:
        if found == ReadResult.corrupt or is_broken(self.guard):
            self.raise_corrupt()
        return 0

    cdef int check_count(self, uint64_t records) except -1:
        """Raises if the log cannot hold so many records. Called before memory is allocated for them."""
        if records > self.map.block_count * self.map.block_bytes // self.map.item_bytes:
            self.raise_corrupt()
        return 0

    # -- the lock ---------------------------------------------------------------------------------------

    cdef Joined try_join(self) noexcept nogil:
        return self.queue.join()

    cdef bint is_unsettled(self, uint32_t line) noexcept:
        return self.participant_table.lines()[line].intent.load() == at_the_lock

    cdef int enter(self, int64_t deadline) except -1:
        """Returns 1 if this thread has the lock, 0 if the time is up. Nothing may raise before leave()."""
        self.check_open()
        return self.acquire(deadline, True)

    cdef int acquire(self, int64_t deadline, bint while_open) except -1:
        cdef uint32_t line
        cdef Entered entered
        cdef int64_t left = 0
        line = line_of(self)
        entered = self.queue.try_enter(line)
        while entered == Entered.no:
            left = BRIEFLY_NS if deadline == AT_ONCE else remaining_ns(deadline)
            if left <= 0:
                return 0
            with nogil:
                entered = self.queue.enter(line, min(left, <int64_t>BRIEFLY_NS))
            if entered != Entered.no:
                break
            PyErr_CheckSignals()
            if while_open:
                self.check_open()
            if deadline == AT_ONCE:
                return 0
            line = line_of(self)
        if entered == Entered.corrupt:
            self.raise_corrupt()
        return 1

    cdef int leave(self) except -1:
        return self.leave_after_put(0, 0)

    cdef int leave_after_put(self, uint64_t items, uint64_t length) except -1:
        """Leaves, and counts what this thread has put."""
        cdef vector[void*] forgotten
        forgotten.swap(self.forgotten)  # under the lock: without a GIL the next owner adds to it as soon as we leave
        if items:
            self.queue.leave_after_put(items, length)
        else:
            self.queue.leave()
        if not forgotten.empty():
            drop_held(forgotten.data(), forgotten.size())
        return 0

    cdef void abandon_reader(self, uint32_t number) noexcept:
        """Never waits. If the lock is taken, the next producer that needs room finds the line free."""
        cdef uint32_t line = 0
        if self.queue.find_line(line) and not self.queue.is_within(line) and \
                self.queue.try_enter(line) == Entered.yes:
            self.queue.leave_reader(number)
            self.leave()
        else:
            self.queue.abandon_reader(number)

    def release_readers(self):
        """Called when the handle is closed: other processes may then hold its readers."""
        cdef bint is_entered = False
        cdef uint32_t i
        cdef bint is_any = False
        for i in range(self.map.reader_lines):
            is_any |= self.queue.participant_table().holds(reader_lock_number(i))
        if not is_any:
            return
        try:
            is_entered = self.acquire(AT_ONCE, False)  # the handle is closed already
        except (CorruptSegment, TooManyParticipants):
            pass
        for i in range(self.map.reader_lines):
            if not self.queue.participant_table().holds(reader_lock_number(i)):
                continue
            if is_entered:
                self.queue.leave_reader(i)
            else:
                self.queue.abandon_reader(i)
        if is_entered:
            self.leave()


# For the garbage collector: the references of the log are reachable from the queue.

cdef int traverse(PyObject* backend, visitproc visit, void* arg) noexcept:
    cdef LogBackend self = <LogBackend>backend
    cdef int stop = original_traverse(backend, visit, arg) if original_traverse is not NULL else 0
    if stop or self.queue is NULL or self.item_kind != REFERENCE:
        return stop
    return visit_events(self.map[0], visit, arg)


cdef int clear(PyObject* backend) noexcept:
    """Drops the log's references: only they can be part of a cycle. Readers and __dealloc__ still need the memory."""
    cdef LogBackend self = <LogBackend>backend
    cdef vector[void*] forgotten
    if self.queue is not NULL and self.item_kind == REFERENCE:
        collect_events(self.map[0], forgotten)
        drop_held(forgotten.data(), forgotten.size())
    return 0


cdef traverseproc original_traverse = (<PyTypeObject*>LogBackend).tp_traverse
(<PyTypeObject*>LogBackend).tp_traverse = traverse
(<PyTypeObject*>LogBackend).tp_clear = clear
