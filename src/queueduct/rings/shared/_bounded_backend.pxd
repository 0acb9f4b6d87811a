cimport cython

from queueduct.rings.shared._backend cimport RingBackend


@cython.final
cdef class BoundedBackend(RingBackend):
    pass
