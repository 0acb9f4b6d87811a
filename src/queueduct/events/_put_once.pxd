from libc.stdint cimport int64_t

from queueduct.events._backend cimport EventsBody

cdef object put_once(EventsBody body, object items, object producer, object sequence, int64_t deadline)
cdef list list_producers(EventsBody body)
cdef int forget_producer(EventsBody body, object producer) except -1
