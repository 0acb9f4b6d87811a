from libc.stdint cimport int64_t, uint32_t, uint64_t

from penstock._native cimport Identity, Joined, Range
from penstock._queue cimport Body


cdef class MappedBody(Body):
    """A body that works on a mapped segment: what is needed of it whatever the kind."""
    cdef Range* guard                # NULL: memory of our own, which nobody can truncate
    cdef int form                    # what an item is
    cdef uint32_t participants
    cdef readonly object dtype
    cdef readonly object memory      # the mapping: unmapped when the last one is out
    cdef list deferred               # errors of items that were got after others, for whoever gets next

    cdef int raise_if_truncated(self) except -1
    cdef int raise_not_joined(self, Joined joined) except -1
    cdef int raise_shut_down(self) except -1
    cdef int raise_deferred(self) except -1
    cdef list get_one_by_one(self, uint64_t limit, int64_t deadline)


cdef Identity own_identity() except *
