# cython: language_level=3, binding=False, freethreading_compatible=True
"""Leases: convert, wait, raise. For every queue of rings: the algorithm is in native/bounded_lease.hpp."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint64_t
from libcpp.vector cimport vector

from queueduct.rings._backend cimport RingBackend
from queueduct.items._item_kinds cimport OBJECT, RECORD
from queueduct.native._native cimport *
from queueduct.core._queue cimport AT_ONCE, checked_int, checked_positions, remaining_ns

import numpy

from queueduct.items import types as items
from queueduct.errors import Empty, QueueClosed
from queueduct.lease import Lease

import_array()

cdef enum:
    LEASE_LIMIT = 65536    # items that one lease holds


@cython.final
@cython.no_gc_clear  # its end needs the backend
cdef class RingHolding:
    """What one lease holds. Dropped before it is released, it gives everything back."""
    cdef RingBackend backend
    cdef RingLease* lease
    cdef vector[Redelivered] items

    def __cinit__(self, RingBackend backend):
        self.backend = backend
        self.lease = backend.new_lease()

    def __dealloc__(self):
        cdef bint was_held = self.lease is not NULL and self.lease.is_ours() and self.items.size() != 0
        del self.lease
        if was_held:
            self.backend.notify_items()

    cdef int join(self) except -1:
        cdef Joined joined
        with nogil:
            joined = self.lease.join()
        return 0 if joined == Joined.yes else self.backend.raise_not_joined(joined)

    def release(self, uint64_t count):
        cdef bint is_all = count == self.items.size()
        if not self.lease.is_ours():
            raise QueueClosed(f"this lease of {self.backend.label} is another process's: a fork does not share it")
        with nogil:
            self.lease.release(self.items.data(), count, is_all)
            self.lease.let_go()
            self.items.clear()
        if is_broken(self.backend.guard):
            self.backend.raise_corrupt()
        if count:
            self.backend.notify_room()
        if not is_all:
            self.backend.notify_items()
            self.backend.check_held()  # else what was given back waits for the end of this handle
        self.backend.check_sound()  # to give back touches nothing before this


def lease(RingBackend backend, name, max_items, int64_t deadline):
    """At least one item, those of the dead first."""
    cdef RingHolding holding = RingHolding(backend)
    cdef object limit = checked_int("max_items", max_items)
    if limit < 1:
        raise ValueError(f"max_items must be at least 1: max_items={max_items}")
    cdef uint64_t most = min(limit, LEASE_LIMIT)
    cdef uint64_t count = 0
    cdef uint64_t skipped = 0
    cdef Outcome outcome
    cdef bint waited = False
    holding.join()
    holding.items.resize(most)
    if not backend.is_discarded():
        count = redeliver(holding, most)  # a pass over the table is little beside what a lease is for
    while count == 0:
        outcome = holding.lease.try_claim(holding.items.data(), most, count, skipped)
        if skipped:
            backend.notify_room()
        if outcome == Outcome.done:
            continue
        count = look_for_the_dead(holding, outcome, most)
        if count:
            break
        if not wait_for_items(holding, deadline):
            holding.items.clear()
            raise Empty
        waited = True
    holding.items.resize(count)
    if waited and backend.looks_gettable():
        backend.notify_items()
    found = copied(holding)
    if is_broken(backend.guard):
        backend.raise_corrupt()
    return Lease(found, positions_of(holding), holding, name, is_redelivered=holding.lease.is_redelivered())


def unreleased(RingBackend backend, positions):
    """Those of the positions that somebody has claimed to get, and nobody has given back."""
    return [position for position in checked_positions(positions) if backend.is_unreleased(position)]


cdef uint64_t redeliver(RingHolding holding, uint64_t limit) except? 0:
    """What a dead consumer had, if there was one."""
    cdef RingBackend backend = holding.backend
    cdef Inherited found
    with nogil:
        found = holding.lease.try_inherit(holding.items.data(), limit)
    backend.check_open()
    if found.unclaimed:
        backend.raise_corrupt()
    if found.changed:
        backend.notify_room()
    return found.count


cdef uint64_t look_for_the_dead(RingHolding holding, Outcome outcome, uint64_t limit) except? 0:
    """After a claim that found nothing."""
    cdef RingBackend backend = holding.backend
    cdef uint64_t count
    if outcome == Outcome.corrupt or is_broken(backend.guard):
        backend.raise_corrupt()
    if outcome == Outcome.closed and backend.is_discarded():
        backend.raise_shut_down()
    if outcome != Outcome.closed and not backend.recovery_is_due(outcome):
        return 0
    count = redeliver(holding, limit)
    if count == 0 and outcome == Outcome.closed and not backend.has_more_to_recover() and not backend.may_come_again():
        backend.raise_shut_down()
    return count


cdef bint wait_for_items(RingHolding holding, int64_t deadline) except -1:
    cdef int64_t left
    if deadline == AT_ONCE:
        return holding.backend.has_more_to_recover()  # the dead were in the way
    left = remaining_ns(deadline)
    if left <= 0:
        return False
    with nogil:
        holding.backend.sleep_for_items(left)
    PyErr_CheckSignals()
    holding.backend.check_open()
    if not holding.lease.is_ours():  # a handler has forked, and we are the child
        holding.join()
    return True


cdef object copied(RingHolding holding):
    """The items as memory of our own. An error here gives them back."""
    cdef RingBackend backend = holding.backend
    cdef uint64_t count = holding.items.size()
    cdef uint64_t i
    cdef char* to
    cdef list found = []
    cdef object target
    if backend.item_kind == RECORD:
        target = numpy.empty(count, dtype=backend.dtype)
        to = <char*>array_data(target)
        with nogil:
            if holding.lease.is_redelivered():
                for i in range(count):
                    holding.lease.copy_out(holding.items[i], to + i * backend.slot_bytes, backend.slot_bytes)
            else:
                holding.lease.copy_out(holding.items[0], to, count * backend.slot_bytes)
        return target
    for i in range(count):
        target = PyBytes_FromStringAndSize(NULL, holding.items[i].bytes)
        holding.lease.copy_out(holding.items[i], PyBytes_AS_STRING(target), holding.items[i].bytes)
        found.append(items.decode_object(target) if backend.item_kind == OBJECT else target)
    return found


cdef object positions_of(RingHolding holding):
    cdef uint64_t i
    cdef object positions = numpy.empty(holding.items.size(), dtype=numpy.int64)
    cdef int64_t* to = <int64_t*>array_data(positions)
    for i in range(holding.items.size()):
        to[i] = holding.items[i].span.position
    return positions
