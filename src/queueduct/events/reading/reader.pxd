from libc.stdint cimport int64_t, uint64_t

from queueduct.events._backend cimport EventsBackend
from queueduct.events._native cimport ReadResult
from queueduct.events.reading._position cimport ReaderPosition


cdef class Reader(ReaderPosition):
    cdef object waiters           # asyncio's, made at its first use
    cdef uint64_t viewer          # the id of its open view; 0 if there is none
    cdef uint64_t session_end     # the end that iteration has read up to

    cdef uint64_t view_limit(self, object max_items) except 0
    cdef object unpickled(self, object item)
    cdef object get_one(self, int64_t deadline, bint goes_on)
    cdef object take_reference(self, bint goes_on, ReadResult* found)
    cdef object fetch(self, uint64_t limit, uint64_t end)
    cdef object fetch_all_records(self, uint64_t limit, uint64_t end)
    cdef object fetch_all_items(self, uint64_t limit, uint64_t end)

cdef Reader make_reader(object queue, EventsBackend backend, str name, str named_start, uint64_t start)
