# cython: language_level=3, binding=False, freethreading_compatible=True
"""A queue of rings in shared memory: convert, wait, raise. The protocol is in native/ring/operations.hpp."""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint64_t

from queueduct.core._queue cimport AT_ONCE, remaining_ns
from queueduct.items._buffers cimport Held, borrow, gather
from queueduct.items._item_kinds cimport OBJECT, RECORD
from queueduct.native._guard cimport watch
from queueduct.native._native cimport Joined, is_broken, item_bytes_limit, run_without_gil
from queueduct.rings.shared._native cimport new_lease

from queueduct.errors import Full
from queueduct.items import types as items

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

    @cython.final
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

    @cython.final
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

    cdef Gathered gather(self, object items):
        """A batch of items that vary in length, each of which can fit."""
        cdef Gathered batch = gather(list(map(encode_object, items)) if self.item_kind == OBJECT else items)
        if batch.longest > self.slot_bytes or batch.longest > item_bytes_limit:
            self.check_length(batch.longest)
        return batch

    @cython.final
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

    @cython.final
    cdef int after_put(self, bint waited) except -1:
        if is_broken(self.guard):
            self.raise_corrupt()
        self.queue.after_put(waited)
        return 0

    # -- waiting ----------------------------------------------------------------------------------------

    @cython.final
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

    @cython.final
    cdef bint go_on_getting(self, Outcome outcome, int64_t deadline, Participant* ledger) except -1:
        """The same after a get that found nothing."""
        if outcome == Outcome.corrupt or is_broken(self.guard):
            self.raise_corrupt()
        if outcome == Outcome.closed:
            self.raise_shut_down()
        return self.wait_for_items(deadline, ledger)

    @cython.final
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

    @cython.final
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

    cdef bint may_be_gettable(self) noexcept:
        return self.queue.may_be_gettable()

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
