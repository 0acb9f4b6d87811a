# cython: language_level=3, binding=False, freethreading_compatible=True
"""Leases on a slot queue: the native calls. The algorithm is in native/slots/lease.hpp."""

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

from queueduct.core._lease cimport LEASE_LIMIT, Holding
from queueduct.slots._backend cimport SlotsBackend
from queueduct.slots._native cimport *


@cython.final
@cython.no_gc_clear  # its end needs the backend
cdef class SlotsHolding(Holding):
    cdef SlotsQueue* queue
    cdef Slots* slots
    cdef vector[Lease] leases        # the first `count` of them are held
    cdef SlotOutcome outcome         # the last claim's
    cdef uint32_t forks              # the process's number of forks at the claim
    cdef uint32_t noted_at           # its entry in the list of threads that have leases

    def __cinit__(self, SlotsBackend backend):
        self.queue = backend.queue
        self.slots = backend.slots

    def __dealloc__(self):
        if self.count != 0 and self.is_ours():
            self.end(0)
            self.after_end(False, False)

    cdef int begin(self, uint64_t limit) except -1:
        cdef uint32_t me = (<SlotsBackend>self.backend).me()
        self.leases.resize(min(limit, <uint64_t>LEASE_LIMIT, self.slots.count()))
        with nogil:
            self.queue.recover_if_due(me, True)  # a pass over the table costs little beside a lease
        return 0

    cdef int64_t try_claim(self, bint waited) except -1:
        cdef uint64_t count = 0
        cdef uint32_t me = (<SlotsBackend>self.backend).me()  # a handler may have forked
        with nogil:
            self.outcome = try_lease(self.slots[0], me, self.leases.data(), self.leases.size(), count)
        if self.outcome != SlotOutcome.done:
            return 0
        self.forks = self.queue.participant_table().generation()
        self.noted_at = self.queue.rest().note()
        self.is_redelivered = self.leases[0].redelivered
        if waited and self.slots.may_be_takeable():
            self.queue.items().notify()
        return count

    cdef bint wait(self, int64_t deadline) except -1:
        return (<SlotsBackend>self.backend).go_on(self.outcome, True, deadline, not self.has_waited)

    cdef bint is_ours(self) noexcept:
        return self.forks == self.queue.participant_table().generation()

    cdef uint64_t position_of(self, uint64_t i) noexcept:
        return self.leases[i].position

    cdef uint64_t deliveries_of(self, uint64_t i) noexcept:
        return self.leases[i].deliveries

    cdef bytes copied(self, uint64_t i):
        return (<SlotsBackend>self.backend).copy_out(&self.leases[i])

    cdef void copy_records(self, char* to) noexcept nogil:
        cdef uint64_t size = self.slots.slot_bytes()
        cdef uint64_t i
        for i in range(self.count):
            memcpy(to + i * size, self.leases[i].data, size)

    cdef bint end(self, uint64_t released) noexcept nogil:
        cdef bint is_sound
        self.queue.rest().forget(self.noted_at)
        is_sound = end_lease(self.slots[0], self.leases.data(), self.count, released)
        self.queue.count_got_by_any(bytes_of(self.leases.data(), released), released)
        self.queue.participant_table().let_go_of_ended()
        return is_sound

    cdef int after_end(self, bint is_any, bint is_all) except -1:
        if is_any:
            self.queue.room().notify_all()
        if not is_all:
            self.queue.items().notify_all()
        self.queue.wake_the_rest()
        return 0

    cdef list unreleased(self, list asked):
        cdef vector[uint64_t] found
        found.resize(self.slots.count())
        with nogil:
            found.resize(list_unreleased(self.slots[0], found.data()))
        held = set(found)
        return [position for position in asked if position in held]
