from libc.stdint cimport int64_t

from queueduct.events._backend cimport EventsBackend

cdef object put_once(EventsBackend backend, object items, object producer, object sequence, int64_t deadline)
cdef list list_producers(EventsBackend backend)
cdef int forget_producer(EventsBackend backend, object producer) except -1
