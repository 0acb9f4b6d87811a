# cython: language_level=3, binding=False, freethreading_compatible=True
"""Pickles that are still in their queue become objects: what of the queue is over then, and what comes again."""

from libc.stdint cimport uint64_t

from queueduct.items import types as items

cdef object decode_object = items.decode_object
cdef object is_its_own = items.is_its_own


cdef object unpickle_one(object data, bint* is_over):
    """As unpickle_all() does it with a batch of one."""
    is_over[0] = False
    try:
        item = decode_object(data)
    except BaseException as error:
        is_over[0] = is_its_own(error, data)
        raise
    is_over[0] = True
    return item


cdef int unpickle_all(list batch, uint64_t* over) except -1:
    """In place, as far as one that cannot be unpickled. The first `over` items are done with, also after an error.

    The first one's own error is raised, and that item is done with. Any other one's comes at its turn. Whatever else
    ends it, such as a signal's handler, leaves all of them undone.
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
