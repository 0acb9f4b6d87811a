# cython: language_level=3, binding=False, freethreading_compatible=True
"""The writing side of an event queue: append, wait for room, write to the disk. The algorithm is in native/events."""

import os

from cpython.exc cimport PyErr_CheckSignals
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t

from queueduct.core._backend cimport lend
from queueduct.core._queue cimport AT_ONCE, FOREVER, checked_int, remaining_ns
from queueduct.events._native cimport *
from queueduct.items._buffers cimport Gathered, as_records, listed
from queueduct.items._item_kinds cimport LONG_COPY, RECORD, REFERENCE
from queueduct.native._native cimport array_data, count_each, drop_each, is_broken, monotonic_ns, references_of

from queueduct.errors import DataLost

cdef extern from "<unistd.h>" nogil:
    int usleep(unsigned int)

cdef enum:
    SETTLE_POLL_US = 1000       # how often to check whether another process has settled the boot
    SYNC_PAUSE_NS = 20000000    # between two syncs on demand


cdef class EventsBackend(LogBackend):

    # -- put --------------------------------------------------------------------------------------------

    cdef int put(self, object item, int64_t deadline) except -1:
        cdef Buffer one
        cdef PyObject* reference
        cdef object lent
        if self.item_kind == REFERENCE:
            reference = <PyObject*>item
            return self.append(&reference, NULL, 1, sizeof(void*), deadline, NULL) == 1
        lent = lend(self, item, &one)
        if self.item_kind == RECORD:
            return self.append(one.data, NULL, 1, one.bytes, deadline, NULL) == 1
        self.check_length(one.bytes)
        return self.append(NULL, &one, 1, one.bytes, deadline, NULL) == 1

    cdef object put_many(self, object given, int64_t deadline):
        """Returns how many items are in, or None if there was no room for any."""
        cdef Gathered batch
        cdef uint64_t total
        cdef object held
        self.check_open()
        if self.item_kind == REFERENCE:
            held = tuple(listed(given))
            if not held:
                return 0
            total = self.append(references_of(held), NULL, len(held), len(held) * sizeof(void*), deadline, NULL)
        elif self.item_kind == RECORD:
            held = as_records(self.dtype, given, one=False)
            if held.nbytes == 0:
                return 0
            total = self.append(
                array_data(held), NULL, <uint64_t>held.nbytes // self.map.item_bytes, held.nbytes, deadline, NULL
            )
        else:
            batch = self.gather(given)
            if batch.count == 0:
                return 0
            total = self.append(NULL, batch.buffers, batch.count, batch.in_all, deadline, NULL)
        return None if total == 0 else total

    cdef int check_length(self, uint64_t length) except -1:
        cdef uint64_t needed = self.log.chunk_bytes(self.map.first_items, length)
        cdef uint64_t limit = min(self.map.max_bytes, block_bytes_limit)
        if needed > limit:
            raise ValueError(
                f"an item of {length} bytes can never fit into {self.told}: a chunk for it has {needed} bytes, "
                f"the limit is {limit}; create the queue with a larger max_bytes"
            )
        return 0

    cdef uint64_t append(
        self, const void* records, const Buffer* items, uint64_t count, uint64_t in_all, int64_t deadline,
        ProducerLine* once,
    ) except? 0xFFFFFFFFFFFFFFFF:
        """Appends records or items. Returns how many are in. Raises only if none is."""
        cdef uint64_t total = 0
        cdef uint64_t put = 0
        cdef uint32_t ticket = 0
        cdef bint is_announced = False
        cdef bint waited = False
        cdef Appended outcome = Appended.done
        cdef int error = 0
        cdef uint32_t generation = self.queue.participant_table().generation()
        if self.item_kind == REFERENCE:
            count_each(<void**>records, count)
        try:
            while total < count:
                if not self.enter(deadline):
                    break
                if once is not NULL and generation != self.queue.participant_table().generation():
                    self.leave()
                    break  # a signal handler has forked, and this is the child: the parent goes on with its put_once
                if (in_all < LONG_COPY and once is NULL) or self.item_kind == REFERENCE:  # a put_once may sync
                    outcome = self._append_locked(records, items, total, count, once, &put)
                else:
                    with nogil:
                        outcome = self._append_locked(records, items, total, count, once, &put)
                error = self.queue.error()
                if outcome != Appended.done:
                    self.leave()
                else:
                    self.leave_after_put(put, self._bytes_of(items, total, put))
                    total += put
                    is_announced = False
                    self.after_put()
                    continue
                if total > 0 and (outcome == Appended.closed or outcome == Appended.no_memory):
                    break
                if not self.wait_for_room(outcome, error, not is_announced, deadline, &ticket, not waited):
                    break
                waited = waited or is_announced  # the first call of two only announces
                is_announced = not is_announced
        finally:
            if self.item_kind == REFERENCE:
                drop_each(<void**>records + total, count - total)
        return total

    cdef uint64_t _bytes_of(self, const Buffer* items, uint64_t begin, uint64_t count) noexcept:
        """Returns how many bytes so many items have; ``items`` is NULL for records."""
        cdef uint64_t length = 0
        cdef uint64_t i
        if items is NULL:
            return count * self.map.item_bytes
        for i in range(begin, begin + count):
            length += items[i].bytes
        return length

    cdef Appended _append_locked(
        self, const void* records, const Buffer* items, uint64_t total, uint64_t count, ProducerLine* once,
        uint64_t* put,
    ) noexcept nogil:
        cdef const char* data
        if items is NULL:
            data = <const char*>records + total * self.map.item_bytes
            return self.queue.append_records(data, count - total, put[0], once)
        return self.queue.append_bytes(items + total, count - total, put[0], once)

    cdef int after_put(self) except -1:
        if is_broken(self.guard):
            self.raise_corrupt()
        self.queue.items().notify()
        return self.write_to_disk() if self.syncs_always else 0

    cdef int write_to_disk(self) except -1:
        cdef int error
        cdef uint64_t failures = self.queue.failures()
        if failures != 0:  # the kernel may take pages for clean that never reached the disk
            self.enter(FOREVER)
            with nogil:
                write_again(self.map[0])
            self.leave()
        with nogil:
            error = self.queue.sync(failures)
        if error != 0:
            self.check_open()
            self.raise_not_written(error)
        return 0

    cdef int raise_not_written(self, int error) except -1:
        raise OSError(
            error, f"the queue {self.label} could not be written to its disk: {os.strerror(error)}; everything up to "
            f"position {self.map.control.confirmed.load()} is there, and the rest is written when the disk takes it "
            "again"
        )

    cdef bint wait_for_room(
        self, Appended outcome, int error, bint is_first, int64_t deadline, uint32_t* ticket, bint is_first_wait
    ) except -1:
        """Waits after a failed append. Returns true to try again, false if the time is up."""
        cdef int64_t left, began
        if outcome == Appended.closed:
            self.raise_shut_down()
        if outcome == Appended.corrupt or is_broken(self.guard):
            self.raise_corrupt()
        if outcome == Appended.no_disk:
            self.queue.items().notify()  # items of a put_once may be in, though they are not counted
            self.raise_not_written(error)
        if outcome == Appended.no_memory:
            self.check_open()
            self.raise_if_cut()
            raise OSError(
                error, f"no memory for another chunk of {self.told}: {os.strerror(error)}; "
                "nothing of this item was put. Free some, or let readers go on"
            )
        if deadline == AT_ONCE or self.raises_when_full:
            return False
        if is_first:
            ticket[0] = self.queue.room().announce()  # try again before the sleep
            return True
        left = remaining_ns(deadline)
        if left <= 0:
            return False
        began = monotonic_ns()
        with nogil:
            self.queue.wait_for_room(ticket[0], left)
        self.note_wait(False, is_first_wait, began)
        PyErr_CheckSignals()
        self.check_open()
        return True

    # -- crashes of the machine: what is left of a log, and what outlives the next one ------------------

    cdef int settle_boot(self) except -1:
        """Called first. After a crash of the machine it cuts the log to the items that were synced."""
        cdef Settling settling = self.queue.begin_settling()
        cdef bint is_settled = False
        while settling == Settling.busy:
            with nogil:
                usleep(SETTLE_POLL_US)
            PyErr_CheckSignals()
            settling = self.queue.begin_settling()
        if settling == Settling.done:
            return 0
        try:
            if self.queue.must_settle():
                self._settle_under_lock()
            is_settled = True
        finally:
            self.queue.end_settling(is_settled)
        return 0

    cdef int _settle_under_lock(self) except -1:
        cdef bint is_settled
        cdef int error
        self.enter(FOREVER)
        with nogil:
            is_settled = self.queue.settle_boot()
        error = self.queue.boot_error()
        self.leave()
        if error != 0:
            raise OSError(
                error, f"the queue {self.label} was cut back after a crash of the machine, and its disk did not take "
                f"that: {os.strerror(error)}; it is cut when it can be written"
            )
        if not is_settled:
            self.raise_corrupt()
        return 0

    cdef int check_epoch(self, uint64_t position, object epoch) except -1:
        """Raises DataLost if a position noted in that epoch belongs to another item now. None is the current epoch."""
        cdef uint64_t now = self.queue.epoch()
        cdef uint64_t until
        if epoch is None:
            return 0
        noted = checked_int("epoch", epoch)
        if not 0 <= noted <= now:
            raise ValueError(f"epoch must be between 0 and that of {self.told}, {now}: epoch={epoch}")
        until = valid_until(self.map.control[0], noted)
        if position > until:
            raise DataLost(
                f"the machine went down since, and {self.told} was cut back to what was on its disk: position "
                f"{position} was noted in epoch {noted}, the log was cut at {until}, and is in epoch {now} now; what "
                "lay beyond is lost, and its positions belong to other items; go on from the cut",
                position, until,
            )
        return 0

    cdef uint64_t durable_end(self, bint sync) except? 0xFFFFFFFFFFFFFFFF:
        cdef EventsWord end = end_word(self.map)
        cdef int64_t now
        if not self.is_on_disk:
            return end.position()
        now = monotonic_ns()
        if sync and self.map.control.confirmed.load() < end.position() and now - self.synced_ns >= SYNC_PAUSE_NS:
            self.synced_ns = now
            self.write_to_disk()
        return min(end.position(), <uint64_t>self.map.control.confirmed.load())

    # -- sync, size and shutdown ------------------------------------------------------------------------

    def sync_if_needed(self):
        """Writes new items to the disk. Returns false if the handle is closed."""
        if self.is_closing:
            return False
        if self.is_on_disk and not self.is_read_only:
            if end_word(self.map).position() > self.map.control.confirmed.load():
                self.write_to_disk()
        return True

    cdef object resident_bytes(self):
        if self.item_kind == REFERENCE:
            return self.map.control.used_bytes.load() + self.map.control.spare_bytes.load()
        return LogBackend.resident_bytes(self)

    cdef void sleep(self, bint for_items, uint64_t slots, int64_t limit_ns) noexcept nogil:
        if not for_items:
            self.queue.wait_for_room(self.queue.room().announce(), limit_ns)

    cdef object get(self, int64_t deadline):
        raise TypeError(f"an event queue is read through a reader: subscribe() to {self.told} first")

    cdef object get_many(self, uint64_t limit, int64_t deadline):
        raise TypeError(f"an event queue is read through a reader: subscribe() to {self.told} first")

    cdef object size(self):
        cdef uint64_t earliest = earliest_position(self.map[0])  # first: the end is never before it
        return end_word(self.map).position() - earliest

    cdef int shut_down(self, bint immediate) except -1:
        self.enter(FOREVER)
        self.log.shut_down()
        if immediate:
            with nogil:  # on a disk it may sync
                self.queue.keep_last(0)
        self.leave()
        self.wake_everybody()
        return 0

    cdef void wake_everybody(self) noexcept:
        self.queue.items().wake_all()
        self.queue.room().wake_all()
