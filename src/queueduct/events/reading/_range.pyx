# cython: language_level=3, binding=False, freethreading_compatible=True
"""Items by their positions, without a reader: what is freed meanwhile is DataLost."""

from libc.stdint cimport uint64_t

from queueduct.core._queue cimport FOREVER, checked_int
from queueduct.events._backend cimport EventsBackend
from queueduct.events._native cimport *
from queueduct.events.reading._fetch cimport decoded, fetch_list, fetch_records
from queueduct.items._item_kinds cimport REFERENCE
from queueduct.native._native cimport array_data, has_gil

import numpy

from queueduct.errors import DataLost

cdef uint64_t RUN_UNDER_LOCK = 4096    # references that are read at once under the lock


cdef tuple checked_range(EventsBackend backend, object start, object stop, object epoch):
    """Returns positions that are kept, as plain ints."""
    cdef EventsWord end = end_word(backend.map)
    backend.check_sound()
    first, last = checked_int("start", start), checked_int("stop", stop)
    if epoch is not None and 0 <= last < 1 << 52:
        backend.check_epoch(last, epoch)
    if not 0 <= first <= last <= end.position():
        raise ValueError(
            f"start and stop must be positions up to the end, {end.position()}: start={start}, stop={stop}"
        )
    if first < earliest_position(backend.map[0]):
        raise_lost(backend, first)
    return first, last


cdef int raise_lost(EventsBackend backend, wanted) except -1:
    earliest = earliest_position(backend.map[0])
    if wanted >= earliest:
        backend.raise_corrupt()
    raise DataLost(
        f"items of {backend.told} are no longer kept: wanted={wanted}, earliest={earliest}", wanted, earliest
    )


cdef object read_records(EventsBackend backend, uint64_t start, uint64_t stop):
    cdef Run run
    cdef uint64_t at = start
    cdef bint is_read
    backend.check_count(stop - start)
    array = numpy.empty(stop - start, dtype=backend.dtype)
    cdef char* data = <char*>array_data(array)
    while at < stop:
        if run_at(backend.map[0], at, stop, stop - at, run) != ReadResult.items:
            raise_lost(backend, at)
        is_read = fetch_records(backend, run, data + (at - start) * backend.map.item_bytes)
        if not is_still_kept(backend.map[0], run.chunk.number):
            raise_lost(backend, at)
        if not is_read:
            backend.raise_unreadable()
        at += run.items
    backend.check_found(ReadResult.items)
    return array


cdef list read_references(EventsBackend backend, uint64_t at, uint64_t stop, Run* run):
    """Reads a run of references under the log's lock, so that no thread drops them. Returns None if they are gone."""
    cdef list part = None
    backend.enter(FOREVER)
    try:
        if run_at(backend.map[0], at, stop, min(stop - at, RUN_UNDER_LOCK), run[0]) == ReadResult.items:
            part = fetch_list(backend, run[0])
    finally:
        backend.leave()
    return part


cdef object read_items(EventsBackend backend, uint64_t start, uint64_t stop):
    cdef Run run
    cdef uint64_t at = start
    cdef list fetched = []
    cdef list part
    while at < stop:
        if not has_gil and backend.item_kind == REFERENCE:
            part = read_references(backend, at, stop, &run)
            if part is None:
                raise_lost(backend, at)
            fetched += part
            at += run.items
            continue
        if run_at(backend.map[0], at, stop, stop - at, run) != ReadResult.items:
            raise_lost(backend, at)
        part = fetch_list(backend, run)
        if not is_still_kept(backend.map[0], run.chunk.number):
            raise_lost(backend, at)
        if part is None:
            backend.raise_unreadable()
        fetched += part
        at += run.items
    backend.check_found(ReadResult.items)
    return decoded(backend, fetched)
