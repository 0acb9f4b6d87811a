# cython: language_level=3, binding=False, freethreading_compatible=True
"""Copies of items from a run of the log. The caller then checks whether they were still kept.

A reader that was dropped meanwhile has copied garbage. So nothing here interprets the bytes: the caller unpickles them
with decoded() after its check.
"""

from cpython.bytes cimport PyBytes_GET_SIZE
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
    """Returns a copy of the run's first item; None if its index is impossible, or its page is missing."""
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
    """Returns copies of a run's items, if they are no records; None if an index is impossible, or a page missing."""
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


cdef uint64_t bytes_in(list items) noexcept:
    """Returns how many bytes these bytes objects have."""
    cdef uint64_t length = 0
    cdef object item
    for item in items:
        length += PyBytes_GET_SIZE(item)
    return length


cdef bint fetch_records(EventsBackend backend, const Run& run, char* to) except -1:
    """Copies the records of a run. Returns false if a page is missing."""
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
    """Returns the items as get or get_many returns them. Called after the check that they were still kept."""
    if fetched is None and backend.item_kind != REFERENCE:
        backend.raise_unreadable()
    if backend.item_kind == RECORD:
        return fetched[()]
    if type(fetched) is list:
        return [decode_object(each) for each in fetched] if backend.item_kind == OBJECT else fetched
    return decode_object(fetched) if backend.item_kind == OBJECT else fetched


cdef Window window_on(EventsBackend backend, const Run& run, Window before):
    """Returns a mapping of the chunk for one reader's views; the last one, if that covers the chunk.

    Returns None if the queue drops no readers: then the chunk stays until the view ends, and needs no own mapping.
    """
    if not backend.map.may_drop:
        return None
    if before is not None and not before.is_faulted() and before.covers(run.chunk.data, run.chunk.bytes):
        return before
    try:
        return Window(<uintptr_t>run.chunk.data, run.chunk.bytes)
    except MemoryError:
        backend.check_sound()  # if it is sound, there is no address space left
        raise


cdef object array_on(EventsBackend backend, const Run& run, Window window):
    """Returns a read-only array on the records in the chunk."""
    cdef uint64_t offset = run.at * backend.map.item_bytes
    if window is None:
        lent = memoryview(backend.memory).toreadonly()
        offset += <char*>run.chunk.data - <char*>backend.map.arena + backend.arena_offset
    else:
        lent = window
        offset += window.offset_of(run.chunk.data)
    # frombuffer keeps the lent object as its base, so that no caller can set the writeable flag
    return numpy.frombuffer(lent, dtype=backend.dtype, count=run.items, offset=offset)
