from queueduct.events._backend cimport EventsBackend

cdef list list_readers(EventsBackend backend)
cdef str held_back(EventsBackend backend, bint dropped_too)
cdef int raise_full(EventsBackend backend) except -1
