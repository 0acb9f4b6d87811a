cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from queueduct.core._backend cimport SegmentBackend
from queueduct.overwriting._native cimport Claim, OverwritingLease, OverwritingShared, LeasedMessage


@cython.final
cdef class Kept:
    """Messages of one get, leased until they are unpickled. If it is dropped before that, it gives them back."""
    cdef SegmentBackend backend
    cdef OverwritingShared* queue
    cdef OverwritingLease* lease
    cdef LeasedMessage* kept
    cdef uint64_t limit
    cdef uint64_t count

    cdef int begin(self, SegmentBackend backend, OverwritingShared* queue, uint64_t limit) except -1
    cdef int allocate(self)
    cdef Claim claim(self, uint32_t line, int64_t limit_ns) noexcept
    cdef list converted(self, uint64_t item_bytes)
    cdef void give_back(self, uint64_t released) noexcept


@cython.final
cdef class Unread:
    cdef list first               # None, or [a pickle, the next node]
    cdef uint32_t forks           # the number of forks of the process that has them

    cdef bint has_some(self, uint32_t forks) except -1
    cdef list take(self)
    cdef int keep(self, list node) except -1
    cdef uint64_t count(self) except? 0
