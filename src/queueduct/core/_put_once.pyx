# cython: language_level=3, binding=False, freethreading_compatible=True
"""put_once of every kind: a named producer puts each item once, however often its call is cut short.

The protocol and its errors are here, for all kinds. Each kind has a subclass of ProducerCall with its native calls.
What a producer's line records is in native/segment/producers.hpp.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint64_t

from queueduct.core._backend cimport SegmentBackend, line_of, named_backend
from queueduct.core._queue cimport (
    AT_ONCE, FOREVER, checked_int, computed_deadline, remaining_ns, sound, waited_until,
)
from queueduct.items._buffers cimport as_records, refuse_stream
from queueduct.items._item_kinds cimport LONG_COPY, RECORD
from queueduct.native._native cimport *

from queueduct.errors import CorruptSegment, ProducerInUse, QueueFull, TooManyProducers
from queueduct.stats import ProducerInfo

import_array()

SEQUENCE_LIMIT = 2**63


cdef bytes encoded_name(str whose, object name):
    """Returns a name's UTF-8."""
    try:
        return name.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"a {whose}'s name must be text without lone surrogates: {name[:80]!r}") from error


cdef class ProducerCall:

    def __cinit__(self, SegmentBackend backend):
        self.backend = backend

    cdef Producers* table(self) noexcept: return NULL
    cdef Taken forget_line(self) except *: return self.table().forget(self.name, self.owner_word())
    cdef Settled try_settle(self) except *: return CONTRADICTED
    cdef bint put_some(self) except -1: return False
    cdef object why_full(self, double waited): return self.backend.why_full(waited)

    cdef object put(self, object items, object producer, object sequence, object block, object timeout):
        """Returns how many items this call has put."""
        cdef int64_t deadline = computed_deadline(block, timeout)
        self.timeout = timeout
        self._identify(producer)
        number = checked_int("sequence", sequence)
        if not 0 <= number < SEQUENCE_LIMIT:
            raise ValueError(f"sequence must be between 0 and 2**63 - 1: sequence={number}")
        self.sequence = number
        self.deadline = deadline
        if deadline != FOREVER:
            refuse_stream(items)
        self._collect(items)
        if self.total > count_limit:
            raise ValueError(f"one sequence has at most {count_limit} items: {self.total} items")
        self._own()
        try:
            self._settle()
            return self._put_missing() if self._begin() else 0
        finally:
            self._leave()

    cdef double waited(self) except -1:
        return waited_until(self.deadline, self.timeout)

    cdef int join(self) except -1:
        self.backend.check_open()
        line_of(self.backend)
        return 0

    cdef list listed(self):
        cdef Listed listed
        cdef list found = []
        cdef Producers* table = self.table()
        for i in range(table.count()):
            if table.snapshot(i, listed):
                name = listed.name.text()[:listed.name.bytes()].decode(errors="replace")
                found.append(ProducerInfo(name, listed.sequence, listed.done, listed.total))
        return found

    cdef int forget(self, object producer) except -1:
        cdef Taken taken
        self._identify(producer)
        self.join()
        taken = self.forget_line()
        if taken == Taken.unknown:
            raise ValueError(
                f"the queue {self.backend.label} has no producer named {self.producer!r}; q.producers() lists them"
            )
        if taken != Taken.yes:
            self._raise_in_use()
        return 0

    cdef uint64_t owner_word(self) noexcept:
        """Returns this thread's owner word, or 0 if the thread is no participant."""
        cdef const ParticipantTable* table = self.backend.participant_table
        cdef uint32_t mine = table.mine_plus_one()
        return owner_word(table[0], mine - 1) if mine != 0 else 0

    cdef int check_still_ours(self) except -1:
        """Called after a wait: if a signal handler has forked, the line is the parent's."""
        if self.owner_word() != self.owner:
            self._raise_in_use()
        return 0

    cdef int _identify(self, object producer) except -1:
        cdef bytes encoded
        if not isinstance(producer, str):
            raise TypeError(f"a producer's name must be a str: producer={producer!r}")
        encoded = encoded_name("producer", producer)
        if not ProducerName.of(PyBytes_AS_STRING(encoded), PyBytes_GET_SIZE(encoded), self.name):
            raise ValueError(
                f"a producer's name must have 1 to {producer_name_bytes} bytes of UTF-8 and no NUL: "
                f"{len(encoded)} bytes, {producer[:80]!r}"
            )
        self.producer = producer
        return 0

    cdef int _collect(self, object items) except -1:
        """Converts all items before anything is recorded, so that a bad item leaves nothing behind."""
        cdef SegmentBackend backend = self.backend
        if backend.item_kind == RECORD:
            self.array = as_records(backend.dtype, items, one=False)
            self.records = <const char*>array_data(self.array)
            self.total = self.array.nbytes // backend.dtype.itemsize
            self.is_long = <uint64_t>self.array.nbytes >= LONG_COPY
        else:
            self.batch = backend.gather(items)
            self.total = self.batch.count
            self.is_long = self.batch.in_all >= LONG_COPY
        return 0

    cdef int _own(self) except -1:
        cdef Producers* table = self.table()
        cdef Taken taken
        self.join()
        self.owner = self.owner_word()
        taken = table.find(self.name, self.owner, self.line)
        if taken == Taken.unknown:  # a new name may have to wait for another thread that adds one
            with nogil:
                taken = table.take(self.name, self.owner, self.sequence, self.total, self.line)
        if taken == Taken.table_full:
            raise TooManyProducers(
                f"all {table.count()} producers of {self.backend.told} are other names than {self.producer!r}; "
                "forget one that is not needed any more with q.forget_producer(name) (q.producers() lists them), "
                "or create the queue with a larger producers="
            )
        if taken != Taken.yes:
            self._raise_in_use()
        return 0

    cdef int _leave(self) except -1:
        """Leaves the line, unless a signal handler has forked: in the child the line is the parent's."""
        if self.owner_word() == self.owner:
            Producers.leave(self.line[0])
        return 0

    cdef int _raise_in_use(self) except -1:
        raise ProducerInUse(
            f"the producer {self.producer!r} of {self.backend.told} is in use by another thread or process that is "
            "alive; one at a time puts for a producer: give each its own name, or wait for the other one to return"
        )

    cdef int _settle(self) except -1:
        """Finds out which items a killed call has put. Usually no call was killed."""
        cdef Settled settled
        while progress_of(self.line[0]).phase != Phase.idle:
            settled = self.try_settle()
            self.backend.check_sound()
            if settled == CONTRADICTED:
                raise CorruptSegment(
                    f"what {self.backend.told} has recorded of the producer {self.producer!r} contradicts the queue; "
                    "forget the producer, or recreate the queue"
                )
            if settled == SETTLED:
                return 0
            if self.deadline == AT_ONCE or remaining_ns(self.deadline) <= 0:
                said = "the queue {queue} takes no put yet{waited}"
                raise QueueFull(said, self.backend.name, self.waited()).saying(
                    f"what a killed call of the producer {self.producer!r} has put is not known yet; repeat the call"
                )
            PyErr_CheckSignals()
            self.join()
            self.check_still_ours()
        return 0

    cdef bint _begin(self) except -1:
        """Returns false if the sequence is complete already."""
        cdef Begun begun = begin(self.line[0], self.sequence, self.total)
        cdef Progress recorded = progress_of(self.line[0])
        if begun == Begun.other_total:
            raise ValueError(
                f"sequence {self.sequence} of the producer {self.producer!r} was begun with {recorded.total} items: "
                f"{self.total} items; repeat a sequence with the same items"
            )
        if begun == Begun.unfinished:
            raise ValueError(
                f"sequence {sequence_of(self.line[0])} of the producer {self.producer!r} is not complete, "
                f"{recorded.done} of {recorded.total} items are in: sequence={self.sequence}; "
                "repeat the unfinished one first, or forget the producer"
            )
        self.done = recorded.done
        return begun == Begun.yes

    cdef object _put_missing(self):
        cdef uint64_t before = self.done
        while self.done < self.total:
            if not self.put_some():
                raise self.why_full(self.waited()).saying(
                    f"{self.done} of {self.total} items of sequence {self.sequence} of the producer {self.producer!r} "
                    "are in; repeat the call to put the rest"
                )
        return self.done - before


@cython.binding(True)
class PutOnceMethods:
    """The methods of every kind of queue with named producers; ``_producer_call`` is the kind's ProducerCall."""

    __slots__ = ()

    def put_once(self, items, producer, sequence, *, block=True, timeout=None):
        """Put all of ``items`` exactly once for this sequence of this producer; returns how many it put now.

        Repeat a call that was killed or ran out of time with the same items: it goes on where it stopped. A call for
        a sequence that is complete, or lower than the last one, puts nothing and returns 0. A producer is a name of 1
        to 64 bytes of UTF-8 that one thread uses at a time. Its sequences must rise, and may skip numbers. Raises Full
        when the time is up (items that are in stay counted), ShutDown, ProducerInUse or TooManyProducers.

        >>> q = queueduct.BoundedQueue.create(None)
        >>> q.put_once([b"a", b"b"], "feed", 1)
        2
        >>> q.put_once([b"a", b"b"], "feed", 1)  # again, after a kill
        0
        """
        cdef SegmentBackend backend = named_backend(self, "producers")
        cdef ProducerCall call = type(self)._producer_call(backend)
        try:
            return sound(backend, call.put(items, producer, sequence, block, timeout))
        except Exception:
            backend.check_sound()  # a truncated segment is the cause, and is reported instead
            raise

    def producers(self):
        """Returns what put_once has recorded of each producer: a list of (name, sequence, done, total).

        >>> q = queueduct.BoundedQueue.create(None)
        >>> q.put_once([b"a", b"b"], "feed", 1)
        2
        >>> q.producers()
        [ProducerInfo(name='feed', sequence=1, done=2, total=2)]
        """
        cdef SegmentBackend backend = named_backend(self, "producers")
        cdef ProducerCall call = type(self)._producer_call(backend)
        return sound(backend, call.listed())

    def forget_producer(self, name):
        """Remove a name from the table of producers. Its items stay; a sequence that it repeats is put again.

        >>> q = queueduct.BoundedQueue.create(None)
        >>> q.put_once([b"a"], "feed", 1)
        1
        >>> q.forget_producer("feed")
        >>> q.producers()
        []
        """
        cdef SegmentBackend backend = named_backend(self, "producers")
        cdef ProducerCall call = type(self)._producer_call(backend)
        try:
            sound(backend, call.forget(name))
        except Exception:
            backend.check_sound()  # a truncated segment is the cause, and is reported instead
            raise
