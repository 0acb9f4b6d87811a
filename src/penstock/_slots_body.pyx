# cython: language_level=3, binding=False, freethreading_compatible=True
"""A slot queue in shared memory: convert, wait, raise. The algorithm is in native/."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy
from posix.time cimport nanosleep, timespec

from penstock._batches cimport Gathered, gather
from penstock._buffers cimport Held, as_records, borrow
from penstock._kinds cimport LONG_COPY, OBJECT, RECORD
from penstock._mapped cimport own_identity
from penstock._native cimport Joined, array_data, byte, import_array, is_broken, watch
from penstock._queue cimport AT_ONCE, NOTHING, remaining_ns
from penstock._slots_native cimport *

import numpy

from penstock import items
from penstock.errors import CorruptSegment, Full, ShutDown

import_array()

cdef enum:
    TAKES_BETWEEN_LOOKS = 1024   # a power of two

cdef object encode_object = items.encode_object
cdef object decode_object = items.decode_object


@cython.final
cdef class SlotsBody(MappedBody):

    def __cinit__(self, opened):
        cdef SlotsOffsets at
        cdef dict offsets = opened.offsets
        cdef Held mapped
        self.memory = opened.take_memory()
        mapped = Held(self.memory)
        at.control = offsets["control_offset"]
        at.participants = offsets["participants_offset"]
        at.producers = offsets["producers_offset"]
        at.free_cells = offsets["free_cells_offset"]
        at.used_cells = offsets["used_cells_offset"]
        at.lines = offsets["lines_offset"]
        at.payload = offsets["payload_offset"]
        at.stride = offsets["slot_stride"]
        self.guard = watch(mapped.view.buf, mapped.view.len)
        self.queue = new SlotsQueue(
            <byte*>mapped.view.buf, at, opened.geometry.capacity, opened.geometry.slot_bytes,
            opened.geometry.participants, opened.geometry.producers, opened.take_lock_fd(), own_identity(),
        )
        self.slots = &self.queue.slots()
        self.slot_bytes = opened.geometry.slot_bytes
        self.label = repr(opened.name)
        self.dtype = opened.item.dtype
        self.form = opened.item.kind
        self.participants = opened.geometry.participants

    def __dealloc__(self):
        del self.queue

    cdef int _raise_corrupt(self) except -1:
        self.raise_if_truncated()
        raise CorruptSegment(
            f"the index queues and the words of {self.label} contradict each other: "
            f"free={self.slots.free().head():#x}..{self.slots.free().tail():#x}, "
            f"used={self.slots.used().head():#x}..{self.slots.used().tail():#x}, "
            f"slots={self.slots.count()}; recreate the queue"
        )

    cdef uint32_t _me(self) except 0:
        """This thread's name in the words; a thread joins at its first operation."""
        cdef Joined joined
        cdef uint32_t me = self.queue.me()
        if me != 0:
            return me
        self.check_open()
        joined = self.queue.join()
        if joined != Joined.yes:
            self.raise_not_joined(joined)
        return self.queue.me()

    # -- slots ------------------------------------------------------------------------------------------

    cdef int hold(self, Lease* lease, bint overwrite, int64_t deadline) except -1:
        """1: a slot to fill. 2: the same after a wait. 3: the oldest item's, which is still in it. 0: the time is up."""
        cdef SlotOutcome outcome
        cdef int waited = 1
        while True:
            outcome = self.slots.try_hold(self._me(), lease[0])
            if outcome == SlotOutcome.full and overwrite:
                outcome = self.slots.try_evict(self._me(), lease[0])
                if outcome == SlotOutcome.done:
                    return 3
                if outcome == SlotOutcome.empty:
                    outcome = SlotOutcome.full
            if outcome == SlotOutcome.done:
                return waited
            if not self._go_on(outcome, False, deadline):
                return 0
            waited = 2

    cdef int publish(self, Lease* lease, uint64_t length, bint waited) except -1:
        return self.published(self.slots.publish(lease[0], length), waited)

    cdef int published(self, SlotOutcome outcome, bint waited) except -1:
        """After a publish that ended so."""
        if outcome == SlotOutcome.closed:
            self.queue.room().notify()
            self.raise_shut_down()
        if outcome != SlotOutcome.done or is_broken(self.guard):
            self._raise_corrupt()
        self.queue.items().notify()
        if waited and self.slots.looks_holdable():
            self.queue.room().notify()
        return 0

    cdef int take(self, Lease* lease, int64_t deadline) except -1:
        """1: an item to read. 2: the same after a wait. 0: the time is up."""
        cdef SlotOutcome outcome
        cdef int waited = 1
        self.takes += 1
        if self.takes % TAKES_BETWEEN_LOOKS == 0:
            self.queue.recover_if_due(self._me(), False)  # under a steady flow nobody else would
        while True:
            outcome = self.slots.try_take(self._me(), lease[0])
            if outcome == SlotOutcome.done:
                return waited
            if not self._go_on(outcome, True, deadline):
                return 0
            waited = 2

    cdef int leave(self, Lease* lease, bint waited) except -1:
        if not self.slots.leave(lease[0]) or is_broken(self.guard):
            self._raise_corrupt()
        self.queue.room().notify()
        if waited and self.slots.looks_takeable():
            self.queue.items().notify()
        return 0

    cdef int put_back(self, Lease* lease) except -1:
        if not self.slots.put_back(lease[0]):
            self._raise_corrupt()
        self.queue.items().notify()
        return 0

    # -- put --------------------------------------------------------------------------------------------

    cdef int check_length(self, uint64_t length) except -1:
        if length > self.slot_bytes:
            raise ValueError(
                f"an item of {length} bytes does not fit into a slot of {self.label}: the limit is "
                f"slot_bytes={self.slot_bytes}; create the queue with a larger slot_bytes"
            )
        return 0

    cdef int put(self, object item, int64_t deadline) except -1:
        return self.put_one(item, False, deadline) is not NOTHING

    cdef object put_one(self, object item, bint overwrite, int64_t deadline):
        """The evicted item, or None; NOTHING when the time is up."""
        cdef Held lent
        if self.form == RECORD:
            item = as_records(self.dtype, item, one=True)
            return self._put_bytes(array_data(item), self.slot_bytes, overwrite, deadline)
        if self.form == OBJECT:
            item = encode_object(item)
        elif type(item) is not bytes:
            lent = borrow(item)
            return self._put_bytes(lent.view.buf, lent.view.len, overwrite, deadline)
        return self._put_bytes(PyBytes_AS_STRING(item), PyBytes_GET_SIZE(item), overwrite, deadline)

    cdef object _put_bytes(self, const void* data, uint64_t length, bint overwrite, int64_t deadline):
        cdef Lease lease
        cdef object evicted = NOTHING
        cdef int held
        self.check_length(length)
        held = self.hold(&lease, overwrite, deadline)
        if held == 0:
            return NOTHING
        if held == 3:
            try:
                evicted = self.copy_out(&lease)
            except BaseException:
                self.put_back(&lease)
                raise
        self._fill(&lease, data, length)
        self.publish(&lease, length, held == 2)
        return None if evicted is NOTHING else self.as_evicted(evicted)

    cdef int _fill(self, Lease* lease, const void* data, uint64_t length) except -1:
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
        if self.form == RECORD:
            array = as_records(self.dtype, items, one=False)
            data = <const char*>array_data(array)
            count = <uint64_t>array.nbytes // self.slot_bytes
        else:
            batch = gather([encode_object(item) for item in items] if self.form == OBJECT else items)
            self.check_length(batch.longest)
            count = batch.count
        for i in range(count):
            try:
                if self.form == RECORD:
                    done = self._put_bytes(data + i * self.slot_bytes, self.slot_bytes, False, deadline)
                else:
                    done = self._put_bytes(batch.buffers[i].data, batch.buffers[i].bytes, False, deadline)
            except ShutDown:
                if i == 0:
                    raise
                return i
            if done is NOTHING:
                if i == 0:
                    raise Full
                return i
        return count

    # -- get --------------------------------------------------------------------------------------------

    cdef object copy_out(self, const Lease* lease):
        """The item's bytes, or its record, in memory of our own."""
        cdef object target
        cdef void* to
        cdef uint64_t length = lease.bytes
        if self.form == RECORD:
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
        if self.form == RECORD:
            return copied[()]
        return decode_object(copied) if self.form == OBJECT else copied

    cdef object get(self, int64_t deadline):
        cdef Lease lease
        cdef object copied
        cdef int taken
        if self.deferred:
            self.raise_deferred()
        taken = self.take(&lease, deadline)
        if taken == 0:
            return NOTHING
        try:
            copied = self.copy_out(&lease)
        except BaseException:
            self.put_back(&lease)
            raise
        self.leave(&lease, taken == 2)
        return self.decoded(copied)

    cdef object get_many(self, uint64_t limit, int64_t deadline):
        cdef list found = self.get_one_by_one(limit, deadline)
        if not found:
            return NOTHING
        if self.form == RECORD:
            return numpy.array(found, dtype=self.dtype if self.dtype.subdtype is None else self.dtype.base)
        return found

    cdef object evict_surplus(self):
        """The oldest item while more slots are out than the capacity allows, else NOTHING."""
        cdef Lease lease
        cdef object copied
        cdef SlotOutcome outcome = self.slots.try_evict_surplus(self._me(), lease)
        if outcome == SlotOutcome.corrupt:
            self._raise_corrupt()
        if outcome != SlotOutcome.done:
            return NOTHING
        try:
            copied = self.copy_out(&lease)
        except BaseException:
            self.put_back(&lease)
            raise
        self.leave(&lease, False)
        return self.as_evicted(copied)

    cdef object as_evicted(self, object copied):
        """Who evicts has done what it came for: an item that cannot be unpickled is its error, and raises none."""
        try:
            return self.decoded(copied)
        except Exception as error:
            return error

    # -- waiting ----------------------------------------------------------------------------------------

    cdef bint _go_on(self, SlotOutcome outcome, bint for_items, int64_t deadline) except -1:
        """After a try that did not succeed: True to try again, False when the time is up."""
        cdef bint is_closed = self.slots.closed() != 0
        if outcome == SlotOutcome.corrupt or is_broken(self.guard):
            self._raise_corrupt()
        if outcome == SlotOutcome.closed:
            self.raise_shut_down()
        if self.queue.recover_if_due(self._me(), for_items and is_closed):
            return True
        if for_items and is_closed and self.queue.is_drained():
            self.raise_shut_down()
        return self._wait(for_items, deadline)

    cdef bint _wait(self, bint for_items, int64_t deadline) except -1:
        cdef int64_t left
        cdef timespec moment
        if deadline == AT_ONCE:
            return False
        left = remaining_ns(deadline)
        if left <= 0:
            return False
        with nogil:
            if self.slots.closed() != 0:  # somebody publishes just now, or is stopped while it does
                moment.tv_sec = 0
                moment.tv_nsec = 200_000
                nanosleep(&moment, NULL)
            elif for_items:
                self.queue.wait_for_items(left)
            else:
                self.queue.wait_for_room(left)
        PyErr_CheckSignals()
        self.check_open()
        return True

    cdef int wait(self, bint for_items, uint64_t slots, int64_t deadline) except -1:
        cdef int64_t left = remaining_ns(deadline)
        with nogil:
            if for_items:
                self.queue.wait_for_items(left)
            else:
                self.queue.wait_for_room(left)
        return self.check_open()

    # -- the rest ---------------------------------------------------------------------------------------

    cdef object size(self):
        return self.queue.size()

    cdef int end(self, bint immediate) except -1:
        self.queue.shut_down(immediate)
        return 0

    cdef void wake_everybody(self) noexcept:
        self.queue.wake_everybody()
