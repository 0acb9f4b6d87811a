# cython: language_level=3, binding=False, freethreading_compatible=True
"""Leases on the queues of rings: the native calls. The algorithm is in native/ring/lease.hpp."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint64_t
from libcpp.vector cimport vector

from queueduct.core._lease cimport LEASE_LIMIT, Holding
from queueduct.core._queue cimport AT_ONCE, remaining_ns
from queueduct.native._native cimport *
from queueduct.rings.shared._backend cimport RingBackend


@cython.final
@cython.no_gc_clear  # its end needs the backend
cdef class RingHolding(Holding):
    cdef RingBackend ring
    cdef RingLease* lease
    cdef vector[Redelivered] items       # room for all that it may claim; empty if it timed out, or has ended

    def __cinit__(self, RingBackend backend):
        self.ring = backend
        self.lease = backend.new_lease()

    def __dealloc__(self):
        cdef bint was_held = self.lease is not NULL and self.lease.is_ours() and self.items.size() != 0
        del self.lease
        if was_held:
            self.ring.queue.items().notify()

    cdef int begin(self, uint64_t limit) except -1:
        self._join()
        self.items.resize(min(limit, <uint64_t>LEASE_LIMIT))
        return 0

    cdef int _join(self) except -1:
        cdef Joined joined
        with nogil:
            joined = self.lease.join()
        return 0 if joined == Joined.yes else self.ring.raise_not_joined(joined)

    cdef int64_t try_claim(self, bint waited) except -1:
        """Claims dead consumers' items first: a pass over the table costs little beside a lease."""
        cdef uint64_t count = 0
        cdef Outcome outcome = self.lease.claim(
            self.items.data(), self.items.size(), count, not waited, run_without_gil
        )
        self.ring.check_open()
        if outcome == Outcome.corrupt or is_broken(self.ring.guard):
            self.ring.raise_corrupt()
        if outcome == Outcome.closed:
            self.ring.raise_shut_down()
        self.is_redelivered = self.lease.is_redelivered()
        if count != 0 and waited and self.ring.may_be_gettable():
            self.ring.queue.items().notify()
        return count

    cdef bint wait(self, int64_t deadline) except -1:
        cdef int64_t began
        cdef int64_t left = 0 if deadline == AT_ONCE else remaining_ns(deadline)
        if left <= 0:
            self.items.clear()
            return False
        began = monotonic_ns()
        with nogil:
            self.ring.queue.wait_for_items(left)
        count_wait(
            self.ring.participant_table.lines()[self.lease.line()].counters, True, not self.has_waited, began
        )
        PyErr_CheckSignals()
        self.ring.check_open()
        if not self.lease.is_ours():  # a signal handler has forked, and this is the child
            self._join()
        return True

    cdef bint is_ours(self) noexcept:
        return self.lease.is_ours()

    cdef uint64_t position_of(self, uint64_t i) noexcept:
        return self.items[i].span.position

    cdef uint64_t deliveries_of(self, uint64_t i) noexcept:
        return count_deliveries(self.items[i])

    cdef bytes copied(self, uint64_t i):
        cdef bytes target = PyBytes_FromStringAndSize(NULL, self.items[i].bytes)
        self.lease.copy_out(self.items[i], PyBytes_AS_STRING(target), self.items[i].bytes)
        return target

    cdef void copy_records(self, char* to) noexcept nogil:
        cdef uint64_t size = self.ring.slot_bytes
        cdef uint64_t i
        if not self.is_redelivered:  # then they are contiguous
            self.lease.copy_out(self.items[0], to, self.count * size)
            return
        for i in range(self.count):
            self.lease.copy_out(self.items[i], to + i * size, size)

    cdef bint end(self, uint64_t released) noexcept nogil:
        self.lease.release(self.items.data(), released, released == self.count)
        self.lease.let_go()
        self.items.clear()
        return True

    cdef int after_end(self, bint is_any, bint is_all) except -1:
        if is_any:
            self.ring.queue.room().notify()
        if not is_all:
            self.ring.queue.items().notify()
            self.ring.check_held()  # without the file, given-back items wait until this handle is closed
        return 0

    cdef list unreleased(self, list asked):
        return [position for position in asked if self.ring.queue.is_unreleased(position)]
