from queueduct.events._backend cimport EventsBody

cdef list list_readers(EventsBody body)
cdef str held_back(EventsBody body, bint dropped_too)
cdef int raise_full(EventsBody body) except -1
