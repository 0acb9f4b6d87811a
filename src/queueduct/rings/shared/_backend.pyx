# cython: language_level=3, binding=False, freethreading_compatible=True
"""The backend of a queue of rings in shared memory. The protocol is in native/ring/operations.hpp."""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint32_t, uint64_t

from queueduct.core._queue cimport AT_ONCE, remaining_ns
from queueduct.items._buffers cimport Held, borrow, gather, listed
from queueduct.items._item_kinds cimport OBJECT, RECORD
from queueduct.native._native cimport Joined, counted, is_broken, item_bytes_limit, monotonic_ns
from queueduct.rings.shared._native cimport new_lease

from queueduct.items import types as items

cdef object encode_object = items.encode_object


cdef class RingBackend(SegmentBackend):

    def __dealloc__(self):
        del self.queue

    cdef int attach(self, object opened, RingHandle* queue) except -1:
        self.queue = queue
        self.participant_table = &queue.participant_table()
        queue.rest().identify(<uint64_t>int.from_bytes(opened.segment_id[:8], "little"))
        self.item_slots_limit = queue.item_slots_limit()
        self.slot_bytes = opened.geometry.slot_bytes
        return self.check_attached()

    # -- each kind's own --------------------------------------------------------------------------------

    cdef int raise_corrupt(self) except -1:
        """Raises the error of a queue whose words contradict each other."""
        return self.raise_if_truncated()

    cdef int raise_no_memory(self) except -1:
        """Raises the error of a growing queue for which the system has no memory."""
        return self.raise_corrupt()

    cdef object limit_reason(self):
        """Returns why an item cannot be longer, and what to do."""
        return ""

    # -- participants -----------------------------------------------------------------------------------

    @cython.final
    cdef int find_participant(self, Participant* ledger) except -1:
        """Sets `ledger` to this thread's line in the participant table. A thread joins at its first operation."""
        cdef Joined joined
        if self.queue.find_participant(ledger[0]):
            return 0
        with nogil:
            joined = self.queue.join()
        if joined == Joined.yes and self.queue.find_participant(ledger[0]):
            return 0
        return self.raise_not_joined(joined)

    cdef bint is_unsettled(self, uint32_t line) noexcept:
        return SegmentBackend.is_unsettled(self, line) and not self.queue.seems_settled(line)

    # -- put --------------------------------------------------------------------------------------------

    @cython.final
    cdef uint64_t slots_of(self, uint64_t length) noexcept:
        """Returns how many slots an item of ``length`` bytes takes."""
        return 1 if length <= self.slot_bytes else (length + self.slot_bytes - 1) // self.slot_bytes

    cdef uint64_t slots_for(self, object item) except 0:
        cdef Held lent
        if self.item_kind == RECORD:
            return 1
        lent = borrow(encode_object(item) if self.item_kind == OBJECT else item)
        return self.slots_of(lent.view.len)

    cdef int check_length(self, uint64_t length) except -1:
        """Raises if an item longer than a slot can never fit."""
        if length > item_bytes_limit or self.slots_of(length) > self.item_slots_limit:
            raise ValueError(
                f"an item of {length} bytes can never fit into {self.told}: the limit is "
                f"{min(self.item_slots_limit * self.slot_bytes, item_bytes_limit)} bytes{self.limit_reason()}"
            )
        self.queue.note_long_items()
        return 0

    cdef Gathered gather(self, object items):
        """Returns a batch of items that vary in length. Raises if one of them can never fit."""
        cdef Gathered batch = gather(list(map(encode_object, listed(items))) if self.item_kind == OBJECT else items)
        if batch.longest > self.slot_bytes or batch.longest > item_bytes_limit:
            self.check_length(batch.longest)
        return batch

    @cython.final
    cdef bint _go_on_putting(
        self, Outcome outcome, uint64_t total, uint64_t slots, int64_t deadline, Participant* ledger, bint is_first
    ) except -1:
        """After a failed attempt in a batch. Returns true to try again. It raises only if no item is in yet."""
        if total > 0 and (outcome == Outcome.closed or outcome == Outcome.unbacked):
            return False
        return self.wait_for_room(outcome, slots, deadline, ledger, is_first)

    @cython.final
    cdef int after_put(self, bint waited) except -1:
        if is_broken(self.guard):
            self.raise_corrupt()
        self.queue.after_put(waited)
        return 0

    # -- waiting ----------------------------------------------------------------------------------------

    @cython.final
    cdef bint wait_for_room(
        self, Outcome outcome, uint64_t slots, int64_t deadline, Participant* ledger, bint is_first
    ) except -1:
        """Waits after a failed put. Returns true to try again, false if the time is up."""
        cdef int64_t left, began
        if outcome == Outcome.closed:
            self.raise_shut_down()
        if outcome == Outcome.corrupt or is_broken(self.guard):
            self.raise_corrupt()
        if outcome == Outcome.unbacked:
            self.raise_no_memory()
        left = 0 if deadline == AT_ONCE else remaining_ns(deadline)
        if left <= 0 and not self.queue.is_worth_a_try(outcome):
            self.refused_slots = slots
            return False
        began = monotonic_ns()
        with nogil:
            self.queue.wait_for_room(outcome, slots, left)
        ledger.count_wait(False, is_first, began)
        return self.after_wait(ledger)

    @cython.final
    cdef bint go_on_getting(self, Outcome outcome, int64_t deadline, Participant* ledger, bint is_first) except -1:
        """The same after a get that found no item."""
        if outcome == Outcome.corrupt or is_broken(self.guard):
            self.raise_corrupt()
        if outcome == Outcome.closed:
            self.raise_shut_down()
        return self.wait_for_items(deadline, ledger, is_first)

    @cython.final
    cdef bint wait_for_items(self, int64_t deadline, Participant* ledger, bint is_first) except -1:
        cdef int64_t left, began
        if deadline == AT_ONCE:
            return False
        left = remaining_ns(deadline)
        if left <= 0:
            return False
        began = monotonic_ns()
        with nogil:
            self.queue.wait_for_items(left)
        ledger.count_wait(True, is_first, began)
        return self.after_wait(ledger)

    @cython.final
    cdef bint after_wait(self, Participant* ledger) except -1:
        """Handles a signal and a closed handle, and joins again if a signal handler has forked."""
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

    cdef bint is_all_done(self) except -1:
        cdef Participant ledger
        cdef bint is_done
        self.find_participant(&ledger)
        with nogil:
            is_done = self.queue.is_all_done(ledger)
        return is_done

    cdef object count_leased(self):
        return self.queue.count_leased()

    cdef bint may_be_gettable(self) noexcept:
        return self.queue.may_be_gettable()

    # -- size and shutdown ------------------------------------------------------------------------------

    cdef object size(self):
        return self.queue.count_items() + self.queue.count_left()

    cdef int shut_down(self, bint immediate) except -1:
        self.queue.shut_down(immediate)
        return 0

    cdef void wake_everybody(self) noexcept:
        self.queue.items().wake_all()
        self.queue.room().wake_all()


cdef Counted counted_by(RingBackend shared, uint64_t pushed, uint64_t popped):
    """Returns what was counted. Within a process nothing counts, but a reference is one slot: so the positions tell."""
    cdef Counted local
    if shared is not None:
        return counted(shared.participant_table[0])
    local.items_put, local.items_got = pushed, popped
    local.bytes_put = local.bytes_got = 0
    local.waits_for_room = local.waits_for_items = local.waited_ns = 0
    return local
