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


cdef bint has_fields_of(object theirs, object ours) except -1:
    """By their names, also further in: numpy would go by their places, and swap those that stand elsewhere."""
    if theirs.subdtype is not None and ours.subdtype is not None:
        return has_fields_of(theirs.base, ours.base)
    if theirs.names is None:
        return True
    return theirs.names == ours.names and all([has_fields_of(theirs[name], ours[name]) for name in theirs.names])


cdef bint is_unchanged(object before, object after) except -1:
    """Is every value the same? Floats may be rounded, as Python's own are, but not to infinity."""
    if after.dtype.names is not None:
        return all([is_unchanged(before[name], after[name]) for name in after.dtype.names])
    if after.dtype.kind in "fc":
        return (numpy.isfinite(before) == numpy.isfinite(after)).all()
    if after.dtype.kind == "V":
        return False
    return ((before == after) | ((before != before) & (after != after))).all()  # what is no time equals nothing


cdef object converted(object given, object base):
    """An array or a scalar of another dtype, if that means the same in ours."""
    cdef object array
    if not (has_fields_of(given.dtype, base) and numpy.can_cast(given.dtype, base, "same_kind")):
        raise TypeError(f"cannot put items of dtype {given.dtype} as {base}: convert them with astype first")
    with numpy.errstate(over="ignore"):
        array = numpy.asarray(given, dtype=base)
    if not numpy.can_cast(given.dtype, base, "safe") and not is_unchanged(given, array):
        raise ValueError(
            f"values of dtype {given.dtype} must come through unchanged as {base}, and some do not; "
            "convert them with astype first"
        )
    return array


cdef int check_shape(tuple given, tuple ours, bint one) except -1:
    """Nothing is reshaped: as many numbers in another order would be another item."""
    if one and given != ours:
        raise ValueError(
            f"put takes one item, of shape {ours}: shape={given}; reshape it, or use put_many for several"
        )
    if not one and given != (0,) and (given == () or given[1:] != ours):
        raise ValueError(
            "a batch has items of shape {}: shape={}; reshape them, or use put for one".format(
                str(("n", *ours)).replace("'", ""), given
            )
        )
    return 0


cdef object as_records(object dtype, object given, bint one):
    """One record or several as a contiguous array in that dtype and of that shape.

    What numpy made is put if its values stay the same, but for the rounding of floats; what Python made becomes what
    numpy makes of it.
    """
    cdef object base = dtype.base
    cdef object array
    if isinstance(given, (numpy.ndarray, numpy.generic)):
        if given.dtype != base:
            given = converted(given, base)
    elif not one and not isinstance(given, list) and not hasattr(given, "__array__") \
            and not PyObject_CheckBuffer(given):
        given = list(given)  # a tuple too: to numpy it would be one record
    array = numpy.asarray(given, dtype=base, order="C")
    check_shape(array.shape, dtype.shape, one)
    return array
