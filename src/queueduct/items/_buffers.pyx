# cython: language_level=3, binding=False, freethreading_compatible=True
"""Items as memory: the bytes of a caller's items, which stay where they are while they are copied."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc

from queueduct.items._exact cimport NONE, Rule, is_mapping, rule_of
from queueduct.items._exact_arrays cimport check_mask, converted

import reprlib
import sys

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
        if PyObject_CheckBuffer(item):
            raise TypeError(
                f"a queue of bytes takes a contiguous buffer, and the memory of this {type(item).__name__} is not: "
                f"{error}; put bytes(item)"
            ) from error
        raise TypeError(
            f"a queue of bytes takes bytes or a contiguous buffer, not {type(item).__name__}; "
            "create the queue with item=object for Python objects"
        ) from error


@cython.final
cdef class Gathered:

    def __dealloc__(self):
        PyMem_Free(self.buffers)


cdef bint is_table(object given) except -1:
    """Returns true for a data frame or a table of any library. Iterated, it would give columns, or their names."""
    return (hasattr(given, "__array__") or hasattr(given, "__arrow_c_stream__")) and hasattr(given, "columns")


cdef object listed(object items):
    """Returns a batch of items that are no records, as a list or a tuple."""
    if type(items) is list or type(items) is tuple:
        return items
    if is_mapping(items) or is_table(items):
        raise TypeError(
            f"put_many takes items one after another, and only a queue of records takes a table: "
            f"{type(items).__name__}; use put to make it one item, or give a list of what is meant: its keys, "
            "values or rows"
        )
    check_iterable(items)
    return list(items)


cdef int check_iterable(object items) except -1:
    """Says what a call of several items needs. An error of the items' own code comes through later, as it is."""
    if hasattr(type(items), "__iter__"):
        return 0
    if hasattr(items, "collect"):
        raise TypeError(f"a {type(items).__name__} has no rows before it is computed: collect() it first")
    try:
        iter(items)
    except TypeError:
        raise TypeError(
            f"several items must be a list, an array or something else to iterate over: {reprlib.repr(items)}; "
            "for one item give a list of it"
        ) from None
    return 0


cdef Gathered gather(object items):
    """Returns a batch with its own list of the items, so that the caller may change its list meanwhile."""
    cdef Gathered batch = Gathered()
    cdef uint64_t i = 0
    cdef Held lent
    batch.held = list(listed(items))
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

    Raises if a value would change. What counts as a change is in _exact.pyx, and for arrays in _exact_arrays.pyx.
    """
    cdef object base = dtype.base
    cdef object array
    if type(given) is not tuple and type(given) is not list:
        if not isinstance(given, (ndarray, numpy.generic)) and not isinstance(given, (bytes, str)):
            if not one and not PyObject_CheckBuffer(given):
                if is_mapping(given):
                    return from_columns(rule_of(dtype), given)
                if is_arrow(given):
                    return from_arrow(dtype, given)
            if PyObject_CheckBuffer(given) or hasattr(given, "__array__"):
                if one and is_table(given):
                    raise TypeError(f"put takes one item: {type(given).__name__}; use put_many for all its rows")
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
        check_iterable(given)
        given = list(given)  # a tuple too: numpy would take it for one record
    return made(rule_of(dtype), given, one)


cdef object made(Rule rule, object given, bint one):
    """The same for values that are no arrays."""
    cdef object refused = None
    cdef object ordered
    if not rule.fields:
        return checked(rule, given, one)
    if not isinstance(given if one or not given else given[0], dict):
        try:
            return checked(rule, given, one)
        except (TypeError, ValueError) as error:
            refused = error
    ordered = in_order(rule, given, one)
    if refused is not None and ordered is given:
        raise refused
    return checked(rule, ordered, one)


cdef object in_order(Rule rule, object given, bint one):
    """Returns values with each record as a tuple; the same object if they are so."""
    cdef list items
    cdef Py_ssize_t i
    if one:
        return rule.ordered(given, None)
    if not isinstance(given, list):
        return given
    items = [rule.ordered(given[i], i) for i in range(len(given))]
    for i in range(len(items)):
        if items[i] is not given[i]:
            return items
    return given


cdef object checked(Rule rule, object given, bint one):
    cdef object array, stored
    cdef Py_ssize_t i
    try:
        array = asarray(given, dtype=rule.dtype, order="C")
    except MemoryError:
        raise
    except Exception as error:
        find_unfit(rule, given, one)
        what = numpy.dtype((rule.dtype, rule.shape))
        raise UnfitItem(f"what is put must come through unchanged as {what}: {error}; convert it first") from error
    if rule.path and array.shape[1:] != rule.shape:
        find_unfit(rule, given, one)
    check_shape(array.shape, rule.shape, one)
    stored = array.tolist()
    if rule.is_equal(given, stored, array):
        return array
    if one:
        rule.check(given, stored, None)
    else:
        for i in range(len(stored)):
            rule.check(given[i], stored[i], i)
    return array



cdef bint is_arrow(object given) except -1:
    """Returns true for what is read as Arrow columns. A Series of pandas is read as its array: its NaN is no null."""
    cdef object pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(given, (pandas.Series, pandas.Index)):
        return False
    return hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__") or is_table(given)


cdef int refuse_stream(object given) except -1:
    """Called when the time for a put is limited: what is not in when it is up must still be in the caller's hands."""
    if type(given) is list or type(given) is ndarray or not hasattr(given, "__arrow_c_stream__"):
        return 0
    if not (hasattr(given, "__array__") or hasattr(given, "__arrow_c_array__")):
        raise ValueError(
            f"what is read only once must be put without a limit of time, or the rest is lost: "
            f"{type(given).__name__}; leave out block and timeout, or put pyarrow.table(it), which can be sliced"
        )
    return 0


cdef object from_arrow(object dtype, object given):
    from queueduct.arrow.sources import records_from  # here: it imports pyarrow
    return records_from(given, dtype)


cdef object from_columns(Rule rule, object columns):
    """Returns the rows of a dict that has a list or an array of values for each field."""
    cdef list names = [], arrays = []
    cdef Rule field
    if not rule.fields or rule.shape:
        raise TypeError(
            f"a dict of columns needs a queue of records with fields, and this one is of {rule.dtype}: "
            f"{type(columns).__name__}; give a list or an array of items"
        )
    for field, values in zip(rule.fields, rule.by_name(columns, None)):
        names.append(field.name)
        arrays.append(column_of(field, values))
    lengths = dict(zip(names, map(len, arrays)))
    if len(set(lengths.values())) > 1:
        raise UnfitItem(f"all columns must be of one length: {lengths}; give each field a value in every row")
    records = numpy.zeros(len(arrays[0]), rule.dtype)
    for name, array in zip(names, arrays):
        if len(array):  # an empty list has no shape
            records[name] = array
    return records


cdef object column_of(Rule rule, object values):
    """Returns the values of one field, for all rows, as an array of its dtype and shape."""
    cdef object array
    if rule.fields and not rule.shape and is_mapping(values):
        return from_columns(rule, values)
    if not isinstance(values, (list, tuple, ndarray, bytes, str)):
        if is_arrow(values) and hasattr(values, "to_pylist"):
            values = values.to_pylist()  # None where it is null: as an array it would be NaN
        elif is_arrow(values) and hasattr(values, "to_list"):
            values = values.to_list()
        elif PyObject_CheckBuffer(values) or hasattr(values, "__array__"):
            values = numpy.asarray(values)
    if isinstance(values, (str, bytes)) or is_mapping(values) or not hasattr(values, "__getitem__") \
            or isinstance(values, ndarray) and values.ndim == 0:
        raise UnfitItem(
            f"column {rule.path!r} must be a list or an array, with a value for each row: {type(values).__name__}; "
            "use put for one record"
        )
    if isinstance(values, ndarray):
        try:
            check_mask(values)
            array = values if values.dtype == rule.dtype else converted(values, rule.dtype)
            if array.shape[1:] == rule.shape:
                return array
        except (TypeError, ValueError):
            pass  # one by one the values may fit; if not, the error names one
        if type(values) is ndarray and values.dtype.kind not in "mM":  # where a number would lose its unit
            values = values.tolist()
    return made(rule, list(values), one=False)


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
