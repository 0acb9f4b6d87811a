from libc.stdint cimport int64_t, uint32_t, uint64_t

from queueduct.core._queue cimport Backend, Queue
from queueduct.items._batches cimport Gathered
from queueduct.native._native cimport Identity, Joined, Range, ParticipantTable, byte


cdef class SegmentBackend(Backend):
    """A backend that works on a mapped segment: what is needed of it whatever the kind."""
    cdef Range* guard                # NULL: memory of our own, which nobody can truncate
    cdef const ParticipantTable* participant_table        # who uses it; NULL until there is one
    cdef int item_kind                    # what an item is
    cdef uint32_t participants
    cdef readonly object dtype
    cdef readonly object memory      # the mapping: unmapped when the last one is out
    cdef bint gave_back              # items that were got and could not be returned are to come before others

    # A kind brings:
    cdef Joined try_join(self) noexcept nogil               # makes the calling thread a participant
    cdef void sleep(self, bint for_items, uint64_t slots, int64_t limit_ns) noexcept nogil
    cdef int check_length(self, uint64_t length) except -1  # of an item that varies in length: does it fit?
    cdef int raise_corrupt(self) except -1

    cdef byte* take_over(self, object opened, Identity* identity) except NULL
    cdef int check_attached(self) except -1
    cdef int join(self) except -1
    cdef Gathered gather(self, object items)
    cdef bint wait_until(self, bint for_items, uint64_t slots, int64_t deadline) except -1
    cdef int check_held(self) except -1
    cdef bint is_cut(self)
    cdef int raise_if_truncated(self) except -1
    cdef int raise_if_cut(self) except -1
    cdef int raise_not_joined(self, Joined joined) except -1
    cdef int raise_lost(self) except -1
    cdef int raise_shut_down(self) except -1


cdef SegmentBackend named_backend(Queue queue, str what)
cdef Identity own_identity() except *


cdef inline uint32_t line_of(SegmentBackend backend) except? 0xFFFFFFFF:
    """This thread's line in the participant table; a thread joins at its first operation."""
    cdef uint32_t mine = backend.participant_table.mine_plus_one()
    if mine == 0:
        backend.join()
        mine = backend.participant_table.mine_plus_one()
    return mine - 1
