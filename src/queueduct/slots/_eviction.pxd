from libc.stdint cimport int64_t

from queueduct.slots._backend cimport SlotsBody

cdef object put_evicting(SlotsBody body, object item, int64_t deadline)
cdef object evict_surplus(SlotsBody body)
