cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from queueduct.core._backend cimport SegmentBackend
from queueduct.native._native cimport Buffer
from queueduct.overwriting._native cimport Claim, OverwritingRing, OverwritingShared
from queueduct.overwriting._objects cimport Unread

cdef enum:
    BRIEFLY_NS = 100000000  # how long even a call that never waits waits for the header, or for a copy


@cython.final
cdef class OverwritingBackend(SegmentBackend):
    cdef OverwritingShared* queue
    cdef OverwritingRing* ring
    cdef uint64_t item_bytes      # the item's part of a message's data
    cdef bint is_allocated        # the cells of leased messages have memory
    cdef Unread unread            # pickles that were got when no cell was free

    cdef int put_as(self, object item, bint overwrite, int64_t deadline) except -1
    cdef object put_many_as(self, object items, bint overwrite, int64_t deadline)
    cdef object _put_messages(
        self, const char* records, const Buffer* messages, uint64_t count, bint overwrite, int64_t deadline
    )
    cdef int _put_message(self, const void* data, uint64_t length, bint overwrite, int64_t deadline) except -1
    cdef Claim _try_put(
        self, uint32_t line, const char* records, const Buffer* messages, uint64_t count, bint overwrite,
        int64_t limit_ns, uint64_t* put,
    ) noexcept nogil
    cdef int64_t retry_ns(self, Claim claim, bint for_items, int64_t deadline, int64_t* end, bint is_first) except -2
    cdef object _new_target(self)
    cdef object _get_objects(self, uint64_t limit, int64_t deadline)
    cdef object _get_unkept(self, int64_t deadline)
    cdef uint64_t count_left(self) noexcept
    cdef bint _get_message(self, void* to, int64_t deadline) except -1
    cdef bint _may_have_some(self) except -1
    cdef object _get_records(self, uint64_t limit, int64_t deadline)
    cdef object _get_bytes(self, uint64_t limit, int64_t deadline)
    cdef bint _get_another(self, uint32_t line, void* to) noexcept
    cdef void* _data_of(self, object target) noexcept
