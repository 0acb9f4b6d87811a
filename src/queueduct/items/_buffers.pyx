# cython: language_level=3, binding=False, freethreading_compatible=True
"""Items as memory: the bytes of a caller's items, which stay where they are while they are copied."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc

from queueduct.items._exact cimport NONE, Rule, check_mask, converted, rule_of

import numpy

from queueduct.errors import UnfitItem

cdef object asarray = numpy.asarray
cdef object ndarray = numpy.ndarray


@cython.final
cdef class Held:
    """A buffer that a caller lends, as long as this object lives."""
    def __cinit__(self, lender):
        PyObject_GetBuffer(lender, &self.view, PyBUF_SIMPLE)

    def __dealloc__(self):
        PyBuffer_Release(&self.view)


cdef Held borrow(object item):
    """Returns the bytes of any object that has a contiguous buffer."""
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


@cython.final
cdef class Gathered:

    def __dealloc__(self):
        PyMem_Free(self.buffers)


cdef Gathered gather(object items):
    """Returns a batch with its own list of the items, so that the caller may change its list meanwhile."""
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


cdef int check_shape(tuple given, tuple ours, bint one) except -1:
    """Refuses another shape: the same numbers in another order would be another item."""
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
    """Returns one record or several as a contiguous array of that dtype and shape.

    Raises if a value would change. What counts as a change is in _exact.pyx.
    """
    cdef object base = dtype.base
    cdef object array
    if type(given) is not tuple and type(given) is not list:
        if not isinstance(given, (ndarray, numpy.generic)) and not isinstance(given, (bytes, str)) \
                and (PyObject_CheckBuffer(given) or hasattr(given, "__array__")):
            given = numpy.asarray(given)
        if isinstance(given, (ndarray, numpy.generic)):
            if type(given) is not ndarray:
                check_mask(given)
            if given.dtype != base:
                given = converted(given, base)
            array = asarray(given, dtype=base, order="C")
            check_shape(array.shape, dtype.shape, one)
            return array
    if not one and not isinstance(given, (list, bytes, str)):
        given = list(given)  # a tuple too: numpy would take it for one record
    return made(dtype, base, given, one)


cdef object made(object dtype, object base, object given, bint one):
    """The same for values that are no arrays."""
    cdef Rule rule = rule_of(dtype)
    cdef object array, stored
    cdef Py_ssize_t i
    try:
        array = asarray(given, dtype=base, order="C")
    except MemoryError:
        raise
    except Exception as error:
        find_unfit(rule, given, one)
        raise UnfitItem(f"what is put must come through unchanged as {dtype}: {error}; convert it first") from error
    check_shape(array.shape, dtype.shape, one)
    stored = array.tolist()
    if rule.is_equal(given, stored):
        return array
    if one:
        rule.check(given, stored, None)
    else:
        for i in range(len(stored)):
            rule.check(given[i], stored[i], i)
    return array


cdef object scalar_of(object record):
    """Returns the scalar of an array without dimensions; the array itself if there is no memory for a scalar."""
    try:
        return record[()]
    except MemoryError:
        return record


cdef int find_unfit(Rule rule, object given, bint one) except -1:
    """Raises the error of the field that numpy has refused without naming it."""
    cdef Py_ssize_t i
    if one:
        rule.check(given, NONE, None)
    elif isinstance(given, list):
        for i in range(len(given)):
            rule.check(given[i], NONE, i)
    return 0
