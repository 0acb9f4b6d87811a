cimport cython
from libc.stdint cimport int64_t

from queueduct.core._queue cimport Backend
from queueduct.native._native cimport Event, Outcome
from queueduct.rings.shared._native cimport LocalHandle


@cython.final
cdef class LocalBackend(Backend):
    """A queue of references within this process, bounded or growing."""
    cdef object unused             # without an object of its own Cython gives a class no trashcan
    cdef LocalHandle* queue

    cdef void _drop_references(self) noexcept
    cdef inline void _after_put(self, bint waited) noexcept
    cdef inline void _after_get(self, bint waited) noexcept
    cdef bint _wait_for_room(self, Outcome outcome, int64_t deadline) except -1
    cdef bint _wait_for_items(self, Outcome outcome, int64_t deadline) except -1
    cdef bint _park(self, Event event, int64_t deadline, bint for_items) except -1
