# cython: language_level=3, binding=False, freethreading_compatible=True
"""Leases on a bounded queue in shared memory: convert, wait, raise. The algorithm is in native/bounded_lease.hpp."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint64_t
from libcpp.vector cimport vector

from penstock._bounded_shared cimport SharedBody
from penstock._kinds cimport OBJECT, RECORD
from penstock._native cimport *
from penstock._queue cimport AT_ONCE, remaining_ns

import numpy

from penstock import items
from penstock.errors import QueueClosed
from penstock.lease import Lease

import_array()

cdef enum:
    LEASE_LIMIT = 65536    # items that one lease holds


@cython.final
@cython.no_gc_clear  # its end needs the body
cdef class BoundedHolding:
    """What one lease holds. Dropped before it is released, it gives everything back."""
    cdef SharedBody body
    cdef NativeLease* lease
    cdef vector[Adopted] items

    def __cinit__(self, SharedBody body):
        self.body = body
        self.lease = new NativeLease(body.queue[0])

    def __dealloc__(self):
        cdef bint was_held = self.lease is not NULL and self.lease.is_ours() and self.items.size() != 0
        del self.lease
        if was_held:
            self.body.queue.items().notify()

    cdef int join(self) except -1:
        cdef Joined joined = self.lease.join()
        return 0 if joined == Joined.yes else self.body.raise_not_joined(joined)

    def release(self, uint64_t count):
        cdef bint is_all = count == self.items.size()
        if not self.lease.is_ours():
            raise QueueClosed(f"this lease of {self.body.label} is another process's: a fork does not share it")
        with nogil:
            self.lease.release(self.items.data(), count, is_all)
            self.lease.let_go()
            self.items.clear()
        if is_broken(self.body.guard):
            self.body._raise_corrupt()
        if count:
            self.body.queue.room().notify()
        if not is_all:
            self.body.queue.items().notify()


def lease(SharedBody body, name, limit, int64_t deadline):
    """Up to ``limit`` items, those of the dead first; None when the time is up."""
    cdef BoundedHolding holding = BoundedHolding(body)
    cdef uint64_t most = min(limit, LEASE_LIMIT, body.ring.claim_limit())
    cdef uint64_t count = 0
    cdef uint64_t skipped = 0
    cdef Outcome outcome
    cdef bint waited = False
    holding.join()
    holding.items.resize(most)
    count = adopt(holding, most)  # a pass over the table is little beside what a lease is for
    while count == 0:
        outcome = holding.lease.try_claim(holding.items.data(), most, count, skipped)
        if skipped:
            body.queue.room().notify()
        if outcome == Outcome.done:
            continue
        count = look_for_the_dead(holding, outcome, most)
        if count:
            break
        if not wait_for_items(holding, deadline):
            holding.items.clear()
            return None
        waited = True
    holding.items.resize(count)
    if waited and looks_poppable(body.ring[0]):
        body.queue.items().notify()
    found = copied(holding)
    if is_broken(body.guard):
        body._raise_corrupt()
    return Lease(found, positions_of(holding), holding, name, is_redelivered=holding.lease.is_adopted())


def unreleased(SharedBody body, positions):
    """Those of the positions that somebody has claimed to get, and nobody has given back."""
    return [position for position in positions if is_unreleased(body.ring[0], position)]


cdef uint64_t adopt(BoundedHolding holding, uint64_t limit) except? 0:
    """What a dead consumer had, if there was one."""
    cdef SharedBody body = holding.body
    cdef Found found
    cdef uint64_t count = 0
    with nogil:
        found = body.queue.recovery().run()
        if found.adoptable:
            count = holding.lease.try_adopt(found, holding.items.data(), limit)
    if found.unclaimed:
        body._raise_corrupt()
    if found.changed:
        body.queue.room().notify()
    return count


cdef uint64_t look_for_the_dead(BoundedHolding holding, Outcome outcome, uint64_t limit) except? 0:
    """After a claim that found nothing."""
    cdef SharedBody body = holding.body
    cdef uint64_t count
    if outcome == Outcome.corrupt or is_broken(body.guard):
        body._raise_corrupt()
    if outcome == Outcome.closed and is_discarded(body.ring[0]):
        body.raise_shut_down()
    if outcome != Outcome.closed and not body.queue.recovery_is_due(outcome):
        return 0
    count = adopt(holding, limit)
    if count == 0 and outcome == Outcome.closed and not body.queue.recovery().has_more():
        body.raise_shut_down()
    return count


cdef bint wait_for_items(BoundedHolding holding, int64_t deadline) except -1:
    cdef int64_t left
    if deadline == AT_ONCE:
        return holding.body.queue.recovery().has_more()  # the dead were in the way
    left = remaining_ns(deadline)
    if left <= 0:
        return False
    with nogil:
        holding.body.queue.wait_for_items(left)
    PyErr_CheckSignals()
    holding.body.check_open()
    if not holding.lease.is_ours():  # a handler has forked, and we are the child
        holding.join()
    return True


cdef object copied(BoundedHolding holding):
    """The items as memory of our own. An error here gives them back."""
    cdef SharedBody body = holding.body
    cdef uint64_t count = holding.items.size()
    cdef uint64_t i
    cdef char* to
    cdef list found = []
    cdef object target
    if body.form == RECORD:
        target = numpy.empty(count, dtype=body.dtype)
        to = <char*>array_data(target)
        with nogil:
            if holding.lease.is_adopted():
                for i in range(count):
                    copy_out(body.ring[0], holding.items[i].span.position, to + i * body.ring.slot_bytes,
                             body.ring.slot_bytes)
            else:
                copy_out(body.ring[0], holding.items[0].span.position, to, count * body.ring.slot_bytes)
        return target
    for i in range(count):
        target = PyBytes_FromStringAndSize(NULL, holding.items[i].bytes)
        copy_out(body.ring[0], holding.items[i].span.position, PyBytes_AS_STRING(target), holding.items[i].bytes)
        found.append(items.decode_object(target) if body.form == OBJECT else target)
    return found


cdef object positions_of(BoundedHolding holding):
    cdef uint64_t i
    cdef object positions = numpy.empty(holding.items.size(), dtype=numpy.int64)
    cdef int64_t* to = <int64_t*>array_data(positions)
    for i in range(holding.items.size()):
        to[i] = holding.items[i].span.position
    return positions
