# cython: language_level=3, binding=False, freethreading_compatible=True
"""Unpickling of items that are still in their queue: which are done with then, and which are redelivered."""

from libc.stdint cimport uint64_t

from queueduct.items import types as items

cdef object decode_object = items.decode_object
cdef object is_its_own = items.is_its_own


cdef object unpickle_one(object data, bint* is_over):
    """As unpickle_all(), for one item."""
    is_over[0] = False
    try:
        item = decode_object(data)
    except BaseException as error:
        is_over[0] = is_its_own(error, data)
        raise
    is_over[0] = True
    return item


cdef int unpickle_all(list batch, uint64_t* over) except -1:
    """Unpickles the batch in place, up to the first item that cannot be unpickled.

    Sets `over`: so many items, from the first on, are done with, also after an error. If the first item cannot be
    unpickled, raises its error; that item is done with. A later one's error is raised when it is the first. Any other
    exception, such as a signal handler's, leaves all items undone.
    """
    cdef uint64_t i = 0
    cdef object data = None
    over[0] = 0
    try:
        for i in range(<uint64_t>len(batch)):
            data = batch[i]
            batch[i] = decode_object(data)
    except BaseException as error:
        if not is_its_own(error, data):
            raise
        if i == 0:
            over[0] = 1
            raise
        del batch[i:]
    over[0] = len(batch)
    return 0
