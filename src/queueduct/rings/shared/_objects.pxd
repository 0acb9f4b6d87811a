from libc.stdint cimport int64_t, uint64_t

from queueduct.rings.shared._backend cimport RingBackend


cdef object get_object(RingBackend backend, int64_t deadline)
cdef object get_objects(RingBackend backend, uint64_t limit, int64_t deadline)
