# cython: language_level=3, binding=False, freethreading_compatible=True
"""What is the same for every queue of rings in shared memory: batches, waits. What a kind must bring refuses everything here."""

from cpython.exc cimport PyErr_CheckSignals

from queueduct.items._batches cimport gather
from queueduct.items._buffers cimport Held, as_records, borrow
from queueduct.items._item_kinds cimport LONG_COPY, OBJECT, RECORD
from queueduct.native._native cimport array_data, import_array, item_bytes_limit
from queueduct.core._queue cimport AT_ONCE, remaining_ns

from queueduct.items import types as items
from queueduct.errors import Full

import_array()

cdef object encode_object = items.encode_object


cdef class RingBackend(SegmentBackend):

    cdef int find_participant(self, Participant* ledger) except -1:
        """This thread's line in the participant table; a thread joins at its first operation."""
        return self.check_open()

    cdef bint has_ledger(self, Participant* ledger) noexcept:
        """The same if it has joined."""
        return False

    cdef uint64_t owner_word(self, Participant ledger) noexcept:
        return 0

    cdef Producers* producers(self) noexcept:
        return NULL

    cdef Outcome settle_producer(self, ProducerLine* line) noexcept nogil:
        return Outcome.corrupt

    cdef Outcome put_buffers(
        self, Participant ledger, const Buffer* items, uint64_t count, uint64_t* put
    ) noexcept nogil:
        return Outcome.closed

    cdef Outcome put_records(
        self, Participant ledger, const void* data, uint64_t count, uint64_t* put
    ) noexcept nogil:
        return Outcome.closed

    cdef Outcome put_bytes_once(
        self, Participant ledger, ProducerLine* line, const Buffer* items, uint64_t count, uint64_t* put
    ) noexcept nogil:
        return Outcome.closed

    cdef Outcome put_records_once(
        self, Participant ledger, ProducerLine* line, const void* data, uint64_t count, uint64_t* put
    ) noexcept nogil:
        return Outcome.closed

    cdef int check_length(self, uint64_t length) except -1:
        """Of an item longer than a slot: can it ever fit?"""
        return self.check_open()

    cdef int after_put(self, bint waited) except -1:
        return 0

    cdef bint wait_for_room(self, Outcome outcome, uint64_t slots, int64_t deadline, Participant* ledger) except -1:
        """After a put that did not succeed: True to try again, False when the time is up."""
        return False

    cdef void sleep_for_items(self, int64_t limit_ns) noexcept nogil:
        pass

    cdef int raise_corrupt(self) except -1:
        return self.raise_if_truncated()

    cdef RingLease* new_lease(self) except NULL:
        raise NotImplementedError

    cdef bint is_unreleased(self, uint64_t position) noexcept nogil:
        return False

    cdef uint64_t count_left(self) noexcept:
        """Items that nobody has any more who had taken them."""
        return 0

    cdef bint is_discarded(self) noexcept:
        """Have gets ended, whatever is left?"""
        return False

    cdef bint looks_gettable(self) noexcept:
        return False

    cdef bint recovery_is_due(self, Outcome outcome) noexcept:
        return False

    cdef bint may_come_again(self) noexcept:
        """Shut down and empty: is anything out that may come back?"""
        return False

    cdef bint has_more_to_recover(self) noexcept:
        return False

    cdef void notify_items(self) noexcept:
        pass

    cdef void notify_room(self) noexcept:
        pass

    # -- what is the same for all -----------------------------------------------------------------------

    cdef uint64_t slots_of(self, uint64_t length) noexcept:
        """How many slots so many bytes take."""
        return 1 if length <= self.slot_bytes else (length + self.slot_bytes - 1) // self.slot_bytes

    cdef uint64_t slots_for(self, object item) except 0:
        cdef Held lent
        if self.item_kind == RECORD:
            return 1
        lent = borrow(encode_object(item) if self.item_kind == OBJECT else item)
        return self.slots_of(lent.view.len)

    cdef Gathered gather(self, object items):
        """A batch of items that vary in length, each of which can fit."""
        cdef Gathered batch = gather(list(map(encode_object, items)) if self.item_kind == OBJECT else items)
        if batch.longest > self.slot_bytes or batch.longest > item_bytes_limit:
            self.check_length(batch.longest)
        return batch

    cdef object put_many(self, object items, int64_t deadline):
        if self.item_kind == RECORD:
            return self._put_array(as_records(self.dtype, items, one=False), deadline)
        return self._put_gathered(self.gather(items), deadline)

    cdef object _put_array(self, object array, int64_t deadline):
        cdef Participant ledger
        cdef Outcome outcome
        cdef const char* data = <const char*>array_data(array)
        cdef uint64_t count = <uint64_t>array.nbytes // self.slot_bytes
        cdef uint64_t total = 0
        cdef uint64_t put = 0
        cdef bint waited = False
        self.find_participant(&ledger)
        while total < count:
            if (count - total) * self.slot_bytes < LONG_COPY:
                outcome = self.put_records(ledger, data + total * self.slot_bytes, count - total, &put)
            else:
                with nogil:
                    outcome = self.put_records(ledger, data + total * self.slot_bytes, count - total, &put)
            if outcome == Outcome.done:
                total += put
                self.after_put(waited)
            elif not self._go_on_putting(outcome, total, 1, deadline, &ledger):
                break
            else:
                waited = True
        return total

    cdef object _put_gathered(self, Gathered batch, int64_t deadline):
        cdef Participant ledger
        cdef Outcome outcome
        cdef uint64_t total = 0
        cdef uint64_t put = 0
        cdef bint waited = False
        self.find_participant(&ledger)
        while total < batch.count:
            if batch.in_all < LONG_COPY:
                outcome = self.put_buffers(ledger, batch.buffers + total, batch.count - total, &put)
            else:
                with nogil:
                    outcome = self.put_buffers(ledger, batch.buffers + total, batch.count - total, &put)
            if outcome == Outcome.done:
                total += put
                self.after_put(waited)
            elif not self._go_on_putting(
                outcome, total, self.slots_of(batch.buffers[total].bytes), deadline, &ledger
            ):
                break
            else:
                waited = True
        return total

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

    cdef bint wait_for_items(self, int64_t deadline, Participant* ledger) except -1:
        """After a get that found nothing: True to try again, False when the time is up."""
        cdef int64_t left
        if deadline == AT_ONCE:
            return False
        left = remaining_ns(deadline)
        if left <= 0:
            return False
        with nogil:
            self.sleep_for_items(left)
        return self.after_wait(ledger)

    cdef bint after_wait(self, Participant* ledger) except -1:
        """A signal may have come, the handle may have been closed, we may be a forked child by now."""
        PyErr_CheckSignals()
        self.check_open()
        self.find_participant(ledger)
        return True
