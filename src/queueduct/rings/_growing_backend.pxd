cimport cython

from queueduct.rings._backend cimport RingBackend
from queueduct.rings._native cimport LastRings


@cython.final
cdef class GrowingBackend(RingBackend):
    cdef LastRings* last

    cdef object resident_bytes(self)
