from libc.stdint cimport int64_t, uint64_t

from queueduct.core._queue cimport Backend
from queueduct.rings.shared._backend cimport RingBackend
from queueduct.rings.shared._native cimport LocalHandle


cdef object get_object(RingBackend backend, int64_t deadline)
cdef object get_objects(RingBackend backend, uint64_t limit, int64_t deadline)
cdef bint wait_for_tasks(Backend backend, LocalHandle* queue, int64_t deadline) except -1
cdef int raise_no_task(LocalHandle* queue) except -1
