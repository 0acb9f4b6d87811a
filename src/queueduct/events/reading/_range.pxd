from libc.stdint cimport uint64_t

from queueduct.events._backend cimport EventsBackend

cdef tuple checked_range(EventsBackend backend, object start, object stop, object epoch)
cdef object read_records(EventsBackend backend, uint64_t start, uint64_t stop)
cdef object read_items(EventsBackend backend, uint64_t start, uint64_t stop)
