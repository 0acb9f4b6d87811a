# cython: language_level=3, binding=False, freethreading_compatible=True
"""A growing queue in shared memory: convert, wait, raise. The algorithm is in native/."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t, uint64_t

from queueduct.items._buffers cimport Held, as_records, borrow, scalar_of
from queueduct.rings._growing_native cimport *
from queueduct.native._guard cimport watch
from queueduct.items._item_kinds cimport BYTES, LONG_COPY, OBJECT, RECORD
from queueduct.core._backend cimport own_identity
from queueduct.native._native cimport (
    Buffer, Event, Identity, Joined, Outcome, Peeked, ProducerLine, Producers, RingLease, Participant, array_data,
    byte, import_array, is_broken, item_bytes_limit,
)
from queueduct.core._queue cimport AT_ONCE, TIMED_OUT, remaining_ns
from queueduct.rings._objects cimport get_object, get_objects

import os

import numpy

from queueduct.items import types as items
from queueduct.errors import CorruptSegment

import_array()

cdef enum:
    BATCH_LIMIT = 4096   # items of varying length that one claim takes

cdef object RETRY = object()
cdef object encode_object = items.encode_object

cdef extern from "native/_handover.hpp" namespace "queueduct":
    void count_for_all_threads(object)  # what goes with the backend goes with whoever gives that up


@cython.final
cdef class GrowingBackend(RingBackend):

    def __cinit__(self, opened):
        cdef GrowingOffsets at
        cdef dict offsets = opened.offsets
        cdef Held mapped
        cdef Identity identity
        geometry = opened.geometry
        self.memory = opened.take_memory()
        count_for_all_threads(self.memory)
        mapped = Held(self.memory)
        at.control = offsets["control_offset"]
        at.levels = offsets["levels_offset"]
        at.participants = offsets["participants_offset"]
        at.producers = offsets["producers_offset"]
        at.regions = offsets["regions_offset"]
        self.guard = watch(mapped.view.buf, mapped.view.len)
        identity = own_identity()  # before the descriptor is taken: from there on nothing raises
        self.last = <LastRings*>PyMem_Calloc(geometry.participants, sizeof(LastRings))
        if self.last is NULL:
            raise MemoryError()
        self.queue = new NativeGrowing(
            <byte*>mapped.view.buf, at, geometry.first_bytes, geometry.steps, geometry.slot_bytes, opened.item.varies,
            geometry.max_bytes, geometry.participants, geometry.producers, opened.take_lock_fd(), identity,
            self.last,
        )
        self.participant_table = &self.queue.participant_table()
        self.queue.rest().identify(<uint64_t>int.from_bytes(opened.segment_id[:8], "little"))
        self.item_slots_limit = self.queue.item_slots_limit()
        self.label = repr(opened.name)
        self.dtype = opened.item.dtype
        self.item_kind = opened.item.kind
        self.participants = geometry.participants
        self.slot_bytes = geometry.slot_bytes
        self.check_attached()

    def __dealloc__(self):
        del self.queue
        PyMem_Free(self.last)

    cdef int raise_corrupt(self) except -1:
        cdef LevelRange now = self.queue.levels().stage()
        self.raise_if_truncated()
        if self.queue.lock_names_a_bystander():
            raise CorruptSegment(
                f"the lock of {self.label}, under which memory is given and taken, names a participant that lives and "
                "does not have it: somebody else has written there; recreate the queue"
            )
        raise CorruptSegment(
            f"the stage, the positions and the generations of {self.label} contradict each other: "
            f"stage={self.queue.control().stage.load():#x}, levels {now.read_level()} to {now.written_level()} "
            f"of {self.queue.levels().steps()}; recreate the queue"
        )

    cdef int find_participant(self, Participant* ledger) except -1:
        cdef Joined joined
        if self.queue.find_participant(ledger[0]):
            return 0
        with nogil:
            joined = self.queue.join()
        if joined == Joined.yes and self.queue.find_participant(ledger[0]):
            return 0
        return self.raise_not_joined(joined)

    cdef bint has_ledger(self, Participant* ledger) noexcept:
        return self.queue.find_participant(ledger[0])

    cdef uint64_t owner_word(self, Participant ledger) noexcept:
        return self.queue.owner_word(ledger)

    cdef Producers* producers(self) noexcept:
        return &self.queue.producers()

    cdef Outcome settle_producer(self, ProducerLine* line) noexcept nogil:
        return self.queue.settle_producer(line[0])

    cdef Outcome put_buffers(
        self, Participant ledger, const Buffer* items, uint64_t count, uint64_t* put
    ) noexcept nogil:
        return self.queue.try_put_bytes_many(ledger, items, count, put[0])

    cdef Outcome put_records(
        self, Participant ledger, const void* data, uint64_t count, uint64_t* put
    ) noexcept nogil:
        return self.queue.try_put_records(ledger, data, count, put[0])

    cdef Outcome put_bytes_once(
        self, Participant ledger, ProducerLine* line, const Buffer* items, uint64_t count, uint64_t* put
    ) noexcept nogil:
        return self.queue.try_put_bytes_once(ledger, line[0], items, count, put[0])

    cdef Outcome put_records_once(
        self, Participant ledger, ProducerLine* line, const void* data, uint64_t count, uint64_t* put
    ) noexcept nogil:
        return self.queue.try_put_records_once(ledger, line[0], data, count, put[0])

    # -- put --------------------------------------------------------------------------------------------

    cdef int put(self, object item, int64_t deadline) except -1:
        cdef Held lent
        if self.item_kind == RECORD:
            item = as_records(self.dtype, item, one=True)
            return self._put_bytes(array_data(item), self.slot_bytes, deadline)
        if self.item_kind == OBJECT:
            item = encode_object(item)
        elif type(item) is not bytes:
            lent = borrow(item)
            return self._put_bytes(lent.view.buf, lent.view.len, deadline)
        return self._put_bytes(PyBytes_AS_STRING(item), PyBytes_GET_SIZE(item), deadline)

    cdef int check_length(self, uint64_t length) except -1:
        if length > item_bytes_limit or self.slots_of(length) > self.item_slots_limit:
            raise ValueError(
                f"an item of {length} bytes can never fit into {self.label}: the limit is "
                f"{min(self.item_slots_limit * self.slot_bytes, item_bytes_limit)} bytes, what the largest sub-queue "
                "holds; create the queue with larger first_bytes, steps or max_bytes"
            )
        self.queue.note_long_items()
        return 0

    cdef int _put_bytes(self, const void* data, uint64_t length, int64_t deadline) except -1:
        cdef Participant ledger
        cdef Outcome outcome
        cdef bint waited = False
        if length > self.slot_bytes or length > item_bytes_limit:
            self.check_length(length)
        self.find_participant(&ledger)
        while True:
            if length < LONG_COPY:
                outcome = self.queue.try_put_bytes(ledger, data, length)
            else:
                with nogil:
                    outcome = self.queue.try_put_bytes(ledger, data, length)
            if outcome == Outcome.done:
                self.after_put(waited)
                return 1
            if not self.wait_for_room(outcome, self.slots_of(length), deadline, &ledger):
                return 0
            waited = True

    cdef int after_put(self, bint waited) except -1:
        if is_broken(self.guard):
            self.raise_corrupt()
        self.queue.items().notify()
        if waited and self.queue.looks_puttable(1, self.queue.control().resets.load()):
            self.queue.room().notify()
        return 0

    # -- get --------------------------------------------------------------------------------------------

    cdef object get(self, int64_t deadline):
        cdef object item
        if self.item_kind == OBJECT:
            return get_object(self, deadline)
        item = self._get_bytes(deadline)
        return item if self.item_kind == BYTES or item is TIMED_OUT else scalar_of(item)

    cdef object _room_for(self, uint64_t length):
        """Memory of our own for one item, made before the item is claimed: a MemoryError loses nothing."""
        return numpy.empty((), dtype=self.dtype) if self.item_kind == RECORD else PyBytes_FromStringAndSize(NULL, length)

    cdef void* _data_of(self, object target) noexcept:
        return array_data(target) if self.item_kind == RECORD else <void*>PyBytes_AS_STRING(target)

    cdef int _finish(self, const GrowingRing& ring, Participant ledger, const Peeked& peeked, object target) except -1:
        """Copy out what was claimed, and give its slots back."""
        cdef void* to = self._data_of(target)
        if peeked.bytes < LONG_COPY:
            finish_pop(ring, ledger, peeked, to)
        else:
            with nogil:
                finish_pop(ring, ledger, peeked, to)
        return 0

    cdef inline int _after_get(self, const GrowingRing& ring, bint waited) except -1:
        if is_broken(self.guard):
            self.raise_corrupt()
        self.queue.flow().after_get(ring)
        self.queue.room().notify()
        if waited and self.queue.looks_gettable():
            self.queue.items().notify()
        return 0

    cdef object _get_bytes(self, int64_t deadline):
        cdef Participant ledger
        cdef Outcome outcome
        cdef Peeked peeked
        cdef const GrowingRing* ring
        cdef uint64_t stage
        cdef object target
        cdef bint waited = False
        self.find_participant(&ledger)
        while True:
            outcome = self.queue.peek_in_place(ledger, peeked)
            if outcome == Outcome.done:
                ring = self.queue.ring_in_place(ledger)
                stage = ring.stage_seen
                target = self._room_for(peeked.bytes)
                if ring.stage_seen != stage or not claim_pop(ring[0], ledger, peeked.span):
                    continue
                self._finish(ring[0], ledger, peeked, target)
                self._after_get(ring[0], waited)
                return target
            target = self._recover(outcome, ledger, peeked.skipped > 0)
            if target is RETRY:
                continue
            if target is not TIMED_OUT or not self.wait_for_items(deadline, &ledger):
                return target
            waited = True

    cdef object _recover(self, Outcome outcome, Participant ledger, bint skipped):
        """After a get that found nothing: an item of a dead consumer, RETRY if the dead were in the way, or TIMED_OUT."""
        cdef GrowingFound found
        cdef object target
        if skipped:
            self.queue.room().notify()
        if outcome == Outcome.corrupt or is_broken(self.guard):
            self.raise_corrupt()
        if outcome == Outcome.closed:
            if self.is_discarded():
                self.raise_shut_down()
        elif not self.queue.recovery_is_due(outcome):
            return TIMED_OUT
        self.queue.flow().rest()
        with nogil:
            found = self.queue.recover()
        self.check_open()
        if found.unclaimed:
            self.raise_corrupt()
        if found.redeliverable:
            try:
                target = self._room_for(found.peeked.bytes)
            except BaseException:
                self.queue.drop_guard()
                raise
            if not self.queue.try_redeliver(ledger, found):
                return RETRY
            self.queue.finish_redelivered(ledger, found, self._data_of(target))
            self.raise_if_truncated()
            self.queue.room().notify()
            return target
        if found.changed:
            self.queue.room().notify()
            return RETRY
        if outcome == Outcome.closed and not self.queue.may_come_again():
            self.raise_shut_down()
        return TIMED_OUT

    cdef object get_many(self, uint64_t limit, int64_t deadline):
        cdef Participant ledger
        cdef Outcome outcome
        cdef Peeked peeked
        cdef GrowingRing ring
        cdef object batch
        cdef list spare = []
        cdef bint waited = False
        if self.item_kind == OBJECT:
            return get_objects(self, limit, deadline)
        self.find_participant(&ledger)
        while True:
            outcome = self.queue.peek(ledger, peeked, ring)
            if outcome == Outcome.done:
                if self.item_kind == RECORD:
                    batch = self._take_records(ring, limit, ledger, &peeked)
                else:
                    batch = self._take_bytes(ring, limit, ledger, &peeked, spare)
                if batch is None:
                    continue
                self._after_get(ring, waited)
                return batch
            batch = self._recover(outcome, ledger, peeked.skipped > 0)
            if batch is RETRY:
                continue
            if batch is not TIMED_OUT:
                return batch[numpy.newaxis] if self.item_kind == RECORD else [batch]
            if not self.wait_for_items(deadline, &ledger):
                return TIMED_OUT
            waited = True

    cdef object _take_records(self, const GrowingRing& ring, uint64_t limit, Participant ledger, Peeked* peeked):
        """The records from the peeked one on; None if somebody else was faster."""
        cdef object target
        self.queue.widen_records(ledger, ring, limit, peeked[0])
        target = numpy.empty(peeked.span.slots, dtype=self.dtype)
        if not claim_pop(ring, ledger, peeked.span):
            return None
        self._finish(ring, ledger, peeked[0], target)
        return target

    cdef object _take_bytes(
        self, const GrowingRing& ring, uint64_t limit, Participant ledger, Peeked* peeked, list spare
    ):
        """The same for bytes. What was allocated for a claim that failed is kept in `spare` for the next."""
        cdef uint64_t most = min(limit, BATCH_LIMIT, ring.capacity)
        cdef uint64_t* lengths = <uint64_t*>PyMem_Malloc(most * sizeof(uint64_t))
        cdef uint64_t count, i, position
        if lengths is NULL:
            raise MemoryError()
        try:
            count = self.queue.widen_bytes(ledger, ring, most, lengths, peeked[0])
            for i in range(count):
                if i == <uint64_t>len(spare):
                    spare.append(PyBytes_FromStringAndSize(NULL, lengths[i]))
                elif <uint64_t>PyBytes_GET_SIZE(spare[i]) != lengths[i]:
                    spare[i] = PyBytes_FromStringAndSize(NULL, lengths[i])
            del spare[count:]
            if not claim_pop(ring, ledger, peeked.span):
                return None
            position = peeked.span.position
            for i in range(count):
                copy_out(ring, position, PyBytes_AS_STRING(spare[i]), lengths[i])
                position += self.slots_of(lengths[i])
            give_back(ring, ledger, peeked.span)
        finally:
            PyMem_Free(lengths)
        return spare

    # -- waiting ----------------------------------------------------------------------------------------

    cdef bint wait_for_room(self, Outcome outcome, uint64_t slots, int64_t deadline, Participant* ledger) except -1:
        cdef int64_t left
        cdef uint64_t resets
        cdef bint is_room
        if outcome == Outcome.closed:
            self.raise_shut_down()
        if outcome == Outcome.corrupt or is_broken(self.guard):
            self.raise_corrupt()
        if outcome == Outcome.unbacked:
            self.check_open()
            self.raise_if_cut()
            error = self.queue.flow().error()
            raise OSError(
                error,
                f"no memory for the next part of {self.label}: {os.strerror(error)}; "
                "get items out of it, or create it with a max_bytes that there is room for",
            )
        if outcome == Outcome.busy and self.queue.lock_names_a_bystander():
            self.raise_corrupt()
        resets = self.queue.control().resets.load()
        if self.queue.recovery_is_due(outcome):
            with nogil:
                is_room = self.queue.make_room(ledger[0])
            self.check_open()
            if is_room:
                return True
        left = 0 if deadline == AT_ONCE else remaining_ns(deadline)
        if left <= 0:  # a put whose time is up asks as one that has none
            if not self.queue.flow().is_worth_a_try(outcome):
                return False
            with nogil:
                self.queue.wait_a_moment()
            return self.after_wait(ledger)
        with nogil:
            if outcome == Outcome.busy:  # somebody is at the memory, and wakes nobody when that is over
                self.queue.wait_a_moment()
            else:
                self.queue.wait_for_room(slots, resets, left)
        return self.after_wait(ledger)

    cdef int wait(self, bint for_items, uint64_t slots, int64_t deadline) except -1:
        cdef int64_t left = remaining_ns(deadline)
        cdef uint64_t resets = self.queue.control().resets.load()
        with nogil:
            if for_items:
                self.queue.wait_for_items(left)
            else:
                self.queue.wait_for_room(slots, resets, left)
        return self.check_open()

    cdef void sleep_for_items(self, int64_t limit_ns) noexcept nogil:
        self.queue.wait_for_items(limit_ns)

    cdef bint looks_gettable(self) noexcept:
        return self.queue.looks_gettable()

    cdef uint64_t count_left(self) noexcept:
        return 0 if self.is_discarded() else self.queue.count_left()

    cdef bint is_discarded(self) noexcept:
        return self.queue.levels().stage().is_discarded()

    # -- leases -----------------------------------------------------------------------------------------

    cdef RingLease* new_lease(self) except NULL:
        return new GrowingLease(self.queue[0])

    cdef bint is_unreleased(self, uint64_t position) noexcept nogil:
        return is_unreleased(self.queue[0], position)

    cdef bint recovery_is_due(self, Outcome outcome) noexcept:
        if not self.queue.recovery_is_due(outcome):
            return False
        self.queue.flow().rest()
        return True

    cdef bint may_come_again(self) noexcept:
        return self.queue.may_come_again()

    cdef bint has_more_to_recover(self) noexcept:
        return self.queue.recovery().has_more()

    cdef void notify_items(self) noexcept:
        self.queue.items().notify()

    cdef void notify_room(self) noexcept:
        self.queue.room().notify()

    # -- the rest ---------------------------------------------------------------------------------------

    cdef object resident_bytes(self):
        self.check_held()
        return os.fstat(self.queue.file()).st_blocks * 512

    cdef object size(self):
        return self.queue.count_items() + self.count_left()

    cdef int shut_down(self, bint immediate) except -1:
        self.queue.shut_down(immediate)
        return 0

    cdef void wake_everybody(self) noexcept:
        self.queue.items().wake_all()
        self.queue.room().wake_all()
