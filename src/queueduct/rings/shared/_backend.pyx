# cython: language_level=3, binding=False, freethreading_compatible=True
"""A queue of rings in shared memory: convert, wait, raise. The protocol is in native/ring/operations.hpp."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t, uint64_t

from queueduct.core._queue cimport AT_ONCE, TIMED_OUT, remaining_ns
from queueduct.items._buffers cimport Held, as_records, borrow, gather, scalar_of
from queueduct.items._item_kinds cimport BYTES, LONG_COPY, OBJECT, RECORD
from queueduct.native._guard cimport watch
from queueduct.native._native cimport (
    Joined, Span, array_data, import_array, is_broken, item_bytes_limit, run_without_gil,
)
from queueduct.rings.shared._native cimport new_lease
from queueduct.rings.shared._objects cimport get_object, get_objects

import numpy

from queueduct.errors import Full
from queueduct.items import types as items

import_array()

cdef enum:
    BATCH_LIMIT = 4096   # items of varying length that one claim takes

cdef object encode_object = items.encode_object

cdef extern from "native/_handover.hpp" namespace "queueduct":
    void count_for_all_threads(object)  # what goes with the backend goes with whoever gives that up


cdef class RingBackend(SegmentBackend):

    def __dealloc__(self):
        del self.queue

    cdef Held map_memory(self, object opened):
        """The mapping, watched from here on."""
        cdef Held mapped
        self.memory = opened.take_memory()
        count_for_all_threads(self.memory)
        mapped = Held(self.memory)
        self.guard = watch(mapped.view.buf, mapped.view.len)
        return mapped

    cdef int attach(self, object opened, RingHandle* queue) except -1:
        self.queue = queue
        self.participant_table = &queue.participant_table()
        queue.rest().identify(<uint64_t>int.from_bytes(opened.segment_id[:8], "little"))
        self.item_slots_limit = queue.item_slots_limit()
        self.label = repr(opened.name)
        self.dtype = opened.item.dtype
        self.item_kind = opened.item.kind
        self.participants = opened.geometry.participants
        self.slot_bytes = opened.geometry.slot_bytes
        return self.check_attached()

    # -- what a kind says -------------------------------------------------------------------------------

    cdef int raise_corrupt(self) except -1:
        """The words of the queue contradict each other."""
        return self.raise_if_truncated()

    cdef int raise_no_memory(self) except -1:
        """Of a queue that grows: the system has none."""
        return self.raise_corrupt()

    cdef object limit_reason(self):
        """Why an item cannot be longer, and what to do."""
        return ""

    # -- participants -----------------------------------------------------------------------------------

    cdef int find_participant(self, Participant* ledger) except -1:
        """This thread's line in the participant table; a thread joins at its first operation."""
        cdef Joined joined
        if self.queue.find_participant(ledger[0]):
            return 0
        with nogil:
            joined = self.queue.join()
        if joined == Joined.yes and self.queue.find_participant(ledger[0]):
            return 0
        return self.raise_not_joined(joined)

    cdef Producers* producers(self) noexcept:
        return &self.queue.producers()

    cdef Outcome settle_producer(self, ProducerLine* line) noexcept nogil:
        return self.queue.settle_producer(line[0])

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

    cdef uint64_t slots_of(self, uint64_t length) noexcept:
        """How many slots so many bytes take."""
        return 1 if length <= self.slot_bytes else (length + self.slot_bytes - 1) // self.slot_bytes

    cdef uint64_t slots_for(self, object item) except 0:
        cdef Held lent
        if self.item_kind == RECORD:
            return 1
        lent = borrow(encode_object(item) if self.item_kind == OBJECT else item)
        return self.slots_of(lent.view.len)

    cdef int check_length(self, uint64_t length) except -1:
        """Of an item longer than a slot: can it ever fit?"""
        if length > item_bytes_limit or self.slots_of(length) > self.item_slots_limit:
            raise ValueError(
                f"an item of {length} bytes can never fit into {self.label}: the limit is "
                f"{min(self.item_slots_limit * self.slot_bytes, item_bytes_limit)} bytes{self.limit_reason()}"
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
                outcome = self.queue.put_bytes(ledger, data, length, run_without_gil)
            else:
                with nogil:
                    outcome = self.queue.put_bytes(ledger, data, length, run_without_gil)
            if outcome == Outcome.done:
                self.after_put(waited)
                return 1
            if not self.wait_for_room(outcome, self.slots_of(length), deadline, &ledger):
                return 0
            waited = True

    cdef object put_many(self, object items, int64_t deadline):
        cdef Gathered batch
        cdef uint64_t length
        if self.item_kind == RECORD:
            items = as_records(self.dtype, items, one=False)
            length = items.nbytes
            return self._put_batch(NULL, <const char*>array_data(items), length // self.slot_bytes, length, deadline)
        batch = self.gather(items)
        return self._put_batch(batch.buffers, NULL, batch.count, batch.in_all, deadline)

    cdef Gathered gather(self, object items):
        """A batch of items that vary in length, each of which can fit."""
        cdef Gathered batch = gather(list(map(encode_object, items)) if self.item_kind == OBJECT else items)
        if batch.longest > self.slot_bytes or batch.longest > item_bytes_limit:
            self.check_length(batch.longest)
        return batch

    cdef object _put_batch(
        self, const Buffer* buffers, const char* records, uint64_t count, uint64_t in_all, int64_t deadline
    ):
        """Items that vary in length, or records: as many as are in when the time is up."""
        cdef Participant ledger
        cdef Outcome outcome
        cdef uint64_t total = 0
        cdef uint64_t put = 0
        cdef bint waited = False
        self.find_participant(&ledger)
        while total < count:
            if in_all < LONG_COPY:
                outcome = self._put_some(ledger, buffers, records, total, count, &put)
            else:
                with nogil:
                    outcome = self._put_some(ledger, buffers, records, total, count, &put)
            if outcome == Outcome.done:
                total += put
                self.after_put(waited)
            elif not self._go_on_putting(
                outcome, total, 1 if buffers is NULL else self.slots_of(buffers[total].bytes), deadline, &ledger
            ):
                break
            else:
                waited = True
        return total

    cdef Outcome _put_some(
        self, Participant ledger, const Buffer* buffers, const char* records, uint64_t done, uint64_t count, uint64_t* put
    ) noexcept nogil:
        cdef Span span
        cdef Outcome outcome
        if buffers is not NULL:
            return self.queue.put_buffers(ledger, buffers + done, count - done, put[0], run_without_gil)
        outcome = self.queue.put_records(ledger, records + done * self.slot_bytes, count - done, span, run_without_gil)
        put[0] = span.slots
        return outcome

    cdef bint _go_on_putting(
        self, Outcome outcome, uint64_t total, uint64_t slots, int64_t deadline, Participant* ledger
    ) except -1:
        """In a batch: what is in counts, so only an empty-handed batch raises."""
        if total > 0 and (outcome == Outcome.closed or outcome == Outcome.unbacked):
            return False
        if self.wait_for_room(outcome, slots, deadline, ledger):
            return True
        if total == 0:
            raise Full
        return False

    cdef Outcome put_bytes_once(
        self, Participant ledger, ProducerLine* line, const Buffer* items, uint64_t count, uint64_t* put
    ) noexcept nogil:
        return self.queue.put_bytes_once(ledger, line[0], items, count, put[0], run_without_gil)

    cdef Outcome put_records_once(
        self, Participant ledger, ProducerLine* line, const void* data, uint64_t count, uint64_t* put
    ) noexcept nogil:
        return self.queue.put_records_once(ledger, line[0], data, count, put[0], run_without_gil)

    cdef int after_put(self, bint waited) except -1:
        if is_broken(self.guard):
            self.raise_corrupt()
        self.queue.after_put(waited)
        return 0

    # -- get --------------------------------------------------------------------------------------------

    cdef object get(self, int64_t deadline):
        cdef object item
        if self.item_kind == OBJECT:
            return get_object(self, deadline)
        item = self._get_bytes(deadline)
        return item if self.item_kind == BYTES or item is TIMED_OUT else scalar_of(item)

    cdef object _get_bytes(self, int64_t deadline):
        cdef Participant ledger
        cdef Outcome outcome
        cdef Item item
        cdef Target target
        cdef object found
        self.find_participant(&ledger)
        while True:
            outcome = self.queue.find(ledger, item, run_without_gil)
            if outcome == Outcome.done:
                found = self._room_for(item, &target)
                if self._take(ledger, item, &target, 1):
                    return found
            elif self.go_on_getting(outcome, deadline, &ledger):
                item.has_waited = True
            else:
                return TIMED_OUT

    cdef object get_many(self, uint64_t limit, int64_t deadline):
        cdef Participant ledger
        cdef Outcome outcome
        cdef Item item
        cdef Target one
        cdef Target* targets = &one
        cdef uint64_t count
        cdef object found
        cdef list spare = []
        if self.item_kind == OBJECT:
            return get_objects(self, limit, deadline)
        self.find_participant(&ledger)
        if self.item_kind == BYTES:
            limit = min(limit, BATCH_LIMIT)
            targets = <Target*>PyMem_Malloc(limit * sizeof(Target))
            if targets is NULL:
                raise MemoryError()
        try:
            while True:
                outcome = self.queue.find(ledger, item, run_without_gil)
                if outcome == Outcome.done:
                    count = self.queue.widen(ledger, item, limit, targets)
                    found = self._room_for_many(item, targets, count, spare)
                    if self._take(ledger, item, targets, count):
                        return found
                elif self.go_on_getting(outcome, deadline, &ledger):
                    item.has_waited = True
                else:
                    return TIMED_OUT
        finally:
            if targets is not &one:
                PyMem_Free(targets)

    cdef object _room_for(self, const Item& item, Target* target):
        """Memory of our own for one item, made before the item is claimed: a MemoryError loses nothing."""
        cdef object found
        target.bytes = item.bytes
        if self.item_kind == RECORD:
            found = numpy.empty((), dtype=self.dtype)
            target.to = array_data(found)
        else:
            found = PyBytes_FromStringAndSize(NULL, item.bytes)
            target.to = PyBytes_AS_STRING(found)
        return found

    cdef object _room_for_many(self, const Item& item, Target* targets, uint64_t count, list spare):
        """The same for several. What was made for a claim that failed is kept in `spare` for the next."""
        cdef object found
        cdef uint64_t i
        if self.item_kind == RECORD:
            found = numpy.empty(item.span.slots, dtype=self.dtype)
            targets[0].to = array_data(found)
            return found
        for i in range(count):
            if i == <uint64_t>len(spare):
                spare.append(PyBytes_FromStringAndSize(NULL, targets[i].bytes))
            elif <uint64_t>PyBytes_GET_SIZE(spare[i]) != targets[i].bytes:
                spare[i] = PyBytes_FromStringAndSize(NULL, targets[i].bytes)
            targets[i].to = PyBytes_AS_STRING(spare[i])
        del spare[count:]
        return spare

    cdef bint _take(self, Participant ledger, Item& item, const Target* targets, uint64_t count) except -1:
        cdef bint is_taken
        if item.is_redelivered:
            self.check_open()
        if item.bytes < LONG_COPY:
            is_taken = self.queue.take(ledger, item, targets, count)
        else:
            with nogil:
                is_taken = self.queue.take(ledger, item, targets, count)
        if is_broken(self.guard):
            self.raise_corrupt()
        return is_taken

    # -- waiting ----------------------------------------------------------------------------------------

    cdef bint wait_for_room(self, Outcome outcome, uint64_t slots, int64_t deadline, Participant* ledger) except -1:
        """After a put that did not succeed: True to try again, False when the time is up."""
        cdef int64_t left
        if outcome == Outcome.closed:
            self.raise_shut_down()
        if outcome == Outcome.corrupt or is_broken(self.guard):
            self.raise_corrupt()
        if outcome == Outcome.unbacked:
            self.raise_no_memory()
        left = 0 if deadline == AT_ONCE else remaining_ns(deadline)
        if left <= 0 and not self.queue.is_worth_a_try(outcome):
            return False
        with nogil:
            self.queue.wait_for_room(outcome, slots, left)
        return self.after_wait(ledger)

    cdef bint go_on_getting(self, Outcome outcome, int64_t deadline, Participant* ledger) except -1:
        """The same after a get that found nothing."""
        if outcome == Outcome.corrupt or is_broken(self.guard):
            self.raise_corrupt()
        if outcome == Outcome.closed:
            self.raise_shut_down()
        return self.wait_for_items(deadline, ledger)

    cdef bint wait_for_items(self, int64_t deadline, Participant* ledger) except -1:
        cdef int64_t left
        if deadline == AT_ONCE:
            return False
        left = remaining_ns(deadline)
        if left <= 0:
            return False
        with nogil:
            self.queue.wait_for_items(left)
        return self.after_wait(ledger)

    cdef bint after_wait(self, Participant* ledger) except -1:
        """A signal may have come, the handle may have been closed, we may be a forked child by now."""
        PyErr_CheckSignals()
        self.check_open()
        self.find_participant(ledger)
        return True

    cdef int wait(self, bint for_items, uint64_t slots, int64_t deadline) except -1:
        cdef int64_t left = remaining_ns(deadline)
        with nogil:
            if for_items:
                self.queue.wait_for_items(left)
            else:
                self.queue.wait_for_room(Outcome.full, slots, left)
        return self.check_open()

    # -- leases -----------------------------------------------------------------------------------------

    cdef RingLease* new_lease(self) except NULL:
        cdef RingLease* lease = new_lease(self.queue[0])
        if lease is NULL:
            raise MemoryError()
        return lease

    cdef bint is_unreleased(self, uint64_t position) noexcept nogil:
        return self.queue.is_unreleased(position)

    cdef uint64_t count_left(self) noexcept:
        """Items of dead consumers, which will be delivered again."""
        return self.queue.count_left()

    cdef bint looks_gettable(self) noexcept:
        return self.queue.looks_gettable()

    cdef void sleep_for_items(self, int64_t limit_ns) noexcept nogil:
        self.queue.wait_for_items(limit_ns)

    cdef void notify_items(self) noexcept:
        self.queue.items().notify()

    cdef void notify_room(self) noexcept:
        self.queue.room().notify()

    # -- the rest ---------------------------------------------------------------------------------------

    cdef object size(self):
        return self.queue.count_items() + self.queue.count_left()

    cdef int shut_down(self, bint immediate) except -1:
        self.queue.shut_down(immediate)
        return 0

    cdef void wake_everybody(self) noexcept:
        self.queue.items().wake_all()
        self.queue.room().wake_all()
