from libc.stdint cimport uint64_t

from queueduct.events._backend cimport EventsBackend

cdef int settle_boot(EventsBackend backend) except -1
cdef int check_epoch(EventsBackend backend, uint64_t position, object epoch) except -1
cdef uint64_t durable_end(EventsBackend backend, bint sync) except? 0xFFFFFFFFFFFFFFFF
