# cython: language_level=3, binding=False, freethreading_compatible=True
"""Items out of a run of the log: copied, and not yet believed. The caller knows whether it had a right to them.

What was fetched by somebody who has been dropped meanwhile is garbage, so nothing here looks into it: objects are
unpickled (decoded) only after the caller has made sure.
"""

from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.ref cimport Py_INCREF
from libc.stdint cimport uint64_t, uintptr_t

from queueduct.events._backend cimport EventsBackend
from queueduct.events._native cimport *
from queueduct.native._guard cimport Attempt, Window, copy_attempt, current_attempt
from queueduct.items._item_kinds cimport LONG_COPY, OBJECT, RECORD, REFERENCE
from queueduct.native._native cimport array_data, import_array

import numpy

from queueduct.items import types as items

import_array()

cdef object decode_object = items.decode_object

cdef extern from "Python.h":
    object borrowed "queueduct_borrowed"(void*)

cdef extern from *:
    """
    static inline PyObject* queueduct_borrowed(void* reference) { return Py_NewRef((PyObject*)reference); }
    """


cdef extern from "events/_items.hpp" namespace "queueduct":
    object fetch_bytes(Attempt**, const EventsMap&, const Run&)
    object fetch_first_bytes(Attempt**, const EventsMap&, const Run&)


cdef object fetch_one(EventsBackend backend, const Run& run):
    """The run's first item, as it stands in the log; None if that cannot be, or its page is gone."""
    cdef object record
    if backend.item_kind == RECORD:
        record = numpy.empty((), dtype=backend.dtype)
        if copy_attempt(
            current_attempt(), array_data(record), <char*>run.chunk.data + run.at * backend.map.item_bytes,
            backend.map.item_bytes,
        ):
            return record
        return None
    if backend.item_kind == REFERENCE:
        return borrowed((<void**>run.chunk.data)[run.at])
    return fetch_first_bytes(current_attempt(), backend.map[0], run)


cdef list fetch_list(EventsBackend backend, const Run& run):
    """All items of a run that are no records; None if that cannot be, or a page of it is gone."""
    cdef uint64_t i
    cdef void** references = <void**>run.chunk.data + run.at
    cdef list fetched
    cdef object item
    if backend.item_kind != REFERENCE:
        return fetch_bytes(current_attempt(), backend.map[0], run)
    fetched = PyList_New(run.items)
    for i in range(run.items):
        item = borrowed(references[i])
        Py_INCREF(item)
        PyList_SET_ITEM(fetched, i, item)
    return fetched


cdef bint fetch_records(EventsBackend backend, const Run& run, char* to) except -1:
    """False: a page of them is gone."""
    cdef const char* data = <const char*>run.chunk.data + run.at * backend.map.item_bytes
    cdef uint64_t size = run.items * backend.map.item_bytes
    cdef Attempt** here = current_attempt()
    cdef bint is_done
    if size < LONG_COPY:
        return copy_attempt(here, to, data, size)
    with nogil:
        is_done = copy_attempt(here, to, data, size)
    return is_done


cdef object decoded(EventsBackend backend, object fetched):
    """What the caller of get or get_many gets, once it is known to be true."""
    if fetched is None and backend.item_kind != REFERENCE:
        backend.raise_unreadable()
    if backend.item_kind == RECORD:
        return fetched[()]
    if type(fetched) is list:
        return [decode_object(each) for each in fetched] if backend.item_kind == OBJECT else fetched
    return decode_object(fetched) if backend.item_kind == OBJECT else fetched


cdef Window window_on(EventsBackend backend, const Run& run, Window before):
    """A mapping of the chunk for a reader's views alone; the one from before, if it will do.

    None where no reader is dropped: then the chunk stays until the view is over, and the segment's own will do.
    """
    if not backend.map.may_drop:
        return None
    if before is not None and not before.is_faulted() and before.covers(run.chunk.data, run.chunk.bytes):
        return before
    try:
        return Window(<uintptr_t>run.chunk.data, run.chunk.bytes)
    except MemoryError:
        backend.check_sound()  # else there is no address space left
        raise


cdef object array_on(EventsBackend backend, const Run& run, Window window):
    """The records themselves: a read-only array on the chunk."""
    cdef uint64_t offset = run.at * backend.map.item_bytes
    if window is None:
        lent = memoryview(backend.memory).toreadonly()
        offset += <char*>run.chunk.data - <char*>backend.map.arena + backend.arena_offset
    else:
        lent = window
        offset += window.offset_of(run.chunk.data)
    # frombuffer keeps what is lent as its base, so that nobody can set the writeable flag
    return numpy.frombuffer(lent, dtype=backend.dtype, count=run.items, offset=offset)
