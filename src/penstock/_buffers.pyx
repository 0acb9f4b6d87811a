# cython: language_level=3, binding=False, freethreading_compatible=True
"""Items as memory: what a caller gives us, as bytes that stay where they are while we copy them."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer

import numpy


@cython.final
cdef class Held:
    """A buffer that somebody lends us, for as long as this lives."""
    def __cinit__(self, lender):
        PyObject_GetBuffer(lender, &self.view, PyBUF_SIMPLE)

    def __dealloc__(self):
        PyBuffer_Release(&self.view)


cdef Held borrow(object item):
    """The bytes of anything that has some."""
    if isinstance(item, str):
        raise TypeError("a queue of bytes takes bytes, not str: encode it first, or create the queue with item=object")
    if isinstance(item, numpy.ndarray) and item.dtype.hasobject:
        raise TypeError("an array of Python objects has no bytes of its own: create the queue with item=object")
    try:
        return Held(item)
    except (TypeError, BufferError, ValueError) as error:
        raise TypeError(
            f"a queue of bytes takes bytes or a contiguous buffer, not {type(item).__name__}; "
            "create the queue with item=object for Python objects"
        ) from error


cdef bint may_become(object theirs, object ours) except -1:
    """Without loss. Fields by their names: numpy would go by their places, and swap those that stand elsewhere."""
    return (theirs.names is None or theirs.names == ours.names) and numpy.can_cast(theirs, ours, "same_kind")


cdef object as_records(object dtype, object given, bint one):
    """Records as a contiguous array in that dtype; nothing is narrowed in silence."""
    cdef object base = dtype if dtype.subdtype is None else dtype.base
    cdef object array
    if isinstance(given, (numpy.ndarray, numpy.generic)):
        if given.dtype != base and not may_become(given.dtype, base):
            raise TypeError(f"cannot put items of dtype {given.dtype} as {base}: convert them with astype first")
    elif not one and not isinstance(given, list) and not hasattr(given, "__array__") \
            and not PyObject_CheckBuffer(given):
        given = list(given)  # a tuple too: to numpy it would be one record
    array = numpy.ascontiguousarray(given, dtype=base)
    if (array.nbytes != dtype.itemsize) if one else (array.nbytes % dtype.itemsize != 0):
        raise ValueError(
            f"{'put takes one item' if one else 'put_many takes whole items'} of dtype {dtype}: "
            f"got shape {array.shape} of {array.dtype}"
        )
    return array
