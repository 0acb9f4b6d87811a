cimport cython

from queueduct.rings.shared._backend cimport RingBackend
from queueduct.rings.shared._native cimport LastRings


@cython.final
cdef class GrowingBackend(RingBackend):
    cdef LastRings* last

    cdef object resident_bytes(self)
