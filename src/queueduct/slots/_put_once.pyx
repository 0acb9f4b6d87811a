# cython: language_level=3, binding=False, freethreading_compatible=True
"""Puts of named producers into slots: convert, wait, raise. The algorithm is in native/slots_producers.hpp."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint64_t

from queueduct.items._batches cimport Gathered, gather
from queueduct.items._buffers cimport as_records
from queueduct.items._item_kinds cimport OBJECT, RECORD
from queueduct.native._native cimport *
from queueduct.core._queue cimport checked_int
from queueduct.slots._backend cimport SlotsBackend
from queueduct.slots._native cimport *

from queueduct.items import types as item_types
from queueduct.errors import CorruptSegment, Full, ProducerInUse, TooManyProducers
from queueduct.stats import ProducerInfo

import_array()

SEQUENCE_LIMIT = 2**63


def put_once(SlotsBackend backend, items, producer, sequence, int64_t deadline):
    cdef Call call = Call(backend, producer)
    number = checked_int("sequence", sequence)
    if not 0 <= number < SEQUENCE_LIMIT:
        raise ValueError(f"sequence must be between 0 and 2**63 - 1: sequence={number}")
    call.sequence = number
    call.deadline = deadline
    call.collect(items)
    if call.total > count_limit:
        raise ValueError(f"one sequence has at most {count_limit} items: {call.total} items")
    return call.run()


def producers(SlotsBackend backend):
    cdef Listed listed
    found = []
    for i in range(backend.queue.producers().count()):
        if backend.queue.producers().look(i, listed):
            name = listed.name.text()[:listed.name.bytes()].decode(errors="replace")
            found.append(ProducerInfo(name, listed.sequence, listed.done, listed.total))
    return found


def forget_producer(SlotsBackend backend, name):
    cdef Call call = Call(backend, name)
    cdef Taken taken
    backend._me()
    taken = backend.queue.producers().forget(call.name, backend.queue.owner_word())
    if taken == Taken.unknown:
        raise ValueError(f"{backend.label} has no producer named {name!r}; q.producers() lists them")
    if taken != Taken.yes:
        call.raise_in_use()


cdef class Call:
    """One call for a named producer: what it puts, and the line that it owns meanwhile."""
    cdef SlotsBackend backend
    cdef ProducerName name
    cdef str label                # the producer's name, quoted
    cdef uint64_t sequence
    cdef uint64_t total           # items
    cdef int64_t deadline
    cdef uint64_t me              # the owner word
    cdef ProducerLine* line
    cdef object array             # of records,
    cdef const char* records
    cdef Gathered batch           # or of items that vary in length

    def __cinit__(self, SlotsBackend backend, producer):
        cdef bytes encoded
        if not isinstance(producer, str):
            raise TypeError(f"a producer's name must be a str: producer={producer!r}")
        encoded = producer.encode()
        if not ProducerName.of(PyBytes_AS_STRING(encoded), PyBytes_GET_SIZE(encoded), self.name):
            raise ValueError(
                f"a producer's name must have 1 to {producer_name_bytes} bytes of UTF-8 and no NUL: "
                f"{len(encoded)} bytes, {producer[:80]!r}"
            )
        self.backend = backend
        self.label = repr(producer)

    cdef int collect(self, object items) except -1:
        """Before anything is recorded: a bad item is an error that leaves nothing behind."""
        cdef SlotsBackend backend = self.backend
        if backend.item_kind == RECORD:
            self.array = as_records(backend.dtype, items, one=False)
            self.records = <const char*>array_data(self.array)
            self.total = <uint64_t>self.array.nbytes // backend.slot_bytes
        else:
            self.batch = gather([item_types.encode_object(item) for item in items] if backend.item_kind == OBJECT else items)
            backend.check_length(self.batch.longest)
            self.total = self.batch.count
        return 0

    # -- the producer's line ----------------------------------------------------------------------------

    cdef object run(self):
        self.own()
        try:
            self.settle()
            return self.put_missing() if self.begin() else 0
        finally:
            self.leave()

    cdef int own(self) except -1:
        cdef SlotsQueue* queue = self.backend.queue
        cdef Taken taken
        self.backend._me()
        self.me = queue.owner_word()
        taken = queue.producers().find(self.name, self.me, self.line)
        if taken == Taken.unknown:  # to make a name can mean to wait for somebody who makes one
            with nogil:
                taken = queue.producers().take(self.name, self.me, self.sequence, self.total, self.line)
        if taken == Taken.table_full:
            raise TooManyProducers(
                f"all {queue.producers().count()} producers of {self.backend.label} are other names than {self.label}; "
                "forget one that is not needed any more with q.forget_producer(name) (q.producers() lists them), "
                "or create the queue with a larger producers="
            )
        if taken != Taken.yes:
            self.raise_in_use()
        return 0

    cdef bint is_ours(self) noexcept:
        """Unless we are a forked child by now: then the line is our parent's."""
        return self.backend.queue.me() != 0 and self.backend.queue.owner_word() == self.me

    cdef int leave(self) except -1:
        if self.is_ours():
            Producers.leave(self.line[0])
        return 0

    cdef int raise_in_use(self) except -1:
        raise ProducerInUse(
            f"the producer {self.label} of {self.backend.label} is in use by another thread or process that is alive; "
            "one at a time puts for a producer: give each its own name, or wait for the other one to return"
        )

    cdef int settle(self) except -1:
        """Who was killed in the middle of a put: is its item in? As a rule nobody was."""
        cdef bint is_settled = True
        if progress_of(self.line[0]).phase != Phase.idle:
            with nogil:
                is_settled = self.backend.queue.settle_producer(self.line[0])
        self.backend.raise_if_truncated()
        if not is_settled:
            raise CorruptSegment(
                f"what {self.backend.label} has recorded of the producer {self.label} contradicts the queue; "
                "forget the producer, or recreate the queue"
            )
        return 0

    cdef bint begin(self) except -1:
        """False: there is nothing to do."""
        cdef Begun begun = begin(self.line[0], self.sequence, self.total)
        cdef Progress recorded = progress_of(self.line[0])
        if begun == Begun.other_total:
            raise ValueError(
                f"sequence {self.sequence} of the producer {self.label} was begun with {recorded.total} items: "
                f"{self.total} items; repeat a sequence with the same items"
            )
        if begun == Begun.unfinished:
            raise ValueError(
                f"sequence {sequence_of(self.line[0])} of the producer {self.label} is not complete, "
                f"{recorded.done} of {recorded.total} items are in: sequence={self.sequence}; "
                "repeat the unfinished one first, or forget the producer"
            )
        return begun == Begun.yes

    cdef object put_missing(self):
        cdef uint64_t before = progress_of(self.line[0]).done
        cdef uint64_t i
        for i in range(before, self.total):
            if not self.put(i):
                raise Full(
                    f"{i} of {self.total} items of sequence {self.sequence} of the producer {self.label} "
                    "are in; repeat the call to put the rest"
                )
        return self.total - before

    cdef bint put(self, uint64_t i) except -1:
        """False: the time is up."""
        cdef SlotsBackend backend = self.backend
        cdef Lease lease
        cdef int held = backend.hold(&lease, self.deadline)
        if not self.is_ours():  # a signal handler has forked while we waited
            if held:
                backend.leave(&lease, False)
            self.raise_in_use()
        if held == 0:
            return False
        if self.records is not NULL:
            backend._fill(&lease, self.records + i * backend.slot_bytes, backend.slot_bytes)
            backend.published(publish_once(backend.slots[0], self.line[0], lease, backend.slot_bytes), held == 2)
        else:
            backend._fill(&lease, self.batch.buffers[i].data, self.batch.buffers[i].bytes)
            backend.published(publish_once(backend.slots[0], self.line[0], lease, self.batch.buffers[i].bytes), held == 2)
        return True
