# cython: language_level=3, binding=False, freethreading_compatible=True
"""put_once into slots: the native calls. The algorithm is in native/slots/put_once.hpp."""

cimport cython
from libc.stdint cimport uint64_t

from queueduct.core._put_once cimport CONTRADICTED, SETTLED, ProducerCall, Settled
from queueduct.native._native cimport Buffer, Producers
from queueduct.slots._backend cimport SlotsBackend
from queueduct.slots._native cimport Lease, publish_once


@cython.final
cdef class SlotsProducerCall(ProducerCall):

    cdef Producers* table(self) noexcept:
        return &(<SlotsBackend>self.backend).queue.producers()

    cdef Settled try_settle(self) except *:
        cdef bint is_settled
        with nogil:
            is_settled = (<SlotsBackend>self.backend).queue.settle_producer(self.line[0])
        return SETTLED if is_settled else CONTRADICTED

    cdef bint put_some(self) except -1:
        cdef SlotsBackend backend = <SlotsBackend>self.backend
        cdef Buffer one
        cdef Lease lease
        cdef int held = backend.hold(&lease, self.deadline)
        if self.owner_word() != self.owner and held:
            backend.leave(&lease, False)
        self.check_still_ours()
        if held == 0:
            return False
        if self.batch is not None:
            one = self.batch.buffers[self.done]
        else:
            one.data = self.records + self.done * backend.slot_bytes
            one.bytes = backend.slot_bytes
        backend.fill(&lease, one.data, one.bytes)
        backend.published(publish_once(backend.slots[0], self.line[0], lease, one.bytes), held == 2)
        backend.queue.count_put_by_any(one.bytes)
        self.done += 1
        return True
