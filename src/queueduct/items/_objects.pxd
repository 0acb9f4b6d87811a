from libc.stdint cimport uint64_t

cdef object unpickle_one(object data, bint* is_over)
cdef int unpickle_all(list batch, uint64_t* over) except -1
