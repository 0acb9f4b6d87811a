from libc.stdint cimport int64_t, uint64_t

from queueduct.rings._backend cimport ClaimingBody


cdef object get_object(ClaimingBody body, int64_t deadline)
cdef object get_objects(ClaimingBody body, uint64_t limit, int64_t deadline)
