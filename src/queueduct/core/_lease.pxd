from libc.stdint cimport int64_t, uint64_t

from queueduct.core._backend cimport SegmentBackend

cdef enum:
    LEASE_LIMIT = 65536    # items that one lease holds


cdef class Holding:
    """What one lease holds. Dropped before it is released, it gives everything back: see each kind's __dealloc__."""
    cdef SegmentBackend backend
    cdef uint64_t count              # items that it holds
    cdef bint is_redelivered         # a consumer had them before, and died or gave them back

    # A kind brings:
    cdef int begin(self, uint64_t limit) except -1          # before the first claim, of at most so many items
    cdef int64_t try_claim(self, bint waited) except -1     # how many items are ours now; raises what a get raises
    cdef bint wait(self, int64_t deadline) except -1        # True to claim again; False: the time is up
    cdef bint is_ours(self) noexcept                        # False in a forked child: the parent has the lease
    cdef uint64_t position_of(self, uint64_t i) noexcept
    cdef bytes copied(self, uint64_t i)                     # an item, if items are no records
    cdef void copy_records(self, char* to) noexcept nogil   # all of them
    cdef bint end(self, uint64_t released) noexcept nogil   # the rest is given back; False: the queue is corrupt
    cdef int after_end(self, bint is_any, bint is_all) except -1   # wakes the waiting participants
    cdef list unreleased(self, list asked)                  # those positions that a consumer has, and none has released

    cdef object take(self, object name, object max_items, int64_t deadline)
    cdef object _items(self)
    cdef object _positions(self)
