# The kinds of items, for the bindings: the numbers of items/types.py, and one of the bindings' own.

cdef enum:
    BYTES = 1
    RECORD = 2
    OBJECT = 3
    REFERENCE = 4        # within a process: references to objects

cdef enum:
    LONG_COPY = 65536    # bytes from which a copy releases the GIL
