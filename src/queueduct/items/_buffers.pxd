cimport cython


@cython.final
cdef class Held:
    cdef Py_buffer view

cdef Held borrow(object item)
cdef object as_records(object dtype, object given, bint one)
cdef object scalar_of(object record)
