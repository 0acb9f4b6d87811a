from libc.stdint cimport int64_t, uint32_t, uint64_t

from queueduct.native._native cimport Identity, Joined, Range, ParticipantTable
from queueduct.core._queue cimport Backend


cdef class SegmentBackend(Backend):
    """A backend that works on a mapped segment: what is needed of it whatever the kind."""
    cdef Range* guard                # NULL: memory of our own, which nobody can truncate
    cdef const ParticipantTable* participant_table        # who uses it; NULL until there is one
    cdef int item_kind                    # what an item is
    cdef uint32_t participants
    cdef readonly object dtype
    cdef readonly object memory      # the mapping: unmapped when the last one is out
    cdef bint gave_back              # items that were got and could not be returned are to come before others

    cdef int check_attached(self) except -1
    cdef int check_held(self) except -1
    cdef bint is_cut(self)
    cdef int raise_if_truncated(self) except -1
    cdef int raise_if_cut(self) except -1
    cdef int raise_not_joined(self, Joined joined) except -1
    cdef int raise_lost(self) except -1
    cdef int raise_shut_down(self) except -1


cdef Identity own_identity() except *
