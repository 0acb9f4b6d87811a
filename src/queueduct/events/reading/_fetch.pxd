from libc.stdint cimport uint64_t

from queueduct.events._backend cimport EventsBackend
from queueduct.events._native cimport Run
from queueduct.native._guard cimport Window

cdef object fetch_one(EventsBackend backend, const Run& run)
cdef list fetch_list(EventsBackend backend, const Run& run)
cdef uint64_t bytes_in(list items) noexcept
cdef bint fetch_records(EventsBackend backend, const Run& run, char* to) except -1
cdef object decoded(EventsBackend backend, object fetched)
cdef Window window_on(EventsBackend backend, const Run& run, Window before)
cdef object array_on(EventsBackend backend, const Run& run, Window window)
