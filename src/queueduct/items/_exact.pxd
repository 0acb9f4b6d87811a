cimport cython
from libc.stdint cimport int64_t
from libcpp.vector cimport vector


cdef class Rule:
    cdef object dtype                # of one value
    cdef str name                    # the field's own
    cdef str path                    # the field, as a.b; empty for a queue of plain numbers
    cdef Py_UCS4 kind                # numpy's letter for the kind
    cdef tuple shape                 # of a field that is an array; else ()
    cdef tuple fields                # Rules
    cdef bint has_arrays
    cdef bint is_wide                # more precise than a Python float
    cdef int64_t itemsize
    cdef vector[int64_t] floats      # their offsets in a record, but for those in arrays
    cdef vector[int64_t] doubles
    cdef bint is_subtle              # one comparison is not enough: times, and floats that are wide or swapped

    cdef object ordered(self, object given, object index)
    cdef object _ordered_array(self, object given, tuple shape, object index)
    cdef object _ordered_record(self, object given, object index)
    cdef list by_name(self, object given, object index)
    cdef int _misnamed(self, object given, object index) except -1
    cdef int _find_floats(self, object dtype, int64_t offset) except -1
    cdef bint is_equal(self, object given, object stored, object array) except -1
    cdef bint _has_large(self, object array, object stored) except -1
    cdef int check(self, object given, object stored, object index) except -1
    cdef int _check_one(self, object given, object stored, object index) except -1
    cdef int _check_field(self, object given, object stored, object index) except -1
    cdef int _check_array(self, object given, object stored, tuple shape, object index) except -1
    cdef int _check_record(self, object given, object stored, object index) except -1
    cdef int _check_time(self, object given, object stored, object index) except -1
    cdef bint _is_same(self, object given, object stored) except -1
    cdef int _check_leaf(self, object given, object stored, object index) except -1
    cdef int _refuse(self, object given, str why, object index) except -1

cdef bint is_mapping(object given) except -1
cdef Rule rule_of(object dtype)
cdef object NONE
