from libc.stdint cimport uint64_t

from queueduct.events._backend cimport EventsBody

cdef int settle_boot(EventsBody body) except -1
cdef int check_epoch(EventsBody body, uint64_t position, object epoch) except -1
cdef uint64_t durable_end(EventsBody body, bint sync) except? 0xFFFFFFFFFFFFFFFF
