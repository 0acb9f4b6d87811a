# What an item is, for the bindings: the numbers of items.py, and one of our own.

cdef enum:
    BYTES = 1
    RECORD = 2
    OBJECT = 3
    REFERENCE = 4        # within a process: objects as they are

cdef enum:
    LONG_COPY = 65536    # bytes from which a copy is worth giving up the GIL
