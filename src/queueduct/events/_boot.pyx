# cython: language_level=3, binding=False, freethreading_compatible=True
"""What a log has to do with the machine's boots: what is left of it after a crash, and what outlives the next one."""

import os

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint64_t

from queueduct.events._backend cimport EventsBody
from queueduct.events._native cimport *
from queueduct.native._native cimport monotonic_ns
from queueduct.core._queue cimport FOREVER, checked_int

from queueduct.errors import DataLost

cdef extern from "<unistd.h>" nogil:
    int usleep(unsigned int)

cdef enum:
    LOOK_US = 1000              # between two looks at somebody who settles
    SYNC_PAUSE_NS = 20000000    # between two syncs on demand


cdef int settle_boot(EventsBody body) except -1:
    """Before anything else. After a crash of the machine only what was synced is there; nothing is cut otherwise."""
    cdef Settling settling = body.queue.begin_settling()
    cdef bint is_settled = False
    while settling == Settling.busy:
        with nogil:
            usleep(LOOK_US)
        PyErr_CheckSignals()
        settling = body.queue.begin_settling()
    if settling == Settling.done:
        return 0
    try:
        if body.queue.must_settle():
            settle_under_lock(body)
        is_settled = True
    finally:
        body.queue.end_settling(is_settled)
    return 0


cdef int settle_under_lock(EventsBody body) except -1:
    cdef bint is_settled
    cdef int error
    body.enter(FOREVER)
    with nogil:
        is_settled = body.queue.settle_boot()
    error = body.queue.boot_error()
    body.leave()
    if error != 0:
        raise OSError(
            error, f"the queue {body.label} was cut back after a crash of the machine, and its disk did not take that: "
            f"{os.strerror(error)}; it is cut when it can be written"
        )
    if not is_settled:
        body.raise_corrupt()
    return 0


cdef int check_epoch(EventsBody body, uint64_t position, object epoch) except -1:
    """Does a position that was noted in that epoch still stand for the same item? None: it is one of now."""
    cdef uint64_t now = body.queue.epoch()
    cdef uint64_t until
    if epoch is None:
        return 0
    noted = checked_int("epoch", epoch)
    if not 0 <= noted <= now:
        raise ValueError(f"epoch must be between 0 and that of {body.label}, {now}: epoch={epoch}")
    until = valid_until(body.map.control[0], noted)
    if position > until:
        raise DataLost(
            f"the machine went down since, and {body.label} was cut back to what was on its disk: position {position} was "
            f"noted in epoch {noted}, the log was cut at {until}, and is in epoch {now} now; what lay beyond is lost, and "
            "its positions belong to other items; go on from the cut",
            position, until,
        )
    return 0


cdef uint64_t durable_end(EventsBody body, bint sync) except? 0xFFFFFFFFFFFFFFFF:
    cdef EventsWord end = end_word(body.map)
    cdef int64_t now
    if not body.is_on_disk:
        return end.position()
    now = monotonic_ns()
    if sync and body.map.control.confirmed.load() < end.position() and now - body.synced_ns >= SYNC_PAUSE_NS:
        body.synced_ns = now
        body.write_to_disk()
    return min(end.position(), <uint64_t>body.map.control.confirmed.load())
