# cython: language_level=3, binding=False, freethreading_compatible=True
"""Puts of named producers: convert, wait, raise. For every queue of rings: the algorithm is in native/bounded_producers.hpp."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint64_t

from queueduct.items._batches cimport Gathered
from queueduct.items._buffers cimport as_records
from queueduct.rings._backend cimport RingBackend
from queueduct.items._item_kinds cimport LONG_COPY, RECORD
from queueduct.native._native cimport *
from queueduct.core._queue cimport AT_ONCE, checked_int, remaining_ns

from queueduct.errors import CorruptSegment, Full, ProducerInUse, TooManyProducers
from queueduct.stats import ProducerInfo

import_array()

SEQUENCE_LIMIT = 2**63


def put_once(RingBackend backend, items, producer, sequence, int64_t deadline):
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


def producers(RingBackend backend):
    cdef Listed listed
    found = []
    for i in range(backend.producers().count()):
        if backend.producers().look(i, listed):
            name = listed.name.text()[:listed.name.bytes()].decode(errors="replace")
            found.append(ProducerInfo(name, listed.sequence, listed.done, listed.total))
    return found


def forget_producer(RingBackend backend, name):
    cdef Call call = Call(backend, name)
    cdef Taken taken
    backend.find_participant(&call.ledger)
    taken = backend.producers().forget(call.name, backend.owner_word(call.ledger))
    if taken == Taken.unknown:
        raise ValueError(f"{backend.label} has no producer named {name!r}; q.producers() lists them")
    if taken != Taken.yes:
        call.raise_in_use()


cdef class Call:
    """One call for a named producer: what it puts, and the line that it owns meanwhile."""
    cdef RingBackend backend
    cdef ProducerName name
    cdef str label                # the producer's name, quoted
    cdef uint64_t sequence
    cdef uint64_t total           # items
    cdef uint64_t done            # of them
    cdef int64_t deadline
    cdef Participant ledger
    cdef uint64_t me              # the owner word
    cdef ProducerLine* line
    cdef object array             # of records,
    cdef const char* records
    cdef Gathered batch           # or of items that vary in length
    cdef bint is_long             # worth giving up the GIL

    def __cinit__(self, RingBackend backend, producer):
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

    # -- items ------------------------------------------------------------------------------------------

    cdef int collect(self, object items) except -1:
        """Before anything is recorded: a bad item is an error that leaves nothing behind."""
        cdef RingBackend backend = self.backend
        if backend.item_kind == RECORD:
            self.array = as_records(backend.dtype, items, one=False)
            self.records = <const char*>array_data(self.array)
            self.total = <uint64_t>self.array.nbytes // backend.slot_bytes
            self.is_long = <uint64_t>self.array.nbytes >= LONG_COPY
        else:
            self.batch = backend.gather(items)
            self.total = self.batch.count
            self.is_long = self.batch.in_all >= LONG_COPY
        return 0

    # -- the producer's line ----------------------------------------------------------------------------

    cdef object run(self):
        self.backend.find_participant(&self.ledger)
        self.own()
        try:
            self.settle()
            return self.put_missing() if self.begin() else 0
        finally:
            self.leave()

    cdef int own(self) except -1:
        cdef Producers* producers = self.backend.producers()
        cdef Taken taken
        self.me = self.backend.owner_word(self.ledger)
        taken = producers.find(self.name, self.me, self.line)
        if taken == Taken.unknown:  # to make a name can mean to wait for somebody who makes one
            with nogil:
                taken = producers.take(self.name, self.me, self.sequence, self.total, self.line)
        if taken == Taken.table_full:
            raise TooManyProducers(
                f"all {producers.count()} producers of {self.backend.label} are other names than {self.label}; "
                "forget one that is not needed any more with q.forget_producer(name) (q.producers() lists them), "
                "or create the queue with a larger producers="
            )
        if taken != Taken.yes:
            self.raise_in_use()
        return 0

    cdef int leave(self) except -1:
        """Unless we are a forked child by now: then the line is our parent's."""
        cdef Participant ledger
        if self.backend.has_ledger(&ledger) and self.backend.owner_word(ledger) == self.me:
            Producers.leave(self.line[0])
        return 0

    cdef int raise_in_use(self) except -1:
        raise ProducerInUse(
            f"the producer {self.label} of {self.backend.label} is in use by another thread or process that is alive; "
            "one at a time puts for a producer: give each its own name, or wait for the other one to return"
        )

    cdef int check_still_ours(self) except -1:
        """After a wait: a signal handler may have forked."""
        if self.backend.owner_word(self.ledger) != self.me:
            self.raise_in_use()
        return 0

    cdef int settle(self) except -1:
        """Who was killed in the middle of a put: what of it is in? As a rule nobody was."""
        cdef Outcome outcome
        while progress_of(self.line[0]).phase != Phase.idle:
            with nogil:
                outcome = self.backend.settle_producer(self.line)
            if is_broken(self.backend.guard):
                self.backend.raise_corrupt()
            if outcome == Outcome.corrupt:
                raise CorruptSegment(
                    f"what {self.backend.label} has recorded of the producer {self.label} contradicts the queue; "
                    "forget the producer, or recreate the queue"
                )
            if outcome == Outcome.done:
                return 0
            if self.deadline == AT_ONCE or remaining_ns(self.deadline) <= 0:
                raise Full(f"what a killed call of the producer {self.label} has put is not known yet; repeat the call")
            PyErr_CheckSignals()
            self.backend.check_open()
            self.backend.find_participant(&self.ledger)
            self.check_still_ours()
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
        self.done = recorded.done
        return begun == Begun.yes

    cdef object put_missing(self):
        cdef RingBackend backend = self.backend
        cdef uint64_t before = self.done
        cdef uint64_t put = 0
        cdef uint64_t slots
        cdef Outcome outcome
        cdef bint waited = False
        while self.done < self.total:
            put = 0
            if self.is_long:
                with nogil:
                    outcome = self.try_put(&put)
            else:
                outcome = self.try_put(&put)
            if outcome == Outcome.done:
                self.done += put
                backend.after_put(waited)
                continue
            slots = 1 if backend.item_kind == RECORD else backend.slots_of(self.batch.buffers[self.done].bytes)
            if not backend.wait_for_room(outcome, slots, self.deadline, &self.ledger):
                raise Full(
                    f"{self.done} of {self.total} items of sequence {self.sequence} of the producer {self.label} "
                    "are in; repeat the call to put the rest"
                )
            self.check_still_ours()
            waited = True
        return self.done - before

    cdef Outcome try_put(self, uint64_t* put) noexcept nogil:
        cdef uint64_t count = self.total - self.done
        if self.records is not NULL:
            return self.backend.put_records_once(
                self.ledger, self.line, self.records + self.done * self.backend.slot_bytes, count, put
            )
        return self.backend.put_bytes_once(self.ledger, self.line, self.batch.buffers + self.done, count, put)
