cdef object encode_message(object item)
cdef object decode_message(object data)
cdef int keep_if_intact(list kept, object error, object data) except -1
