# cython: language_level=3, binding=False, freethreading_compatible=True
"""Puts of named producers into slots: convert, wait, raise. The algorithm is in native/slots_producers.hpp."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint64_t

from queueduct.items._batches cimport Gathered, gather
from queueduct.items._buffers cimport as_records
from queueduct.items._item_kinds cimport OBJECT, RECORD
from queueduct.native._native cimport *
from queueduct.core._queue cimport checked_int
from queueduct.slots._backend cimport SlotsBody
from queueduct.slots._native cimport *

from queueduct.items import types as item_types
from queueduct.errors import CorruptSegment, Full, ProducerInUse, TooManyProducers
from queueduct.stats import ProducerInfo

import_array()

SEQUENCE_LIMIT = 2**63


def put_once(SlotsBody body, items, producer, sequence, int64_t deadline):
    cdef Call call = Call(body, producer)
    number = checked_int("sequence", sequence)
    if not 0 <= number < SEQUENCE_LIMIT:
        raise ValueError(f"sequence must be between 0 and 2**63 - 1: sequence={number}")
    call.sequence = number
    call.deadline = deadline
    call.collect(items)
    if call.total > count_limit:
        raise ValueError(f"one sequence has at most {count_limit} items: {call.total} items")
    return call.run()


def producers(SlotsBody body):
    cdef Listed listed
    found = []
    for i in range(body.queue.producers().count()):
        if body.queue.producers().look(i, listed):
            name = listed.name.text()[:listed.name.bytes()].decode(errors="replace")
            found.append(ProducerInfo(name, listed.sequence, listed.done, listed.total))
    return found


def forget_producer(SlotsBody body, name):
    cdef Call call = Call(body, name)
    cdef Taken taken
    body._me()
    taken = body.queue.producers().forget(call.name, body.queue.owner_word())
    if taken == Taken.unknown:
        raise ValueError(f"{body.label} has no producer named {name!r}; q.producers() lists them")
    if taken != Taken.yes:
        call.raise_in_use()


cdef class Call:
    """One call for a named producer: what it puts, and the line that it owns meanwhile."""
    cdef SlotsBody body
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

    def __cinit__(self, SlotsBody body, producer):
        cdef bytes encoded
        if not isinstance(producer, str):
            raise TypeError(f"a producer's name must be a str: producer={producer!r}")
        encoded = producer.encode()
        if not ProducerName.of(PyBytes_AS_STRING(encoded), PyBytes_GET_SIZE(encoded), self.name):
            raise ValueError(
                f"a producer's name must have 1 to {producer_name_bytes} bytes of UTF-8 and no NUL: "
                f"{len(encoded)} bytes, {producer[:80]!r}"
            )
        self.body = body
        self.label = repr(producer)

    cdef int collect(self, object items) except -1:
        """Before anything is recorded: a bad item is an error that leaves nothing behind."""
        cdef SlotsBody body = self.body
        if body.form == RECORD:
            self.array = as_records(body.dtype, items, one=False)
            self.records = <const char*>array_data(self.array)
            self.total = <uint64_t>self.array.nbytes // body.slot_bytes
        else:
            self.batch = gather([item_types.encode_object(item) for item in items] if body.form == OBJECT else items)
            body.check_length(self.batch.longest)
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
        cdef SlotsQueue* queue = self.body.queue
        cdef Taken taken
        self.body._me()
        self.me = queue.owner_word()
        taken = queue.producers().find(self.name, self.me, self.line)
        if taken == Taken.unknown:  # to make a name can mean to wait for somebody who makes one
            with nogil:
                taken = queue.producers().take(self.name, self.me, self.sequence, self.total, self.line)
        if taken == Taken.table_full:
            raise TooManyProducers(
                f"all {queue.producers().count()} producers of {self.body.label} are other names than {self.label}; "
                "forget one that is not needed any more with q.forget_producer(name) (q.producers() lists them), "
                "or create the queue with a larger producers="
            )
        if taken != Taken.yes:
            self.raise_in_use()
        return 0

    cdef bint is_ours(self) noexcept:
        """Unless we are a forked child by now: then the line is our parent's."""
        return self.body.queue.me() != 0 and self.body.queue.owner_word() == self.me

    cdef int leave(self) except -1:
        if self.is_ours():
            Producers.leave(self.line[0])
        return 0

    cdef int raise_in_use(self) except -1:
        raise ProducerInUse(
            f"the producer {self.label} of {self.body.label} is in use by another thread or process that is alive; "
            "one at a time puts for a producer: give each its own name, or wait for the other one to return"
        )

    cdef int settle(self) except -1:
        """Who was killed in the middle of a put: is its item in? As a rule nobody was."""
        cdef bint is_settled = True
        if progress_of(self.line[0]).phase != Phase.idle:
            with nogil:
                is_settled = self.body.queue.settle_producer(self.line[0])
        self.body.raise_if_truncated()
        if not is_settled:
            raise CorruptSegment(
                f"what {self.body.label} has recorded of the producer {self.label} contradicts the queue; "
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
        cdef SlotsBody body = self.body
        cdef Lease lease
        cdef int held = body.hold(&lease, self.deadline)
        if not self.is_ours():  # a signal handler has forked while we waited
            if held:
                body.leave(&lease, False)
            self.raise_in_use()
        if held == 0:
            return False
        if self.records is not NULL:
            body._fill(&lease, self.records + i * body.slot_bytes, body.slot_bytes)
            body.published(publish_once(body.slots[0], self.line[0], lease, body.slot_bytes), held == 2)
        else:
            body._fill(&lease, self.batch.buffers[i].data, self.batch.buffers[i].bytes)
            body.published(publish_once(body.slots[0], self.line[0], lease, self.batch.buffers[i].bytes), held == 2)
        return True
