from libc.stdint cimport uint64_t

from queueduct.native._native cimport Range

cdef extern from "segment/fault_guard.hpp" namespace "queueduct::fault_guard" nogil:
    cdef cppclass Attempt:
        pass
    bint copy_attempt "queueduct::fault_guard::copy"(Attempt**, void*, const void*, size_t) noexcept


cdef Range* watch(void* begin, size_t bytes) except NULL
cdef void forget(Range* range) noexcept
cdef Attempt** current_attempt() noexcept nogil


cdef class Window:
    """A second, read-only mapping of a part of a mapped segment. A fault in it does not mark the segment broken."""
    cdef char* memory
    cdef size_t length
    cdef const char* original     # where the same bytes are in the segment's own mapping
    cdef Range* guard

    cdef bint covers(self, const void* begin, uint64_t bytes) noexcept
    cdef uint64_t offset_of(self, const void* begin) noexcept
    cdef bint is_faulted(self) noexcept
