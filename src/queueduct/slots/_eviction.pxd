from libc.stdint cimport int64_t

from queueduct.slots._backend cimport SlotsBackend

cdef object put_evicting(SlotsBackend backend, object item, int64_t deadline)
cdef object evict_surplus(SlotsBackend backend)
