# cython: language_level=3, binding=False, freethreading_compatible=True
"""A bounded queue in shared memory: how its memory is attached, and what it says of itself."""

cimport cython

from queueduct.core._backend cimport own_identity
from queueduct.items._buffers cimport Held
from queueduct.native._native cimport Identity, byte
from queueduct.rings.shared._native cimport BoundedOffsets, Ring, BoundedQueueHandle

from queueduct.errors import CorruptSegment


@cython.final
cdef class BoundedBackend(RingBackend):

    def __cinit__(self, opened):
        cdef BoundedOffsets at
        cdef dict offsets = opened.offsets
        cdef Held mapped = self.map_memory(opened)
        cdef Identity identity = own_identity()  # before the descriptor is taken: from there on nothing raises
        at.control = offsets["control_offset"]
        at.participants = offsets["participants_offset"]
        at.producers = offsets["producers_offset"]
        at.generations = offsets["generations_offset"]
        at.lengths = offsets["lengths_offset"]
        at.payload = offsets["payload_offset"]
        self.attach(opened, new BoundedQueueHandle(
            <byte*>mapped.view.buf, at, opened.geometry.capacity, opened.geometry.slot_bytes,
            opened.geometry.participants, opened.geometry.producers, opened.take_lock_fd(), identity,
        ))

    cdef int raise_corrupt(self) except -1:
        cdef const Ring* ring = &(<BoundedQueueHandle*>self.queue).ring()
        self.raise_if_truncated()
        raise CorruptSegment(
            f"the positions and generations of {self.label} contradict each other: "
            f"push_position={ring.push_position.load()}, pop_position={ring.pop_position.load()}, "
            f"capacity={ring.capacity}; recreate the queue"
        )

    cdef object limit_reason(self):
        return (
            f" (capacity={(<BoundedQueueHandle*>self.queue).ring().capacity} * slot_bytes={self.slot_bytes}); "
            "create the queue with a larger capacity or slot_bytes"
        )
