# cython: language_level=3, binding=False, freethreading_compatible=True
"""The base of every backend on a mapped segment: its memory, its participant, and the errors of every kind."""

cimport cython
from cpython.exc cimport PyErr_CheckSignals

import os

from queueduct.core._queue cimport AT_ONCE, open_backend, remaining_ns
from queueduct.items._buffers cimport Held, gather, listed
from queueduct.items._item_kinds cimport OBJECT, REFERENCE
from queueduct.native._guard cimport forget, watch
from queueduct.native._native cimport (
    allocated_bytes, check_length, count_wait, is_broken, mark_broken, monotonic_ns, pause_for, thread_limit,
)

from queueduct.errors import CorruptSegment, QueueClosed, QueueNotShared, ShutDown, TooManyParticipants
from queueduct.items import types
from queueduct.segments.boot import boot_id, process_start_ticks

encode_object = types.encode_object

cdef enum:
    FIRST_PAUSE_NS = 50000        # of a join, before it asks again
    LONGEST_PAUSE_NS = 20000000

cdef extern from "native/_handover.hpp" namespace "queueduct":
    void count_for_all_threads(object)  # the thread that drops the last reference frees it at once


cdef SegmentBackend named_backend(Queue queue, str what):
    """Returns the backend of a queue with a name: a queue within a process has no producers and no leases."""
    cdef Backend backend = open_backend(queue)
    if queue.segment is None:
        raise ValueError(f"a queue without a name has no {what}; use {type(queue).__name__}.create(name, ...)")
    return backend


cdef Identity own_identity() except *:
    """Returns by what other processes tell whether this one is alive."""
    cdef Identity identity
    boot = boot_id()
    identity.boot_id[0] = int.from_bytes(boot[:8], "little")
    identity.boot_id[1] = int.from_bytes(boot[8:], "little")
    identity.start_ticks = process_start_ticks()
    return identity


cdef dict counter_fields(Counted counted):
    """Returns the last fields of every kind's stats."""
    return {
        "items_put": counted.items_put,
        "bytes_put": counted.bytes_put,
        "items_got": counted.items_got,
        "bytes_got": counted.bytes_got,
        "waits_for_room": counted.waits_for_room,
        "waits_for_items": counted.waits_for_items,
        "waited_seconds": counted.waited_ns * 1e-9,
    }


@cython.no_gc_clear  # leases, slots and readers in the same cycle need its memory; no cycle consists of backends alone
cdef class SegmentBackend(Backend):

    def __dealloc__(self):
        forget(self.guard)

    cdef Joined try_join(self) noexcept nogil: return Joined.lost
    cdef void sleep(self, bint for_items, uint64_t slots, int64_t limit_ns) noexcept nogil: pass
    cdef int check_length(self, uint64_t length) except -1: return 0
    cdef int raise_corrupt(self) except -1: return self.raise_if_truncated()
    cdef bint is_all_done(self) except -1: return False
    cdef object count_others(self): return self.participant_table.count_alive() - 1

    cdef byte* take_over(self, object opened, Identity* identity) except NULL:
        """Takes the memory of an open segment. The caller takes its descriptor next; nothing raises after that."""
        cdef Held mapped
        self.memory = opened.take_memory()
        count_for_all_threads(self.memory)
        mapped = Held(self.memory)
        self.participants = opened.geometry.participants
        self.is_read_only = getattr(opened, "is_read_only", False)
        self.item_kind = REFERENCE
        if opened.item is not None:
            if opened.name is not None:
                self.call_it(opened.name)
            self.dtype = opened.item.dtype
            self.record_bytes = 0 if self.dtype is None else self.dtype.itemsize
            self.item_kind = opened.item.kind
            self.guard = watch(mapped.view.buf, mapped.view.len)
        identity[0] = own_identity()
        return <byte*>mapped.view.buf

    cdef int check_open(self) except -1:
        if self.is_closing:
            return Backend.check_open(self)
        if self.participant_table is not NULL and self.participant_table.was_lost():
            self.raise_lost()
        return 0

    cdef int check_attached(self) except -1:
        """Raises OSError if the participant table could not open its file."""
        cdef int error = self.participant_table.open_error()
        if error != 0:
            raise OSError(
                error,
                f"the queue {self.label} needs a file descriptor of its own for its locks: {os.strerror(error)}; "
                "close files that are not needed, or raise the limit (ulimit -n)",
            )
        return 0

    cdef int join(self) except -1:
        """Makes this thread a participant."""
        cdef Joined joined
        with nogil:
            joined = self.try_join()
        return 0 if joined == Joined.yes else self.raise_not_joined(joined)

    cdef object batch(self, object items):
        return as_records(self.dtype, items, one=False) if self.item_kind == RECORD else Backend.batch(self, items)

    cdef Gathered gather(self, object items):
        """Returns a batch of items that vary in length. Raises if one of them can never fit."""
        cdef Gathered batch = gather(list(map(encode_object, listed(items))) if self.item_kind == OBJECT else items)
        self.check_length(batch.longest)
        return batch

    cdef bint wait_until(self, bint for_items, uint64_t slots, int64_t deadline, bint is_first) except -1:
        """Waits after a failed attempt. Returns true to try again, false if the time is up."""
        cdef int64_t left = 0 if deadline == AT_ONCE else remaining_ns(deadline)
        cdef int64_t began
        if left <= 0:
            return False
        began = monotonic_ns()
        with nogil:
            self.sleep(for_items, slots, left)
        self.note_wait(for_items, is_first, began)
        PyErr_CheckSignals()
        self.check_open()
        return True

    cdef void note_wait(self, bint for_items, bint is_first, int64_t began) noexcept:
        """Counts a sleep in this thread's line, if it has one. Called before code that may fork."""
        cdef uint32_t mine = self.participant_table.mine_plus_one()
        if mine != 0:
            count_wait(self.participant_table.lines()[mine - 1].counters, for_items, is_first, began)

    cdef int wait(self, bint for_items, uint64_t slots, int64_t deadline) except -1:
        cdef int64_t left = remaining_ns(deadline)
        with nogil:
            self.sleep(for_items, slots, left)
        return self.check_open()

    cdef bint wait_done(self, int64_t deadline) except -1:
        """Asks again and again: a release wakes nobody who does not wait for its room, so that it costs nothing."""
        cdef int64_t pause = FIRST_PAUSE_NS
        cdef int64_t left
        while True:
            self.check_open()
            if self.is_all_done():
                return True
            self.check_sound()
            left = 0 if deadline == AT_ONCE else remaining_ns(deadline)
            if left <= 0:
                return False
            with nogil:
                pause_for(min(left, pause))
            PyErr_CheckSignals()
            pause = min(2 * pause, <int64_t>LONGEST_PAUSE_NS)

    cdef int check_held(self) except -1:
        """Raises if the handle has lost its file. Called before an operation that needs the file itself."""
        if self.participant_table is not NULL and self.participant_table.is_lost():
            self.raise_lost()
        return 0

    cdef object resident_bytes(self):
        """What the queue takes of memory or disk, as the kernel counts it."""
        self.check_held()
        return allocated_bytes(self.participant_table.descriptor())

    cdef int check_sound(self) except -1:
        """Raises if an access to the mapping has met a missing page."""
        return self.raise_if_truncated() if is_broken(self.guard) else 0

    cdef bint is_unsettled(self, uint32_t line) noexcept:
        return self.participant_table.lines()[line].intent.load() != 0

    cdef bint is_cut(self):
        """Returns true if the file is shorter than what is mapped of it, or if that cannot be known."""
        cdef int fd = -1 if self.participant_table is NULL else self.participant_table.descriptor()
        return fd < 0 or check_length(fd, len(self.memory)) != 0

    cdef int raise_if_truncated(self) except -1:
        if not is_broken(self.guard):
            return 0
        if self.is_cut():
            raise CorruptSegment(f"the segment of {self.told} was truncated while it was in use; recreate the queue")
        raise CorruptSegment(
            f"a page of the segment of {self.told} could not be had, although its file is as long as it was: it has a "
            "hole where none may be, or its disk fails; close this handle and open the queue again"
        )

    cdef int raise_if_cut(self) except -1:
        """Called after a copy that met a missing page. If the file was cut, marks this handle's memory broken."""
        if self.guard is not NULL and self.is_cut():
            mark_broken(self.guard)
        return self.raise_if_truncated()

    cdef int raise_not_joined(self, Joined joined) except -1:
        """Raises the error that says why a thread has no line in the participant table."""
        self.raise_if_truncated()
        if joined == Joined.table_full:
            raise TooManyParticipants(
                f"all {self.participants} participants of {self.told} are in use; "
                "close handles that are not needed, or create the queue with a larger participants="
            )
        if joined == Joined.too_many_threads:
            raise TooManyParticipants(f"more than {thread_limit} threads of this process use queueduct at once")
        if joined == Joined.forked_off:
            raise QueueNotShared(
                f"the queue {self.label} lives in the process that we were forked from: give it a name"
            )
        self.raise_lost()

    cdef int raise_lost(self) except -1:
        """The handle has no descriptor to hold its locks, so no other participant would see that it is alive."""
        raise QueueClosed(
            f"this handle of the queue {self.label} has no file descriptor any more: either this process has closed "
            "it, as os.closerange() and daemons do, or it could not be had: too many files were open, or there is no "
            "/proc; open the queue again by its name, or make one without a name after that"
        )

    cdef int raise_shut_down(self) except -1:
        self.check_sound()
        raise ShutDown(f"the queue {self.label} is shut down")
