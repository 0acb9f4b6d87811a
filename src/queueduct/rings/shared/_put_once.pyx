# cython: language_level=3, binding=False, freethreading_compatible=True
"""put_once into the queues of rings: the native calls. The algorithm is in native/ring/put_once.hpp."""

cimport cython
from libc.stdint cimport uint64_t

from queueduct.core._put_once cimport CONTRADICTED, SETTLED, UNDECIDED, ProducerCall, Settled
from queueduct.native._native cimport Outcome, Participant, Producers, run_without_gil
from queueduct.rings.shared._backend cimport RingBackend


@cython.final
cdef class RingProducerCall(ProducerCall):
    cdef RingBackend ring
    cdef Participant ledger
    cdef bint has_waited

    def __cinit__(self, RingBackend backend):
        self.ring = backend

    cdef Producers* table(self) noexcept:
        return &self.ring.queue.producers()

    cdef int join(self) except -1:
        self.ring.check_open()
        return self.ring.find_participant(&self.ledger)

    cdef Settled try_settle(self) except *:
        cdef Outcome outcome
        with nogil:
            outcome = self.ring.queue.settle_producer(self.line[0])
        if outcome == Outcome.corrupt:
            return CONTRADICTED
        return SETTLED if outcome == Outcome.done else UNDECIDED

    cdef bint put_some(self) except -1:
        cdef uint64_t put = 0
        cdef uint64_t slots
        cdef Outcome outcome
        if self.is_long:
            with nogil:
                outcome = self._try_put(&put)
        else:
            outcome = self._try_put(&put)
        if outcome == Outcome.done:
            self.done += put
            self.ring.after_put(self.has_waited)
            return True
        slots = 1 if self.batch is None else self.ring.slots_of(self.batch.buffers[self.done].bytes)
        if not self.ring.wait_for_room(outcome, slots, self.deadline, &self.ledger, not self.has_waited):
            return False
        self.check_still_ours()
        self.has_waited = True
        return True

    cdef Outcome _try_put(self, uint64_t* put) noexcept nogil:
        if self.records is not NULL:
            return self.ring.queue.put_records_once(
                self.ledger, self.line[0], self.records + self.done * self.ring.slot_bytes, self.total - self.done,
                put[0], run_without_gil,
            )
        return self.ring.queue.put_bytes_once(
            self.ledger, self.line[0], self.batch.buffers + self.done, self.total - self.done, put[0], run_without_gil
        )
