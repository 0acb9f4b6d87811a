from libc.stdint cimport uint64_t

from queueduct.native._native cimport Buffer


cdef class Gathered:
    """Where each item of a batch has its bytes; they stay there as long as this lives."""
    cdef Buffer* buffers
    cdef uint64_t count
    cdef uint64_t longest
    cdef uint64_t in_all
    cdef list held

cdef Gathered gather(object items)
