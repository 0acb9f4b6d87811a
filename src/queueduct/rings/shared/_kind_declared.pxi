# The declarations of _kind.pxi, for the .pxd of each kind.

cdef class KindBackend(RingBackend):
    @cython.final
    cdef inline NativeQueue* native(self) noexcept nogil
    @cython.final
    cdef Outcome _put_some(
        self, Participant ledger, const Buffer* buffers, const char* records, uint64_t done, uint64_t count,
        uint64_t* put
    ) noexcept nogil
    @cython.final
    cdef inline object _room_for(self, const Item& item, Target* target)
    @cython.final
    cdef object _room_for_many(self, const Item& item, Target* targets, uint64_t count, list spare)
    @cython.final
    cdef inline bint _take(self, Participant ledger, Item& item, const Target* targets, uint64_t count) except -1
    @cython.final
    cdef inline int _end_put(self, bint waited) except -1
    @cython.final
    cdef int _put_bytes(self, const void* data, uint64_t length, int64_t deadline) except -1
    @cython.final
    cdef object _put_batch(
        self, const Buffer* buffers, const char* records, uint64_t count, uint64_t in_all, int64_t deadline
    )
    @cython.final
    cdef object _get_bytes(self, int64_t deadline)


@cython.final
cdef class LocalBackend(Backend):
    """A queue of references within this process, bounded or growing."""
    cdef object unused             # Cython gives only a class with an object member a trashcan
    cdef NativeReferences* queue

    cdef uint64_t _drop_references(self) noexcept
    cdef inline void _after_put(self, bint waited) noexcept
    cdef inline void _after_get(self, bint waited) noexcept
    cdef bint _wait_for_room(self, Outcome outcome, int64_t deadline) except -1
    cdef bint _wait_for_items(self, Outcome outcome, int64_t deadline) except -1
    cdef bint _park(self, Event event, int64_t deadline, bint for_items) except -1
