# cython: language_level=3, binding=False, freethreading_compatible=True
"""The backend of an overwriting queue: it converts, waits and raises. The algorithm is in native/overwriting."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint32_t, uint64_t

from queueduct.core._backend cimport encode_object, lend, line_of
from queueduct.core._queue cimport AT_ONCE, TIMED_OUT, remaining_ns
from queueduct.items._buffers cimport Gathered, as_records, gather, listed, scalar_of
from queueduct.items._item_kinds cimport BYTES, LONG_COPY, OBJECT, RECORD
from queueduct.items._objects cimport unpickle_all
from queueduct.native._native cimport (
    Buffer, Identity, Joined, array_data, byte, import_array, is_broken, monotonic_ns, shorten,
)
from queueduct.overwriting._native cimport *
from queueduct.overwriting._objects cimport Kept, Unread

import numpy

from queueduct.errors import CorruptSegment, QueueFull

import_array()

cdef str FULL = (
    "the queue {queue} is full: {size:,} of {capacity:,} messages{waited}; get some, put with overwrite=True, or "
    "create it with a larger capacity"
)

cdef enum:
    OBJECTS_LIMIT = 1024   # that one get_many leases at most


@cython.final
cdef class OverwritingBackend(SegmentBackend):

    def __cinit__(self, opened):
        cdef OverwritingOffsets at
        cdef Identity identity
        cdef byte* memory = self.take_over(opened, &identity)
        cdef uint64_t words = opened.geometry.message_bytes // 8
        self.unread = Unread()
        at = overwriting_offsets(opened.geometry.capacity, words, self.participants, len(opened.item.text))
        self.item_bytes = opened.geometry.message_bytes if self.dtype is None else self.dtype.itemsize
        self.queue = new OverwritingShared(
            memory, at, opened.geometry.capacity, words, self.participants, opened.take_lock_fd(), identity
        )
        self.ring = &self.queue.ring()
        self.message_bytes = self.ring.message_bytes()
        self.queue.rest().identify(<uint64_t>int.from_bytes(opened.segment_id[:8], "little"))
        self.participant_table = &self.queue.participant_table()
        self.check_attached()

    def __dealloc__(self):
        del self.queue

    cdef int raise_corrupt(self) except -1:
        cdef RingState state = self.ring.state()
        self.raise_if_truncated()
        raise CorruptSegment(
            f"the header or the journal of {self.told} makes no sense: START_IDX={state.start}, "
            f"QUEUE_LEN={state.length}, HEADER_LOCK={self.ring.header_lock().load():#x}, "
            f"capacity={self.ring.capacity()}; recreate the queue"
        )

    cdef Joined try_join(self) noexcept nogil:
        return self.queue.join()

    cdef bint is_unsettled(self, uint32_t line) noexcept:
        return self.participant_table.lines()[line].guarded.load() & 1  # it died in a call

    # -- put --------------------------------------------------------------------------------------------

    cdef int put(self, object item, int64_t deadline) except -1:
        return self.put_as(item, True, deadline)

    cdef int put_as(self, object item, bint overwrite, int64_t deadline) except -1:
        """Returns 1 if the item is in, 0 if the time is up."""
        cdef Buffer one
        cdef object lent = lend(self, item, &one)
        if self.item_kind != RECORD:
            self.check_length(one.bytes)
        return self._put_message(one.data, one.bytes, overwrite, deadline)

    cdef object put_many(self, object given, int64_t deadline):
        return self.put_many_as(given, True, deadline)

    cdef object put_many_as(self, object given, bint overwrite, int64_t deadline):
        """Returns how many items are in, or None if the time is up and none is."""
        cdef Gathered batch
        cdef uint64_t count, i
        self.check_open()
        if self.item_kind == RECORD:
            given = as_records(self.dtype, given, one=False)
            count = <uint64_t>given.nbytes // self.item_bytes
            return self._put_messages(<const char*>array_data(given), NULL, count, overwrite, deadline)
        batch = gather(list(map(encode_object, listed(given))) if self.item_kind == OBJECT else given)
        for i in range(batch.count):
            self.check_length(batch.buffers[i].bytes)
        return self._put_messages(NULL, batch.buffers, batch.count, overwrite, deadline)

    cdef object _put_messages(
        self, const char* records, const Buffer* messages, uint64_t count, bint overwrite, int64_t deadline
    ):
        """Puts records or messages; the other one is NULL."""
        cdef uint64_t total = 0
        cdef uint64_t put = 0
        cdef Claim claim
        cdef int64_t limit = 0
        cdef int64_t end = deadline
        cdef uint64_t size = self.item_bytes
        cdef uint32_t line
        cdef bint waited = False
        if count == 0:
            return 0
        while True:
            line = line_of(self)
            if (count - total) * size < LONG_COPY and limit == 0:
                claim = self._try_put(line, records, messages, count - total, overwrite, 0, &put)
            else:
                with nogil:
                    claim = self._try_put(line, records, messages, count - total, overwrite, limit, &put)
            total += put
            if is_broken(self.guard):
                self.raise_corrupt()
            if total == count or (total > 0 and claim == Claim.closed):
                return total
            if put != 0:
                end = deadline  # each message may wait briefly
                if records is NULL:
                    messages += put
                else:
                    records += put * size
            limit = self.retry_ns(claim, False, deadline, &end, not waited)
            waited = True
            if limit < 0:
                return None if total == 0 else total

    cdef Claim _try_put(
        self, uint32_t line, const char* records, const Buffer* messages, uint64_t count, bint overwrite,
        int64_t limit_ns, uint64_t* put,
    ) noexcept nogil:
        if records is NULL:
            return self.queue.try_put_many(line, messages, count, overwrite, limit_ns, put[0])
        return self.queue.try_put_records(line, records, self.item_bytes, count, overwrite, limit_ns, put[0])

    cdef int check_length(self, uint64_t length) except -1:
        """Raises before any lock is taken."""
        if length == self.item_bytes or (self.item_kind == OBJECT and length < self.item_bytes):
            return 0
        if self.item_kind == OBJECT:
            raise ValueError(
                f"an object of {length} pickled bytes can never fit into {self.told}: "
                f"message_bytes={self.item_bytes}; create the queue with a larger message_bytes"
            )
        raise ValueError(
            f"a message of {self.told} must have exactly {self.item_bytes} bytes: got {length}; "
            "fill it up, or create the queue with another message_bytes"
        )

    cdef int _put_message(self, const void* data, uint64_t length, bint overwrite, int64_t deadline) except -1:
        cdef Claim claim
        cdef uint32_t line
        cdef int64_t limit = 0
        cdef int64_t end = deadline
        cdef bint waited = False
        line = line_of(self)
        while True:
            if length < LONG_COPY and limit == 0:
                claim = self.queue.try_put(line, data, length, overwrite, 0)
            else:
                with nogil:
                    claim = self.queue.try_put(line, data, length, overwrite, limit)
            if claim == Claim.done:
                if is_broken(self.guard):
                    self.raise_corrupt()
                if waited and not overwrite and self.ring.may_be_free():
                    self.queue.room().notify()
                return 1
            limit = self.retry_ns(claim, False, deadline, &end, not waited)
            if limit < 0:
                return 0
            line = line_of(self)
            waited = True

    # -- get --------------------------------------------------------------------------------------------

    cdef object get(self, int64_t deadline):
        cdef object target
        if self.item_kind == OBJECT:
            target = self._get_objects(1, deadline)
            return target if target is TIMED_OUT else target[0]
        if deadline == AT_ONCE and not self._may_have_some():
            return TIMED_OUT
        target = self._new_target()
        if not self._get_message(self._data_of(target), deadline):
            return TIMED_OUT
        return target if self.item_kind == BYTES else scalar_of(target)

    cdef bint _may_have_some(self) except -1:
        """Returns false if the queue is empty now, and not shut down. Takes no lock."""
        cdef bint has_some
        self.check_open()
        has_some = not self.queue.may_be_empty()
        if is_broken(self.guard):
            self.raise_corrupt()
        return has_some

    cdef object _new_target(self):
        """Allocates the memory for one item before the item is claimed, so that a MemoryError loses nothing."""
        if self.item_kind == RECORD:
            return numpy.empty((), dtype=self.dtype)
        return PyBytes_FromStringAndSize(NULL, self.item_bytes)

    cdef object get_many(self, uint64_t limit, int64_t deadline):
        """Waits for the first item only."""
        if self.item_kind == OBJECT:
            return self._get_objects(min(limit, OBJECTS_LIMIT), deadline)
        if deadline == AT_ONCE and not self._may_have_some():
            return TIMED_OUT
        return self._get_records(limit, deadline) if self.item_kind == RECORD else self._get_bytes(limit, deadline)

    cdef object _get_objects(self, uint64_t limit, int64_t deadline):
        """Returns a list of objects, or TIMED_OUT."""
        cdef Claim claim
        cdef Kept kept
        cdef object found
        cdef int64_t limit_ns = 0
        cdef int64_t end = deadline
        cdef bint waited = False
        while True:
            if self.unread.has_some(self.queue.participant_table().generation()):
                found = self._get_unkept(AT_ONCE)
                if found is None:
                    continue
                return found
            if deadline == AT_ONCE and not self._may_have_some():
                return TIMED_OUT
            kept = Kept()
            kept.begin(self, self.queue, limit)
            if not self.is_allocated:
                self.is_allocated = kept.allocate() == 0
            claim = kept.claim(line_of(self), limit_ns) if self.is_allocated else Claim.full
            if claim == Claim.done:
                if waited and self.ring.may_be_gettable():
                    self.queue.items().notify()
                found = kept.converted(self.item_bytes)
                self.raise_if_truncated()
                if found is not None:
                    return found
                continue  # unpickling has forked, and this is the child: the messages are the parent's
            if claim == Claim.full:
                found = self._get_unkept(deadline)
                if found is None:
                    continue
                return found
            limit_ns = self.retry_ns(claim, True, deadline, &end, not waited)
            if limit_ns < 0:
                return TIMED_OUT
            waited = True

    cdef object _get_unkept(self, int64_t deadline):
        """Gets one object when no cell is free or has memory: until it is unpickled, only this handle has it.

        Returns None if unpickling has forked, and this is the child.
        """
        cdef uint64_t over = 0
        cdef uint32_t forks = self.queue.participant_table().generation()
        cdef list batch = [None]
        cdef list node = self.unread.take()
        if node is None:
            node = [self._new_target(), None]  # the memory to keep the object is allocated before the get
            if not self._get_message(PyBytes_AS_STRING(node[0]), deadline):
                return TIMED_OUT
        batch[0] = node[0]
        try:
            unpickle_all(batch, &over)
        finally:
            if forks == self.queue.participant_table().generation() and not over:
                self.unread.keep(node)
        return batch if forks == self.queue.participant_table().generation() else None

    cdef object _get_records(self, uint64_t limit, int64_t deadline):
        cdef uint64_t most = min(limit, max(<uint64_t>self.ring.state().length, 1), self.ring.capacity())
        cdef object batch = numpy.empty(most, dtype=self.dtype)
        cdef char* data = <char*>array_data(batch)
        cdef uint64_t got = 0
        cdef uint32_t line
        if not self._get_message(data, deadline):
            return TIMED_OUT
        line = line_of(self)
        data += self.item_bytes
        if most * self.item_bytes < LONG_COPY:
            self.queue.try_get_records(line, data, self.item_bytes, most - 1, 0, got)
        else:
            with nogil:
                self.queue.try_get_records(line, data, self.item_bytes, most - 1, 0, got)
        if is_broken(self.guard):
            self.raise_corrupt()
        if 1 + got == most:
            return batch
        try:
            return batch[:1 + got]
        except MemoryError:  # the records are out of the queue already
            shorten(batch, 1 + got)
            return batch

    cdef object _get_bytes(self, uint64_t limit, int64_t deadline):
        cdef object target = self._new_target()
        cdef list batch = [target]
        cdef uint32_t line = 0
        if not self._get_message(PyBytes_AS_STRING(target), deadline):
            return TIMED_OUT
        if not self.queue.find_line(line):
            return batch
        while <uint64_t>len(batch) < limit:
            try:
                target = self._new_target()
                batch.append(target)
            except MemoryError:
                break
            if not self._get_another(line, PyBytes_AS_STRING(target)):
                batch.pop()
                break
        return batch

    cdef bint _get_another(self, uint32_t line, void* to) noexcept:
        """Gets another message for a batch. Returns false on any error: the messages got so far are returned first."""
        cdef Claim claim
        if self.ring.state().length == 0:
            return False
        if self.item_bytes < LONG_COPY:
            claim = self.queue.try_get(line, to, self.item_bytes, 0)
        else:
            with nogil:
                claim = self.queue.try_get(line, to, self.item_bytes, 0)
        return claim == Claim.done

    cdef void* _data_of(self, object target) noexcept:
        return array_data(target) if self.item_kind == RECORD else <void*>PyBytes_AS_STRING(target)

    cdef bint _get_message(self, void* to, int64_t deadline) except -1:
        cdef Claim claim
        cdef uint32_t line
        cdef int64_t limit = 0
        cdef int64_t end = deadline
        cdef bint waited = False
        line = line_of(self)
        while True:
            if self.item_bytes < LONG_COPY and limit == 0:
                claim = self.queue.try_get(line, to, self.item_bytes, 0)
            else:
                with nogil:
                    claim = self.queue.try_get(line, to, self.item_bytes, limit)
            if claim == Claim.done:
                if is_broken(self.guard):
                    self.raise_corrupt()
                if waited and self.ring.may_be_gettable():
                    self.queue.items().notify()
                return True
            limit = self.retry_ns(claim, True, deadline, &end, not waited)
            if limit < 0:
                return False
            line = line_of(self)
            waited = True

    # -- waiting ----------------------------------------------------------------------------------------

    cdef int64_t retry_ns(
        self, Claim claim, bint for_items, int64_t deadline, int64_t* end, bint is_first
    ) except -2:
        """Waits after a failed attempt. Returns how long the next one may wait for the header, or -1 if the time is up.

        `end` is the deadline at first. A call that never waits still waits briefly for the header, or for a copy.
        """
        cdef int64_t left, began
        if claim == Claim.closed and not (for_items and self.queue.may_come_again()):
            self.raise_shut_down()
        if claim == Claim.corrupt or is_broken(self.guard):
            self.raise_corrupt()
        if deadline == AT_ONCE and (claim == Claim.full or (for_items and claim != Claim.locked)):
            return -1
        if end[0] == AT_ONCE:
            end[0] = monotonic_ns() + BRIEFLY_NS
        left = remaining_ns(end[0])
        if left <= 0:
            return -1
        if claim != Claim.locked:  # else the next attempt waits
            began = monotonic_ns()
            with nogil:
                if for_items and claim == Claim.full:  # a lease found no free cell
                    self.queue.wait_for_cell(left)
                elif for_items or claim == Claim.full:
                    self.sleep(for_items, 1, left)
                else:
                    self.queue.wait_for_copy(left)
            self.note_wait(for_items, is_first, began)
        PyErr_CheckSignals()
        self.check_open()
        return max(0, min(remaining_ns(end[0]), <int64_t>BRIEFLY_NS)) if claim == Claim.locked else 0

    cdef void sleep(self, bint for_items, uint64_t slots, int64_t limit_ns) noexcept nogil:
        if for_items:
            self.queue.wait_for_items(limit_ns)
        else:
            self.queue.wait_for_room(limit_ns)

    # -- size and shutdown ------------------------------------------------------------------------------

    cdef object size(self):
        self.unread.has_some(self.queue.participant_table().generation())
        return self.ring.length() + self.count_left() + self.unread.count()

    cdef object count_leased(self):
        return self.queue.leased_messages().count_leased()

    cdef object why_full(self, double waited):
        return QueueFull(FULL, self.name, waited, self.ring.length(), self.ring.capacity())

    cdef bint is_all_done(self) except -1:
        cdef bint is_done
        if self.unread.has_some(self.queue.participant_table().generation()):
            return False
        with nogil:
            is_done = self.queue.is_all_done()
        return is_done

    cdef uint64_t count_left(self) noexcept:
        """Returns how many messages have a consumer that is gone, or gave them back."""
        return 0 if self.ring.is_discarded() else self.queue.leased_messages().count_orphans()

    cdef int shut_down(self, bint immediate) except -1:
        self.queue.shut_down(immediate)
        return 0

    cdef void wake_everybody(self) noexcept:
        self.queue.wake_everybody()
