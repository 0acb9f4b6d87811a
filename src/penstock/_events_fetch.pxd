from libc.stdint cimport uint64_t

from penstock._events_body cimport EventsBody
from penstock._events_native cimport Run

cdef object fetch_one(EventsBody body, const Run& run)
cdef list fetch_list(EventsBody body, const Run& run)
cdef int fetch_records(EventsBody body, const Run& run, char* to) except -1
cdef object decoded(EventsBody body, object fetched)
cdef list readable(EventsBody body, list fetched)
cdef object array_on(EventsBody body, const Run& run)
