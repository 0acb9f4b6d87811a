# cython: language_level=3, binding=False, freethreading_compatible=True
"""A growing queue: its two backends, in shared memory and within a process."""

cimport cython
from cpython.mem cimport PyMem_Calloc, PyMem_Free

from queueduct.native._native cimport Identity, byte
from queueduct.rings.shared._native cimport (
    GrowingOffsets, GrowingRing, LevelRange, Levels, NativeGrowing, new_growing_references,
)

import os

from queueduct.errors import CorruptSegment


cdef NativeReferences* new_references(capacity) except? NULL:
    return new_growing_references()


cdef tuple used_slots_of(const Levels& levels):
    """Returns how many slots of the written sub-queue are in use, and how many it has."""
    cdef LevelRange now = levels.level_range()
    cdef GrowingRing ring = levels.ring(now.written_level(), now)
    return (
        GrowingRing.position_of(ring.push_position.load()) - GrowingRing.position_of(ring.pop_position.load()),
        ring.capacity,
    )


cdef tuple used_slots(NativeReferences* queue):
    return used_slots_of(queue.levels())


include "_kind.pxi"


cdef str FULL_OF_BYTES = (
    "the queue {queue} is full: {size} of max_bytes={capacity} are in use, and the next part does not fit{leased}"
    "{waited}; get items, or create it with a larger max_bytes"
)
cdef str FULL_OF_SLOTS = (
    "the queue {queue} is full: {size:,} of {capacity:,} slots of its last sub-queue{leased}{wanted}{waited}; get "
    "items, or create it with more steps"
)


@cython.final
cdef class GrowingBackend(KindBackend):

    def __cinit__(self, opened):
        cdef GrowingOffsets at
        cdef dict offsets = opened.offsets
        cdef Identity identity
        cdef byte* memory = self.take_over(opened, &identity)
        geometry = opened.geometry
        self.max_bytes = geometry.max_bytes
        at.control = offsets["control_offset"]
        at.levels = offsets["levels_offset"]
        at.participants = offsets["participants_offset"]
        at.producers = offsets["producers_offset"]
        at.regions = offsets["regions_offset"]
        self.last = <LastRings*>PyMem_Calloc(geometry.participants, sizeof(LastRings))
        if self.last is NULL:
            raise MemoryError()
        self.attach(opened, new NativeGrowing(
            memory, at, geometry.first_bytes, geometry.steps, geometry.slot_bytes, opened.item.varies,
            geometry.max_bytes, geometry.participants, geometry.producers, opened.take_lock_fd(), identity, self.last,
        ))

    def __dealloc__(self):
        PyMem_Free(self.last)

    cdef int raise_corrupt(self) except -1:
        cdef NativeGrowing* queue = <NativeGrowing*>self.queue
        cdef LevelRange now = queue.levels().level_range()
        self.raise_if_truncated()
        if queue.is_lock_corrupt():
            raise CorruptSegment(
                f"the lock of {self.told}, under which memory is given and taken, names a participant that lives and "
                "does not have it: another program has written there; recreate the queue"
            )
        raise CorruptSegment(
            f"the level range, the positions and the generations of {self.told} contradict each other: "
            f"level_range={queue.control().level_range.load():#x}, levels {now.read_level()} to {now.written_level()} "
            f"of {queue.levels().steps()}; recreate the queue"
        )

    cdef int raise_no_memory(self) except -1:
        self.check_open()
        self.raise_if_cut()
        error = (<NativeGrowing*>self.queue).flow().error()
        raise OSError(
            error,
            f"no memory for the next part of {self.told}: {os.strerror(error)}; "
            "get items out of it, or create it with a max_bytes that there is room for",
        )

    cdef object why_full(self, double waited):
        cdef NativeGrowing* queue = <NativeGrowing*>self.queue
        if self.max_bytes != 0:
            return QueueFull(
                FULL_OF_BYTES, self.name, waited, queue.upkeep().reserved_bytes(), self.max_bytes,
                self.queue.count_leased(), self.refused_slots,
            )
        return QueueFull(
            FULL_OF_SLOTS, self.name, waited, *used_slots_of(queue.levels()), self.queue.count_leased(),
            self.refused_slots,
        )

    cdef object limit_reason(self):
        return ", what the largest sub-queue holds; create the queue with larger first_bytes, steps or max_bytes"
