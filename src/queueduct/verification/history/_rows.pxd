from libc.stdint cimport uint64_t

from queueduct.verification.history._native cimport HistoryWriter


cdef class RowFile:
    """The rows of one worker, in a file of its own that grows with them."""
    cdef HistoryWriter* rows
    cdef uint64_t* memory
    cdef uint64_t size               # bytes of the file that are allocated on the disk
    cdef int descriptor
    cdef object path

    cdef int grow(self) except -1
    cdef int make_ready(self, uint64_t start) except -1
