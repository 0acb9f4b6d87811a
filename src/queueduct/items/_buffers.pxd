cimport cython
from libc.stdint cimport uint64_t

from queueduct.native._native cimport Buffer


@cython.final
cdef class Held:
    cdef Py_buffer view

cdef class Gathered:
    """Where the bytes of each item of a batch are. They stay there as long as this object lives."""
    cdef Buffer* buffers
    cdef uint64_t count
    cdef uint64_t longest
    cdef uint64_t in_all
    cdef list held

cdef Held borrow(object item)
cdef Gathered gather(object items)
cdef object listed(object items)
cdef int refuse_stream(object given) except -1
cdef object as_records(object dtype, object given, bint one)
cdef object scalar_of(object record)
