cimport cython
from libc.stdint cimport int64_t

from queueduct.items._buffers cimport Held
from queueduct.rings._growing_native cimport LocalGrowing
from queueduct.native._native cimport Event, Outcome
from queueduct.core._queue cimport Backend


@cython.final
cdef class GrowingLocalBackend(Backend):
    cdef LocalGrowing* queue
    cdef object memory             # the mapping
    cdef Held mapped

    cdef void _drop_references(self) noexcept
    cdef inline void _after_put(self, bint waited) noexcept
    cdef inline void _after_get(self, bint waited) noexcept
    cdef bint _wait_for_room(self, Outcome outcome, int64_t deadline) except -1
    cdef bint _wait_for_items(self, Outcome outcome, int64_t deadline) except -1
    cdef bint _park(self, Event event, int64_t deadline, bint for_items) except -1
