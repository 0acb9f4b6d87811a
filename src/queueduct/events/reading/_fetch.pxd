from libc.stdint cimport uint64_t

from queueduct.events._backend cimport EventsBody
from queueduct.events._native cimport Run
from queueduct.native._guard cimport Window

cdef object fetch_one(EventsBody body, const Run& run)
cdef list fetch_list(EventsBody body, const Run& run)
cdef bint fetch_records(EventsBody body, const Run& run, char* to) except -1
cdef object decoded(EventsBody body, object fetched)
cdef Window window_on(EventsBody body, const Run& run, Window before)
cdef object array_on(EventsBody body, const Run& run, Window window)
