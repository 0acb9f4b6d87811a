cimport cython

from queueduct.rings._backend cimport RingBackend


@cython.final
cdef class BoundedBackend(RingBackend):
    pass
