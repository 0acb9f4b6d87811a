# cython: language_level=3, binding=False, freethreading_compatible=True
"""A bounded queue: its two backends, in shared memory and within a process."""

cimport cython

from queueduct.native._native cimport Identity, byte
from queueduct.rings.shared._native cimport (
    BoundedOffsets, BoundedQueueHandle, Ring, new_bounded_references, slots_in_use,
)

from queueduct.errors import CorruptSegment


cdef NativeReferences* new_references(capacity) except? NULL:
    return new_bounded_references(capacity)


cdef tuple used_slots(NativeReferences* queue):
    """Returns how many slots are in use, and how many there are."""
    return slots_in_use(queue.ring()), queue.ring().capacity


include "_kind.pxi"


cdef str FULL = (
    "the queue {queue} is full: {size:,} of {capacity:,} slots{leased}{wanted}{waited}; get items, or create it with a "
    "larger capacity"
)


@cython.final
cdef class BoundedBackend(KindBackend):

    def __cinit__(self, opened):
        cdef BoundedOffsets at
        cdef dict offsets = opened.offsets
        cdef Identity identity
        cdef byte* memory = self.take_over(opened, &identity)
        at.control = offsets["control_offset"]
        at.participants = offsets["participants_offset"]
        at.producers = offsets["producers_offset"]
        at.generations = offsets["generations_offset"]
        at.lengths = offsets["lengths_offset"]
        at.payload = offsets["payload_offset"]
        self.attach(opened, new BoundedQueueHandle(
            memory, at, opened.geometry.capacity, opened.geometry.slot_bytes,
            opened.geometry.participants, opened.geometry.producers, opened.take_lock_fd(), identity,
        ))

    cdef int raise_corrupt(self) except -1:
        cdef const Ring* ring = &(<BoundedQueueHandle*>self.queue).ring()
        self.raise_if_truncated()
        raise CorruptSegment(
            f"the positions and generations of {self.told} contradict each other: "
            f"push_position={ring.push_position.load()}, pop_position={ring.pop_position.load()}, "
            f"capacity={ring.capacity}; recreate the queue"
        )

    cdef object why_full(self, double waited):
        cdef const Ring* ring = &(<BoundedQueueHandle*>self.queue).ring()
        cdef uint64_t leased = self.queue.count_leased()  # they lie behind pop_position, and their slots are not free
        cdef uint64_t used = min(ring.capacity, slots_in_use(ring[0]) + leased)
        return QueueFull(FULL, self.name, waited, used, ring.capacity, leased, self.refused_slots)

    cdef object limit_reason(self):
        return (
            f" (capacity={(<BoundedQueueHandle*>self.queue).ring().capacity} * slot_bytes={self.slot_bytes}); "
            "create the queue with a larger capacity or slot_bytes"
        )
