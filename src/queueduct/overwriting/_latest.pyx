# cython: language_level=3, binding=False, freethreading_compatible=True
"""The newest message of an overwriting queue, read without being taken. The algorithm is in native/overwriting."""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint32_t, uint64_t

from queueduct.core._backend cimport line_of
from queueduct.core._queue cimport (
    AT_ONCE, Queue, checked_int, computed_deadline, open_backend, remaining_ns, waited_until,
)
from queueduct.items._buffers cimport scalar_of
from queueduct.items._item_kinds cimport OBJECT, RECORD
from queueduct.native._native cimport is_broken, monotonic_ns, pause_between_attempts
from queueduct.overwriting._backend cimport BRIEFLY_NS, OverwritingBackend
from queueduct.overwriting._native cimport *

from queueduct.errors import QueueEmpty
from queueduct.items.types import decode_object


cdef str NO_MESSAGE = "the queue {queue} has no message{waited}"
cdef str NOT_NEWER = "the queue {queue} has no message after position {position:,}{waited}"


def read_newest(Queue queue, newer_than, block, timeout):
    """Returns the newest item and its position. Raises Empty or ShutDown if there is none after ``newer_than``."""
    cdef OverwritingBackend backend = open_backend(queue)
    cdef int64_t deadline = computed_deadline(block, timeout)
    cdef object after = -1 if newer_than is None else checked_int("newer_than", newer_than)
    if not -1 <= after < 1 << 62:
        raise ValueError(f"newer_than must be a position, or None for any: newer_than={after}; try None")
    found = found_newest(backend, after + 1, deadline)
    if found is None:
        said = NOT_NEWER if after >= 0 else NO_MESSAGE
        raise QueueEmpty(said, backend.name, waited_until(deadline, timeout), None, None, after)
    return found


def wait_for_newer(Queue queue, uint64_t wanted, double seconds):
    """Waits until there may be a message whose position is at least ``wanted``. Needs no participant line."""
    cdef OverwritingBackend backend = open_backend(queue)
    cdef int64_t left = <int64_t>(seconds * 1e9)
    with nogil:
        backend.queue.wait_for_newer(wanted, left)
    backend.check_open()
    backend.check_sound()


cdef object found_newest(OverwritingBackend backend, uint64_t wanted, int64_t deadline):
    """Returns an item and its position, or None if the time is up."""
    cdef object target = backend._new_target()
    cdef void* to = backend._data_of(target)
    cdef uint64_t position = 0
    cdef int64_t end = deadline
    cdef int64_t left
    cdef uint32_t line
    cdef Claim claim
    while True:
        line = line_of(backend)
        with nogil:
            claim = backend.queue.try_read_newest(line, wanted, to, backend.item_bytes, 0, position)
        if claim == Claim.corrupt or is_broken(backend.guard):
            backend.raise_corrupt()
        if claim == Claim.done:
            return converted(backend, target), position
        if claim == Claim.closed:
            backend.raise_shut_down()
        if deadline == AT_ONCE and claim == Claim.empty:
            return None
        if end == AT_ONCE:  # the header, or a message in mid-copy, is free in a moment
            end = monotonic_ns() + BRIEFLY_NS
        left = remaining_ns(end)
        if left <= 0:
            return None
        with nogil:
            if claim == Claim.empty:
                backend.queue.wait_for_newer(wanted, left)
            else:
                pause_between_attempts()
        PyErr_CheckSignals()
        backend.check_open()


cdef object converted(OverwritingBackend backend, object target):
    if backend.item_kind == OBJECT:
        return decode_object(target)
    return scalar_of(target) if backend.item_kind == RECORD else target
