from libc.stdint cimport int64_t

from queueduct._slots_body cimport SlotsBody

cdef object put_evicting(SlotsBody body, object item, int64_t deadline)
cdef object evict_surplus(SlotsBody body)
