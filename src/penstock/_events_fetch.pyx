# cython: language_level=3, binding=False, freethreading_compatible=True
"""Items out of a run of the log: copied, and not yet believed. The caller knows whether it had a right to them.

What was fetched by somebody who has been dropped meanwhile is garbage, so nothing here looks into it: objects are
unpickled (decoded) only after the caller has made sure.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.ref cimport Py_INCREF
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

from penstock._events_body cimport EventsBody
from penstock._events_native cimport *
from penstock._kinds cimport LONG_COPY, OBJECT, RECORD, REFERENCE
from penstock._native cimport array_data, import_array

import numpy

from penstock import items

import_array()

cdef object decode_object = items.decode_object

cdef extern from "Python.h":
    object borrowed "penstock_borrowed"(void*)

cdef extern from *:
    """
    static inline PyObject* penstock_borrowed(void* reference) { return Py_NewRef((PyObject*)reference); }
    """


cdef inline object bytes_at(EventsBody body, const Run& run, uint64_t i):
    """None: the index says what cannot be."""
    cdef uint32_t begin = 0
    cdef uint32_t end = 0
    if not item_bounds(body.map[0], run.chunk, run.at + i, begin, end):
        return None
    return PyBytes_FromStringAndSize(<const char*>items_of(body.map[0], run.chunk) + begin, end - begin)


cdef object fetch_one(EventsBody body, const Run& run):
    """The run's first item, as it stands in the log; None if that cannot be."""
    cdef object record
    if body.form == RECORD:
        record = numpy.empty((), dtype=body.dtype)
        memcpy(array_data(record), <char*>run.chunk.data + run.at * body.map.item_bytes, body.map.item_bytes)
        return record
    if body.form == REFERENCE:
        return borrowed((<void**>run.chunk.data)[run.at])
    return bytes_at(body, run, 0)


cdef list fetch_list(EventsBody body, const Run& run):
    """All items of a run that are no records; None if the index says what cannot be."""
    cdef uint64_t i
    cdef void** references = <void**>run.chunk.data + run.at
    cdef list fetched = PyList_New(run.items)
    cdef object item
    for i in range(run.items):
        item = borrowed(references[i]) if body.form == REFERENCE else bytes_at(body, run, i)
        if item is None and body.form != REFERENCE:
            return None
        Py_INCREF(item)
        PyList_SET_ITEM(fetched, i, item)
    return fetched


cdef int fetch_records(EventsBody body, const Run& run, char* to) except -1:
    cdef const char* data = <const char*>run.chunk.data + run.at * body.map.item_bytes
    cdef uint64_t size = run.items * body.map.item_bytes
    if size < LONG_COPY:
        memcpy(to, data, size)
    else:
        with nogil:
            memcpy(to, data, size)
    return 0


cdef object decoded(EventsBody body, object fetched):
    """What the caller of get or get_many gets, once it is known to be true."""
    if body.form == RECORD:
        return fetched[()]
    if type(fetched) is list:
        return [decode_object(each) for each in fetched] if body.form == OBJECT else fetched
    if fetched is None and body.form != REFERENCE:
        body.raise_corrupt()
    return decode_object(fetched) if body.form == OBJECT else fetched


cdef list readable(EventsBody body, list fetched):
    """The same of a run, as far as the first item that cannot be unpickled."""
    cdef list found = []
    if body.form != OBJECT:
        return fetched
    for each in fetched:
        try:
            found.append(decode_object(each))
        except Exception:  # the caller comes back to it
            break
    return found


cdef object array_on(EventsBody body, const Run& run):
    """The records themselves: a read-only array on the chunk."""
    cdef uint64_t offset = <char*>run.chunk.data - <char*>body.map.arena + run.at * body.map.item_bytes
    # frombuffer keeps the memoryview as its base, so that nobody can set the writeable flag
    return numpy.frombuffer(
        memoryview(body.memory).toreadonly(), dtype=body.dtype, count=run.items, offset=body.arena_offset + offset
    )
