# cython: language_level=3, binding=False, freethreading_compatible=True
"""A batch of items that vary in length, as one array of where their bytes are."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc

from queueduct.items._buffers cimport Held, borrow


@cython.final
cdef class Gathered:

    def __dealloc__(self):
        PyMem_Free(self.buffers)


cdef Gathered gather(object items):
    """The items are ours from here on: what the caller does to its own list meanwhile is nothing to us."""
    cdef Gathered batch = Gathered()
    cdef uint64_t i = 0
    cdef Held lent
    batch.held = list(items)
    batch.count = len(batch.held)
    batch.buffers = <Buffer*>PyMem_Malloc((batch.count + 1) * sizeof(Buffer))
    if batch.buffers is NULL:
        raise MemoryError()
    for i in range(batch.count):
        item = batch.held[i]
        if type(item) is bytes:
            batch.buffers[i].data = PyBytes_AS_STRING(item)
            batch.buffers[i].bytes = PyBytes_GET_SIZE(item)
        else:
            lent = borrow(item)
            batch.held[i] = lent
            batch.buffers[i].data = lent.view.buf
            batch.buffers[i].bytes = lent.view.len
        batch.longest = max(batch.longest, batch.buffers[i].bytes)
        batch.in_all += batch.buffers[i].bytes
    return batch
