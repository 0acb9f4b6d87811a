# cython: language_level=3, binding=False, freethreading_compatible=True
"""What a log has to do with the machine's boots: what is left of it after a crash, and what outlives the next one."""

import os

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint64_t

from queueduct.events._backend cimport EventsBackend
from queueduct.events._native cimport *
from queueduct.native._native cimport monotonic_ns
from queueduct.core._queue cimport FOREVER, checked_int

from queueduct.errors import DataLost

cdef extern from "<unistd.h>" nogil:
    int usleep(unsigned int)

cdef enum:
    LOOK_US = 1000              # between two looks at somebody who settles
    SYNC_PAUSE_NS = 20000000    # between two syncs on demand


cdef int settle_boot(EventsBackend backend) except -1:
    """Before anything else. After a crash of the machine only what was synced is there; nothing is cut otherwise."""
    cdef Settling settling = backend.queue.begin_settling()
    cdef bint is_settled = False
    while settling == Settling.busy:
        with nogil:
            usleep(LOOK_US)
        PyErr_CheckSignals()
        settling = backend.queue.begin_settling()
    if settling == Settling.done:
        return 0
    try:
        if backend.queue.must_settle():
            settle_under_lock(backend)
        is_settled = True
    finally:
        backend.queue.end_settling(is_settled)
    return 0


cdef int settle_under_lock(EventsBackend backend) except -1:
    cdef bint is_settled
    cdef int error
    backend.enter(FOREVER)
    with nogil:
        is_settled = backend.queue.settle_boot()
    error = backend.queue.boot_error()
    backend.leave()
    if error != 0:
        raise OSError(
            error, f"the queue {backend.label} was cut back after a crash of the machine, and its disk did not take that: "
            f"{os.strerror(error)}; it is cut when it can be written"
        )
    if not is_settled:
        backend.raise_corrupt()
    return 0


cdef int check_epoch(EventsBackend backend, uint64_t position, object epoch) except -1:
    """Does a position that was noted in that epoch still stand for the same item? None: it is one of now."""
    cdef uint64_t now = backend.queue.epoch()
    cdef uint64_t until
    if epoch is None:
        return 0
    noted = checked_int("epoch", epoch)
    if not 0 <= noted <= now:
        raise ValueError(f"epoch must be between 0 and that of {backend.label}, {now}: epoch={epoch}")
    until = valid_until(backend.map.control[0], noted)
    if position > until:
        raise DataLost(
            f"the machine went down since, and {backend.label} was cut back to what was on its disk: position {position} was "
            f"noted in epoch {noted}, the log was cut at {until}, and is in epoch {now} now; what lay beyond is lost, and "
            "its positions belong to other items; go on from the cut",
            position, until,
        )
    return 0


cdef uint64_t durable_end(EventsBackend backend, bint sync) except? 0xFFFFFFFFFFFFFFFF:
    cdef EventsWord end = end_word(backend.map)
    cdef int64_t now
    if not backend.is_on_disk:
        return end.position()
    now = monotonic_ns()
    if sync and backend.map.control.confirmed.load() < end.position() and now - backend.synced_ns >= SYNC_PAUSE_NS:
        backend.synced_ns = now
        backend.write_to_disk()
    return min(end.position(), <uint64_t>backend.map.control.confirmed.load())
