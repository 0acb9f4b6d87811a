# cython: language_level=3, binding=False, freethreading_compatible=True
"""The backend of a slot queue: it converts, waits and raises. The algorithm is in native/slots."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from queueduct.core._backend cimport lend, line_of
from queueduct.core._queue cimport TIMED_OUT
from queueduct.items._buffers cimport Gathered, as_records
from queueduct.items._item_kinds cimport BYTES, LONG_COPY, OBJECT, RECORD
from queueduct.items._objects cimport unpickle_all
from queueduct.native._native cimport Buffer, Identity, Joined, array_data, byte, import_array, is_broken
from queueduct.slots._native cimport *

import numpy

from queueduct.errors import CorruptSegment, QueueFull, ShutDown
from queueduct.items import types as items

import_array()

cdef enum:
    TAKES_BETWEEN_RECOVERIES = 1024   # a power of two
    BATCH_LIMIT = 4096                # items that one get_many takes at most

cdef str FULL = (
    "the queue {queue} is full: {size:,} of {capacity:,} slots are in use, {out:,} of them loaned, taken or on lease"
    "{waited}; get items, give slots back, or create it with a larger capacity"
)

cdef object decode_object = items.decode_object
cdef object is_its_own = items.is_its_own


@cython.final
cdef class SlotsBackend(SegmentBackend):

    def __cinit__(self, opened):
        cdef SlotsOffsets at
        cdef Identity identity
        cdef byte* memory = self.take_over(opened, &identity)
        cdef dict offsets = opened.offsets
        at.control = offsets["control_offset"]
        at.participants = offsets["participants_offset"]
        at.producers = offsets["producers_offset"]
        at.free_cells = offsets["free_cells_offset"]
        at.used_cells = offsets["used_cells_offset"]
        at.lines = offsets["lines_offset"]
        at.payload = offsets["payload_offset"]
        at.stride = offsets["slot_stride"]
        self.slot_bytes = opened.geometry.slot_bytes
        self.queue = new SlotsQueue(
            memory, at, opened.geometry.capacity, self.slot_bytes, self.participants, opened.geometry.producers,
            opened.take_lock_fd(), identity,
        )
        self.slots = &self.queue.slots()
        self.queue.rest().identify(<uint64_t>int.from_bytes(opened.segment_id[:8], "little"))
        self.participant_table = &self.queue.participant_table()
        self.check_attached()

    def __dealloc__(self):
        del self.queue

    cdef int raise_corrupt(self) except -1:
        self.raise_if_truncated()
        raise CorruptSegment(
            f"the index queues and the words of {self.told} contradict each other: "
            f"free={self.slots.free().head():#x}..{self.slots.free().tail():#x}, "
            f"used={self.slots.used().head():#x}..{self.slots.used().tail():#x}, "
            f"slots={self.slots.count()}; recreate the queue"
        )

    cdef inline uint32_t me(self) except 0:
        """Returns this thread's number in the slots' words."""
        return line_of(self) + 1

    cdef int join(self) except -1:
        self.check_open()
        return SegmentBackend.join(self)

    cdef Joined try_join(self) noexcept nogil:
        return self.queue.join()

    cdef bint is_unsettled(self, uint32_t line) noexcept:
        return SegmentBackend.is_unsettled(self, line) and self.queue.is_named(line)

    # -- slots ------------------------------------------------------------------------------------------

    cdef int hold(self, Lease* lease, int64_t deadline) except -1:
        """Sets `lease` to a slot to fill. Returns 1, or 2 after a wait, or 0 if the time is up."""
        cdef SlotOutcome outcome
        cdef int waited = 1
        while True:
            outcome = self.slots.try_hold(self.me(), lease[0])
            if outcome == SlotOutcome.done:
                return waited
            if not self.go_on(outcome, False, deadline, waited == 1):
                return 0
            waited = 2

    cdef int publish(self, Lease* lease, uint64_t length, bint waited) except -1:
        return self.published(self.slots.publish(lease[0], length), waited)

    cdef int published(self, SlotOutcome outcome, bint waited) except -1:
        """Wakes or raises after a publish with this outcome."""
        if outcome == SlotOutcome.closed:
            self.queue.room().notify()
            self.raise_shut_down()
        if outcome != SlotOutcome.done or is_broken(self.guard):
            self.raise_corrupt()
        self.queue.participant_table().let_go_of_ended()
        self.queue.items().notify()
        if waited and self.slots.may_be_holdable():
            self.queue.room().notify()
        return 0

    cdef int take(self, Lease* lease, int64_t deadline) except -1:
        """Sets `lease` to an item to read. Returns 1, or 2 after a wait, or 0 if the time is up."""
        cdef SlotOutcome outcome
        cdef int waited = 1
        self.takes += 1
        if self.takes % TAKES_BETWEEN_RECOVERIES == 0:
            self.me()
            with nogil:
                self.queue.recover_if_due(self.queue.me(), False)  # in a steady flow no other call recovers
        while True:
            outcome = self.slots.try_take(self.me(), lease[0])
            if outcome == SlotOutcome.done:
                return waited
            if not self.go_on(outcome, True, deadline, waited == 1):
                return 0
            waited = 2

    cdef int leave(self, Lease* lease, bint waited) except -1:
        if not self.slots.leave(lease[0]) or is_broken(self.guard):
            self.raise_corrupt()
        self.queue.participant_table().let_go_of_ended()
        self.queue.room().notify()
        if waited and self.slots.may_be_takeable():
            self.queue.items().notify()
        return 0

    cdef int put_back(self, Lease* lease) except -1:
        if not self.slots.put_back(lease[0]) or is_broken(self.guard):
            self.raise_corrupt()
        self.queue.participant_table().let_go_of_ended()
        self.queue.items().notify()
        return 0

    # -- put --------------------------------------------------------------------------------------------

    cdef int check_length(self, uint64_t length) except -1:
        if length > self.slot_bytes:
            raise ValueError(
                f"an item of {length} bytes does not fit into a slot of {self.told}: the limit is "
                f"slot_bytes={self.slot_bytes}; create the queue with a larger slot_bytes"
            )
        return 0

    cdef int put(self, object item, int64_t deadline) except -1:
        cdef Buffer one
        cdef object lent = lend(self, item, &one)
        return self._put_bytes(one.data, one.bytes, deadline)

    cdef int _put_bytes(self, const void* data, uint64_t length, int64_t deadline) except -1:
        """Returns 1 if the bytes are in, 0 if the time is up."""
        cdef Lease lease
        cdef int held
        cdef uint32_t me
        self.check_length(length)
        held = self.hold(&lease, deadline)
        if held == 0:
            return 0
        self.fill(&lease, data, length)
        me = owner_of(lease.word)
        self.publish(&lease, length, held == 2)
        self.queue.count_put(me, length)
        return 1

    cdef int fill(self, Lease* lease, const void* data, uint64_t length) except -1:
        if length < LONG_COPY:
            memcpy(lease.data, data, length)
        else:
            with nogil:
                memcpy(lease.data, data, length)
        return 0

    cdef object put_many(self, object items, int64_t deadline):
        cdef Gathered batch
        cdef object array
        cdef const char* data = NULL
        cdef uint64_t i, count
        cdef int done
        if self.item_kind == RECORD:
            array = as_records(self.dtype, items, one=False)
            data = <const char*>array_data(array)
            count = <uint64_t>array.nbytes // self.slot_bytes
        else:
            batch = self.gather(items)
            count = batch.count
        for i in range(count):
            try:
                if self.item_kind == RECORD:
                    done = self._put_bytes(data + i * self.slot_bytes, self.slot_bytes, deadline)
                else:
                    done = self._put_bytes(batch.buffers[i].data, batch.buffers[i].bytes, deadline)
            except ShutDown:
                if i == 0:
                    raise
                return i
            if not done:
                return None if i == 0 else i
        return count

    # -- get --------------------------------------------------------------------------------------------

    cdef object copy_out(self, const Lease* lease):
        """Returns a copy of the item's bytes or of its record."""
        cdef object target
        cdef void* to
        cdef uint64_t length = lease.bytes
        if self.item_kind == RECORD:
            target = numpy.empty((), dtype=self.dtype)
            to = array_data(target)
            length = self.slot_bytes
        else:
            target = PyBytes_FromStringAndSize(NULL, length)
            to = PyBytes_AS_STRING(target)
        if length < LONG_COPY:
            memcpy(to, lease.data, length)
        else:
            with nogil:
                memcpy(to, lease.data, length)
        return target

    cdef object decoded(self, object copied):
        if self.item_kind == RECORD:
            return copied[()]
        return decode_object(copied) if self.item_kind == OBJECT else copied

    cdef object get(self, int64_t deadline):
        cdef Lease lease
        cdef object copied
        cdef object item
        cdef int taken
        cdef uint32_t forks, me
        while True:
            taken = self.take(&lease, deadline)
            if taken == 0:
                return TIMED_OUT
            forks = self.queue.participant_table().generation()
            copied = None
            try:
                copied = self.copy_out(&lease)
                item = copied if self.item_kind == BYTES else self.decoded(copied)
            except BaseException as error:
                self.end_one(&lease, forks, copied, error)
                raise
            if self.item_kind != OBJECT or forks == self.queue.participant_table().generation():
                me = owner_of(lease.word)
                self.leave(&lease, taken == 2)
                self.queue.count_got(me, lease.bytes, 1)
                return item
            # unpickling has forked, and this is the child: the item is the parent's

    cdef int end_one(self, Lease* lease, uint32_t forks, object copied, object error) except -1:
        """After an error. An item that caused it is done with; any other is the parent's, or is redelivered."""
        cdef bint is_over = False
        try:
            is_over = self.item_kind == OBJECT and copied is not None and is_its_own(error, copied)
        finally:
            if forks != self.queue.participant_table().generation():
                pass
            elif is_over:
                self.leave(lease, False)
                self.queue.count_got_by_any(lease.bytes, 1)
            else:
                self.put_back(lease)
        return 0

    cdef object get_many(self, uint64_t limit, int64_t deadline):
        """Converts all items before it releases the first one."""
        cdef uint64_t most = min(limit, BATCH_LIMIT, self.slots.count())
        cdef Lease* leases = <Lease*>PyMem_Malloc(most * sizeof(Lease))
        cdef uint64_t count = 0
        cdef uint64_t over = 0
        cdef uint32_t forks
        cdef object found
        cdef int taken
        if leases is NULL:
            raise MemoryError()
        try:
            while True:
                taken = self._take_some(leases, most, &count, deadline)
                if taken == 0:
                    return TIMED_OUT
                forks = self.queue.participant_table().generation()
                over = 0
                try:
                    found = self._converted(leases, count, &over)
                finally:
                    if forks == self.queue.participant_table().generation():
                        self._end_some(leases, count, over, taken == 2)
                if forks == self.queue.participant_table().generation():
                    return found
        finally:
            PyMem_Free(leases)

    cdef int _take_some(self, Lease* leases, uint64_t limit, uint64_t* count, int64_t deadline) except -1:
        """Takes up to ``limit`` items. Returns as take()."""
        cdef SlotOutcome outcome
        cdef int waited = 1
        self.takes += 1
        if self.takes % TAKES_BETWEEN_RECOVERIES == 0:
            self.queue.recover_if_due(self.me(), False)
        while True:
            outcome = try_lease(self.slots[0], self.me(), leases, limit, count[0])
            if outcome == SlotOutcome.done:
                break
            if not self.go_on(outcome, True, deadline, waited == 1):
                return 0
            waited = 2
        while count[0] < limit and self.slots.try_take_new(self.me(), leases[count[0]]) == SlotOutcome.done:
            count[0] += 1  # new items after redelivered ones
        return waited

    cdef object _converted(self, Lease* leases, uint64_t count, uint64_t* over):
        """Returns the items up to one that cannot be unpickled, and sets `over`: so many of them are done with."""
        cdef uint64_t i
        cdef char* to
        cdef object batch
        if self.item_kind == RECORD:
            batch = numpy.empty(count, dtype=self.dtype)
            to = <char*>array_data(batch)
            for i in range(count):
                memcpy(to + i * self.slot_bytes, leases[i].data, self.slot_bytes)
        else:
            batch = []
            for i in range(count):
                (<list>batch).append(self.copy_out(&leases[i]))
        if is_broken(self.guard):
            self.raise_corrupt()
        if self.item_kind == OBJECT:
            unpickle_all(batch, over)
        else:
            over[0] = count
        return batch

    cdef int _end_some(self, Lease* leases, uint64_t count, uint64_t released, bint waited) except -1:
        if not end_lease(self.slots[0], leases, count, released) or is_broken(self.guard):
            self.raise_corrupt()
        if released:
            self.queue.count_got_by_any(bytes_of(leases, released), released)
            self.queue.room().notify_all()
        if released < count:
            self.queue.items().notify_all()
        elif waited and self.slots.may_be_takeable():
            self.queue.items().notify()
        return 0

    # -- waiting ----------------------------------------------------------------------------------------

    cdef bint go_on(self, SlotOutcome outcome, bint for_items, int64_t deadline, bint is_first) except -1:
        """Recovers or waits after a failed attempt. Returns true to try again, false if the time is up."""
        cdef bint is_closed = self.slots.closed() != 0
        cdef bint is_recovered
        cdef uint32_t me
        if outcome == SlotOutcome.corrupt or is_broken(self.guard):
            self.raise_corrupt()
        if outcome == SlotOutcome.closed:
            self.raise_shut_down()
        me = self.me()
        with nogil:
            is_recovered = self.queue.recover_if_due(me, for_items and is_closed)
        self.check_open()
        if is_recovered:
            return True
        if for_items and is_closed and self.queue.is_drained(self.me()):
            self.raise_shut_down()
        return self.wait_until(for_items, 1, deadline, is_first)

    cdef void sleep(self, bint for_items, uint64_t slots, int64_t limit_ns) noexcept nogil:
        if for_items:
            self.queue.wait_for_items(limit_ns)
        else:
            self.queue.wait_for_room(limit_ns)

    cdef object count_leased(self):
        return self.queue.count_slots().taken

    cdef object why_full(self, double waited):
        """All but the queued slots are out: a put needs a free one, whatever the queue holds."""
        cdef uint64_t used = self.slots.count() - min(self.slots.count(), self.slots.free().size())
        return QueueFull(
            FULL, self.name, waited, used, self.slots.capacity(), used - min(used, self.slots.used().size())
        )

    cdef bint is_all_done(self) except -1:
        cdef uint32_t me = self.me()
        cdef bint is_done
        with nogil:
            is_done = self.queue.is_all_done(me)
        return is_done

    # -- size and shutdown ------------------------------------------------------------------------------

    cdef object size(self):
        return self.queue.size()

    cdef int shut_down(self, bint immediate) except -1:
        self.queue.shut_down(immediate)
        return 0

    cdef void wake_everybody(self) noexcept:
        self.queue.wake_everybody()
