from queueduct.events._backend cimport EventsBackend

cdef list list_readers(EventsBackend backend)
cdef list readers_seen(EventsBackend backend)
cdef str held_back(EventsBackend backend, bint dropped_too)
cdef object why_full(EventsBackend backend, double waited)
