# cython: language_level=3, binding=False, freethreading_compatible=True
"""Leases on an overwriting queue: the native calls. The algorithm is in native/overwriting/lease.hpp."""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

from queueduct.core._lease cimport Holding
from queueduct.native._native cimport Joined, array_data, import_array
from queueduct.overwriting._backend cimport OverwritingBackend
from queueduct.overwriting._native cimport *

import os

import numpy

from queueduct.errors import QueueEmpty

import_array()

cdef str NO_CELL = "the queue {queue} can keep no more leased messages{leased}{waited}; release some of them"


@cython.final
@cython.no_gc_clear  # its end needs the backend
cdef class OverwritingHolding(Holding):
    cdef OverwritingShared* queue
    cdef OverwritingLease* lease
    cdef vector[LeasedMessage] kept        # room for all that it may claim; empty if it timed out, or has ended
    cdef Claim claim                 # the outcome of the last claim
    cdef int64_t wait_ns             # how long the next claim waits for the header
    cdef int64_t until               # when to give up; 0 before the first wait

    def __cinit__(self, OverwritingBackend backend):
        self.queue = backend.queue
        self.lease = new OverwritingLease(backend.queue[0])

    def __dealloc__(self):
        cdef bint was_held = self.lease is not NULL and self.lease.is_ours() and self.kept.size() != 0
        del self.lease
        if was_held:
            self.queue.items().notify()

    cdef int begin(self, uint64_t limit) except -1:
        self._join()
        self._allocate()
        self.kept.resize(min(limit, self.queue.leased_messages().cells()))
        return 0

    cdef int _join(self) except -1:
        cdef Joined joined
        with nogil:
            joined = self.lease.join()
        return 0 if joined == Joined.yes else self.backend.raise_not_joined(joined)

    cdef int _allocate(self) except -1:
        """Allocates the memory for leased messages, which a queue has from its first lease on."""
        cdef OverwritingBackend backend = <OverwritingBackend>self.backend
        cdef int error
        if backend.is_allocated:
            return 0
        with nogil:
            error = self.lease.allocate()
        if error:
            backend.raise_if_cut()
            raise OSError(
                error,
                f"no room for the leases of {backend.told}: {os.strerror(error)}; "
                f"{self.queue.leased_messages().data_bytes()} bytes are needed",
            )
        backend.is_allocated = True
        return 0

    cdef int64_t try_claim(self, bint waited) except -1:
        cdef uint64_t count = 0
        with nogil:
            if not self.queue.ring().is_discarded():
                count = self.lease.take_over(self.kept.data(), self.kept.size())
            if count == 0:
                self.claim = self.lease.try_claim(self.kept.data(), self.kept.size(), self.wait_ns, count)
        self.is_redelivered = self.lease.is_redelivered()
        if count != 0 and waited and self.queue.ring().may_be_gettable():
            self.queue.items().notify()
        return count

    cdef bint wait(self, int64_t deadline) except -1:
        if self.until == 0:
            self.until = deadline
        self.wait_ns = (<OverwritingBackend>self.backend).retry_ns(
            self.claim, True, deadline, &self.until, not self.has_waited
        )
        if self.wait_ns < 0:
            self.kept.clear()
            return False
        if not self.lease.is_ours():  # a signal handler has forked, and this is the child
            self._join()
        return True

    cdef bint is_ours(self) noexcept:
        return self.lease.is_ours()

    cdef uint64_t position_of(self, uint64_t i) noexcept:
        return self.kept[i].position

    cdef uint64_t deliveries_of(self, uint64_t i) noexcept:
        return self.kept[i].deliveries()

    cdef bytes copied(self, uint64_t i):
        return PyBytes_FromStringAndSize(
            <char*>self.queue.leased_messages().data(self.kept[i].cell), (<OverwritingBackend>self.backend).item_bytes
        )

    cdef void copy_records(self, char* to) noexcept nogil:
        cdef uint64_t size = (<OverwritingBackend>self.backend).item_bytes
        cdef uint64_t i
        for i in range(self.count):
            memcpy(to + i * size, self.queue.leased_messages().data(self.kept[i].cell), size)

    cdef object why_empty(self, double waited):
        if self.claim == Claim.full:
            return QueueEmpty(NO_CELL, self.backend.name, waited, self.queue.leased_messages().cells())
        return Holding.why_empty(self, waited)

    cdef bint end(self, uint64_t released) noexcept nogil:
        self.lease.release(self.kept.data(), released)
        self.lease.let_go()
        self.kept.clear()
        return True

    cdef int after_end(self, bint is_any, bint is_all) except -1:
        if not is_all:
            self.queue.items().notify()
            self.backend.check_held()  # without the file, given-back messages wait until this handle is closed
        return 0

    cdef list unreleased(self, list asked):
        cdef object found = numpy.empty(self.queue.leased_messages().used(), dtype=numpy.int64)
        cdef int64_t* to = <int64_t*>array_data(found)
        cdef uint64_t limit = len(found)
        cdef uint64_t count
        with nogil:
            count = self.queue.leased_messages().list(to, limit)
        held = set(found[:count].tolist())
        return [position for position in asked if position in held]
