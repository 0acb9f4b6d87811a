cdef bint are_same_times(object before, object after) except -1
cdef int check_mask(object given) except -1
cdef object converted(object given, object base)
