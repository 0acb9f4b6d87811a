from libc.stdint cimport int64_t, uint64_t

from queueduct.core._backend cimport SegmentBackend
from queueduct.items._buffers cimport Gathered
from queueduct.native._native cimport ProducerLine, ProducerName, Producers, Taken

cdef enum Settled:
    SETTLED
    UNDECIDED        # the slots of the killed call are not recovered yet: try again
    CONTRADICTED     # the line contradicts the queue


cdef bytes encoded_name(str whose, object name)


cdef class ProducerCall:
    """One call for a named producer: the items that it puts, and the line that it owns meanwhile."""
    cdef SegmentBackend backend
    cdef ProducerName name
    cdef object producer          # its name
    cdef uint64_t sequence
    cdef uint64_t total           # items of the sequence
    cdef uint64_t done            # how many of them are in the queue
    cdef int64_t deadline
    cdef object timeout           # from which the deadline was computed
    cdef uint64_t owner           # the owner word with which this thread owns the line
    cdef ProducerLine* line
    cdef object array             # the items, if they are records
    cdef const char* records
    cdef Gathered batch           # the items, if they vary in length
    cdef bint is_long             # the copy is long enough to release the GIL

    # Each kind implements:
    cdef Producers* table(self) noexcept
    cdef int join(self) except -1                 # makes this thread a participant, unless it is one
    cdef Taken forget_line(self) except *
    cdef Settled try_settle(self) except *        # completes the line by what a killed call has put
    cdef bint put_some(self) except -1            # puts from `done` on, waits for room; false if the time is up
    cdef object why_full(self, double waited)     # the QueueFull of a call for which there is no room

    cdef object put(self, object items, object producer, object sequence, object block, object timeout)
    cdef double waited(self) except -1
    cdef list listed(self)
    cdef int forget(self, object producer) except -1
    cdef uint64_t owner_word(self) noexcept
    cdef int check_still_ours(self) except -1
    cdef int _identify(self, object producer) except -1
    cdef int _collect(self, object items) except -1
    cdef int _own(self) except -1
    cdef int _leave(self) except -1
    cdef int _settle(self) except -1
    cdef bint _begin(self) except -1
    cdef object _put_missing(self)
    cdef int _raise_in_use(self) except -1
