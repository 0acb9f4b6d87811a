# cython: language_level=3, binding=False, freethreading_compatible=True
"""Leases on a slot queue: convert, wait, raise. The algorithm is in native/slots_lease.hpp."""

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

from queueduct.items._item_kinds cimport RECORD
from queueduct.native._native cimport array_data, import_array, is_broken
from queueduct.core._queue cimport checked_positions
from queueduct.slots._backend cimport SlotsBackend
from queueduct.slots._native cimport *

import numpy

from queueduct.errors import QueueClosed
from queueduct.lease import Lease as PublicLease

import_array()

cdef enum:
    LEASE_LIMIT = 65536    # items that one lease holds


@cython.final
@cython.no_gc_clear  # its end needs the backend
cdef class SlotsHolding:
    """What one lease holds. Dropped before it is released, it gives everything back."""
    cdef SlotsBackend backend
    cdef vector[Lease] leases        # first `held` of them
    cdef uint64_t held
    cdef uint32_t forks              # of the process, when we got it
    cdef uint32_t noted_at           # where it stands that its thread has it

    def __cinit__(self, SlotsBackend backend):
        self.backend = backend

    def __dealloc__(self):
        if self.held != 0 and self._is_ours():
            self.backend.queue.rest().forget(self.noted_at)
            end_lease(self.backend.slots[0], self.leases.data(), self.held, 0)
            self.backend.queue.participant_table().let_go_of_ended()
            self.backend.queue.items().notify_all()
            self.backend.queue.wake_the_rest()

    cdef bint _is_ours(self) noexcept:
        return self.forks == self.backend.queue.participant_table().generation()

    def release(self, uint64_t count):
        cdef uint64_t held = self.held
        cdef bint is_sound
        if not self._is_ours():
            raise QueueClosed(f"this lease of {self.backend.label} is another process's: a fork does not share it")
        with nogil:
            self.backend.queue.rest().forget(self.noted_at)
            is_sound = end_lease(self.backend.slots[0], self.leases.data(), held, count)
            self.held = 0
            self.backend.queue.participant_table().let_go_of_ended()
        if not is_sound or is_broken(self.backend.guard):
            self.backend._raise_corrupt()
        if count:
            self.backend.queue.room().notify_all()
        if count < held:
            self.backend.queue.items().notify_all()
        self.backend.queue.wake_the_rest()
        self.backend.check_sound()


def lease(SlotsBackend backend, name, limit, int64_t deadline):
    """Up to ``limit`` items, those of the dead first; None when the time is up."""
    cdef SlotsHolding holding = SlotsHolding(backend)
    cdef uint64_t most = min(limit, LEASE_LIMIT, backend.slots.count())
    cdef uint64_t count = 0
    cdef uint32_t me = backend._me()
    cdef SlotOutcome outcome
    cdef bint waited = False
    holding.leases.resize(most)
    with nogil:
        backend.queue.recover_if_due(me, True)  # a pass over the table is little beside what a lease is for
    while True:
        with nogil:
            outcome = try_lease(backend.slots[0], me, holding.leases.data(), most, count)
        if outcome == SlotOutcome.done:
            break
        if not backend._go_on(outcome, True, deadline):
            return None
        me = backend._me()  # a handler may have forked
        waited = True
    holding.held = count
    holding.forks = backend.queue.participant_table().generation()
    holding.noted_at = backend.queue.rest().note()
    if waited and backend.slots.looks_takeable():
        backend.queue.items().notify()
    found = copied(holding)
    if is_broken(backend.guard):
        backend._raise_corrupt()
    return PublicLease(found, positions_of(holding), holding, name, is_redelivered=holding.leases[0].redelivered)


def unreleased(SlotsBackend backend, positions):
    """Those of the positions that somebody has taken, and nobody has given back."""
    cdef vector[uint64_t] found
    cdef list asked = checked_positions(positions)
    found.resize(backend.slots.count())
    with nogil:
        found.resize(list_unreleased(backend.slots[0], found.data()))
    held = set(found)
    return [position for position in asked if position in held]


cdef object copied(SlotsHolding holding):
    """The items as memory of our own. An error here gives them back."""
    cdef SlotsBackend backend = holding.backend
    cdef uint64_t i
    cdef uint64_t count = holding.held
    cdef char* to
    cdef object target
    cdef list found
    if backend.item_kind == RECORD:
        target = numpy.empty(count, dtype=backend.dtype)
        to = <char*>array_data(target)
        with nogil:
            for i in range(count):
                memcpy(to + i * backend.slot_bytes, holding.leases[i].data, backend.slot_bytes)
        return target
    found = []
    for i in range(count):
        found.append(backend.decoded(backend.copy_out(&holding.leases[i])))
    return found


cdef object positions_of(SlotsHolding holding):
    cdef uint64_t i
    cdef object positions = numpy.empty(holding.held, dtype=numpy.int64)
    cdef int64_t* to = <int64_t*>array_data(positions)
    for i in range(holding.held):
        to[i] = holding.leases[i].position
    return positions
