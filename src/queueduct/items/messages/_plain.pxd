cdef enum:
    PLAIN_MESSAGE = 1    # the last byte of a plain message

cdef Py_ssize_t write_plain(object item, char* into, Py_ssize_t room) except -1
cdef object read_plain(const char* data, Py_ssize_t length)
