# cython: language_level=3, binding=False, freethreading_compatible=True
"""Leases on an overwriting queue: convert, wait, raise. The algorithm is in native/overwriting_lease.hpp."""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

from queueduct.items._item_kinds cimport OBJECT, RECORD
from queueduct.native._native cimport Joined, array_data, import_array, is_broken, monotonic_ns
from queueduct.overwriting._backend cimport BRIEFLY_NS, OverwritingBackend
from queueduct.overwriting._native cimport *
from queueduct.core._queue cimport AT_ONCE, checked_positions, remaining_ns

import os

import numpy

from queueduct.items import types as items
from queueduct.errors import QueueClosed
from queueduct.lease import Lease

import_array()


@cython.final
@cython.no_gc_clear  # its end needs the backend
cdef class OverwritingHolding:
    """What one lease holds. Dropped before it is released, it gives everything back."""
    cdef OverwritingBackend backend
    cdef OverwritingLease* lease
    cdef vector[LeasedMessage] kept

    def __cinit__(self, OverwritingBackend backend):
        self.backend = backend
        self.lease = new OverwritingLease(backend.queue[0])

    def __dealloc__(self):
        cdef bint was_held = self.lease is not NULL and self.lease.is_ours() and self.kept.size() != 0
        del self.lease
        if was_held:
            self.backend.queue.items().notify()

    cdef int join(self) except -1:
        cdef Joined joined
        with nogil:
            joined = self.lease.join()
        return 0 if joined == Joined.yes else self.backend.raise_not_joined(joined)

    cdef int allocate(self) except -1:
        """Memory for what leases hold, which a queue has from its first lease on."""
        cdef int error
        if self.backend.is_allocated:
            return 0
        with nogil:
            error = self.lease.allocate()
        if error:
            self.backend.raise_if_cut()
            raise OSError(
                error,
                f"no room for the leases of {self.backend.label}: {os.strerror(error)}; "
                f"{self.backend.queue.leased_messages().data_bytes()} bytes are needed",
            )
        self.backend.is_allocated = True
        return 0

    def release(self, uint64_t count):
        cdef bint is_all = count == self.kept.size()
        if not self.lease.is_ours():
            raise QueueClosed(f"this lease of {self.backend.label} is another process's: a fork does not share it")
        with nogil:
            self.lease.release(self.kept.data(), count)
            self.lease.let_go()
            self.kept.clear()
        if is_broken(self.backend.guard):
            self.backend._raise_corrupt()
        if not is_all:
            self.backend.queue.items().notify()
            self.backend.check_held()  # else what was given back waits for the end of this handle
        self.backend.check_sound()


def lease(OverwritingBackend backend, name, limit, int64_t deadline):
    """Up to ``limit`` messages, those that others left first; None when the time is up."""
    cdef OverwritingHolding holding = OverwritingHolding(backend)
    cdef uint64_t most = min(limit, backend.queue.leased_messages().places())
    cdef uint64_t count = 0
    cdef int64_t end = deadline
    cdef int64_t wait_ns = 0
    cdef bint waited = False
    cdef Claim claim = Claim.done
    holding.join()
    holding.allocate()
    holding.kept.resize(most)
    while True:
        with nogil:
            if not backend.ring.is_discarded():
                count = holding.lease.take_over(holding.kept.data(), most)
            if count == 0:
                claim = holding.lease.try_claim(holding.kept.data(), most, wait_ns, count)
        if count != 0:
            break
        if deadline == AT_ONCE and claim == Claim.closed and backend.queue.may_come_again():
            end = 0  # others have it
        elif deadline == AT_ONCE and claim != Claim.locked and claim != Claim.closed and claim != Claim.corrupt:
            end = 0  # nothing is there, or its writer is at work, or the shelf is full
        elif end == AT_ONCE:
            end = monotonic_ns() + BRIEFLY_NS
        if not wait(holding, claim, end):
            holding.kept.clear()
            return None
        wait_ns = min(remaining_ns(end), <int64_t>BRIEFLY_NS) if claim == Claim.locked else 0
        waited = True
    holding.kept.resize(count)
    if waited and backend.ring.looks_gettable():
        backend.queue.items().notify()
    found = copied(holding)
    if is_broken(backend.guard):
        backend._raise_corrupt()
    return Lease(found, positions_of(holding), holding, name, is_redelivered=holding.lease.is_redelivered())


def unreleased(OverwritingBackend backend, positions):
    """Those of the positions that somebody has on lease, and nobody has released."""
    cdef object found = numpy.empty(backend.queue.leased_messages().used(), dtype=numpy.int64)
    cdef int64_t* to = <int64_t*>array_data(found)
    cdef uint64_t limit = len(found)
    cdef uint64_t count
    cdef list asked = checked_positions(positions)
    with nogil:
        count = backend.queue.leased_messages().list(to, limit)
    held = set(found[:count].tolist())
    return [position for position in asked if position in held]


cdef bint wait(OverwritingHolding holding, Claim claim, int64_t end) except -1:
    """After a try that found nothing: True to try again, False when the time is up."""
    cdef OverwritingBackend backend = holding.backend
    if claim == Claim.full:
        if not backend.wait_for_shelf(end):
            return False
    elif not backend._wait(claim, True, end):
        return False
    if not holding.lease.is_ours():  # a handler has forked, and we are the child
        holding.join()
    return True


cdef object copied(OverwritingHolding holding):
    """The items as memory of our own. An error here gives them back."""
    cdef OverwritingBackend backend = holding.backend
    cdef uint64_t count = holding.kept.size()
    cdef uint64_t size = backend.item_bytes
    cdef uint64_t i
    cdef char* to
    cdef list found = []
    cdef object target
    if backend.item_kind == RECORD:
        target = numpy.empty(count, dtype=backend.dtype)
        to = <char*>array_data(target)
        with nogil:
            for i in range(count):
                memcpy(to + i * size, backend.queue.leased_messages().data(holding.kept[i].place), size)
        return target
    for i in range(count):
        target = PyBytes_FromStringAndSize(<char*>backend.queue.leased_messages().data(holding.kept[i].place), size)
        found.append(items.decode_object(target) if backend.item_kind == OBJECT else target)
    return found


cdef object positions_of(OverwritingHolding holding):
    cdef uint64_t i
    cdef object positions = numpy.empty(holding.kept.size(), dtype=numpy.int64)
    cdef int64_t* to = <int64_t*>array_data(positions)
    for i in range(holding.kept.size()):
        to[i] = holding.kept[i].position
    return positions
