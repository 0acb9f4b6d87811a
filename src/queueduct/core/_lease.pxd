from libc.stdint cimport int64_t, uint64_t

from queueduct.core._backend cimport SegmentBackend

cdef enum:
    LEASE_LIMIT = 65536    # items that one lease holds at most


cdef class Holding:
    """The items of one lease. If it is dropped before its release, each kind's __dealloc__ gives them back."""
    cdef SegmentBackend backend
    cdef uint64_t count              # items that it holds
    cdef bint has_waited             # before it had its items
    cdef bint is_redelivered         # a consumer had them before, and died or gave them back

    # Each kind implements:
    cdef int begin(self, uint64_t limit) except -1          # called before the first claim, of at most `limit` items
    cdef int64_t try_claim(self, bint waited) except -1     # returns how many it has claimed; raises as a get
    cdef bint wait(self, int64_t deadline) except -1        # returns true to claim again, false if the time is up
    cdef bint is_ours(self) noexcept                        # false in a forked child: the parent has the lease
    cdef uint64_t position_of(self, uint64_t i) noexcept
    cdef uint64_t deliveries_of(self, uint64_t i) noexcept  # this one included
    cdef bytes copied(self, uint64_t i)                     # an item that is no record
    cdef void copy_records(self, char* to) noexcept nogil   # copies all items, if they are records
    cdef bint end(self, uint64_t released) noexcept nogil   # gives the rest back; false if the queue is corrupt
    cdef int after_end(self, bint is_any, bint is_all) except -1   # wakes the waiting participants
    cdef list unreleased(self, list asked)                  # the positions that are claimed and not released
    cdef object why_empty(self, double waited)              # the QueueEmpty of a lease that found nothing

    cdef object take(self, object name, object max_items, object block, object timeout)
    cdef object _items(self)
    cdef object _positions(self)
    cdef object _deliveries(self)
