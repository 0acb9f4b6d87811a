# cython: language_level=3, binding=False, freethreading_compatible=True
"""The writing side of an event queue: lock, append, wait for room. The algorithm is in native/.

Within a process the log carries references, and whatever it lets go is dropped after the lock: a finalizer may
do anything, even put into the same queue.
"""

import os

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t

from penstock._batches cimport Gathered, gather
from penstock._buffers cimport Held, as_records, borrow
from penstock._events_native cimport *
from penstock._kinds cimport LONG_COPY, OBJECT, RECORD, REFERENCE
from penstock._mapped cimport own_identity
from penstock._native cimport (
    PyTypeObject, array_data, count_each, drop_each, is_broken, references_of, traverseproc, visitproc, watch,
)
from penstock._queue cimport AT_ONCE, NOTHING, remaining_ns

from penstock import items
from penstock.errors import CorruptSegment, Full, TooManyParticipants

cdef enum:
    BRIEFLY_NS = 100000000  # what even a call that never waits grants the holder of the lock

cdef object encode_object = items.encode_object


cdef extern from "_references.hpp" namespace "penstock":
    int visit_events(const EventsMap&, visitproc, void*) noexcept
    void collect_events(const EventsMap&, vector[void*]&) noexcept


cdef void keep_for_later(void* context, void** references, uint64_t count) noexcept nogil:
    cdef vector[void*]* forgotten = <vector[void*]*>context
    cdef uint64_t i
    for i in range(count):
        forgotten.push_back(references[i])


cdef class EventsBody(MappedBody):

    def __cinit__(self, geometry, offsets, memory, item, *, lock_fd, label, on_disk):
        cdef EventsOffsets at
        cdef EventsMap shape
        cdef Held mapped
        self.memory = memory
        self.label = label
        mapped = Held(memory)
        at.control = offsets["control_offset"]
        at.participants = offsets["participants_offset"]
        at.readers = offsets["readers_offset"]
        at.producers = offsets["producers_offset"]
        at.chunks = offsets["chunks_offset"]
        at.blocks = offsets["blocks_offset"]
        at.arena = self.arena_offset = offsets["arena_offset"]
        shape.block_count = geometry.block_count
        shape.block_bytes = geometry.block_bytes
        shape.chunk_lines = geometry.chunk_lines
        shape.max_bytes = geometry.max_bytes
        shape.first_items = geometry.first_items
        shape.item_bytes = geometry.item_bytes
        shape.reader_lines = geometry.readers
        shape.varies = item is not None and item.varies
        shape.may_drop = geometry.on_full == 3
        self.form = REFERENCE if item is None else item.kind
        self.dtype = None if item is None else item.dtype
        self.participants = geometry.participants
        self.raises_when_full = geometry.on_full == 2
        self.is_on_disk = on_disk
        self.is_durable = on_disk and geometry.sync != 3
        self.syncs_always = on_disk and geometry.sync == 1
        self.guard = watch(mapped.view.buf, mapped.view.len) if item is not None else NULL
        self.queue = new EventsQueue(
            <byte*>mapped.view.buf, at, shape, geometry.participants, geometry.producers, lock_fd,
            own_identity(), self.is_durable,
        )
        self.log = &self.queue.log()
        self.map = &self.log.map()
        if item is None:
            self.log.on_forget(keep_for_later, &self.forgotten)

    def __dealloc__(self):
        if self.queue is not NULL and self.form == REFERENCE:
            collect_events(self.map[0], self.forgotten)
            drop_each(self.forgotten.data(), self.forgotten.size())
        del self.queue

    cdef int raise_corrupt(self) except -1:
        self.raise_if_truncated()
        raise CorruptSegment(
            f"the chunks of {self.label} contradict each other: end={self.map.control.end.load():#x}, "
            f"head_chunk={self.map.control.head_chunk.load()}, chunks_made={self.map.control.chunks_made.load()}; "
            "recreate the queue"
        )

    cdef int check_found(self, Found found) except -1:
        if found == Found.corrupt or is_broken(self.guard):
            self.raise_corrupt()
        return 0

    cdef int check_count(self, uint64_t records) except -1:
        """Before memory for them is asked for: can so many be there?"""
        if records > self.map.block_count * self.map.block_bytes // self.map.item_bytes:
            self.raise_corrupt()
        return 0

    # -- the lock ---------------------------------------------------------------------------------------

    cdef uint32_t line(self) except? 0xFFFFFFFF:
        """This thread's line in the participant table; a thread joins when it first needs the lock."""
        cdef uint32_t line = 0
        cdef Joined joined
        if self.queue.find_line(line):
            return line
        joined = self.queue.join()
        if joined == Joined.yes and self.queue.find_line(line):
            return line
        self.raise_not_joined(joined)

    cdef int enter(self, int64_t deadline) except -1:
        """1: this thread has the lock, and leaves before anything can raise. 0: the time is up."""
        cdef uint32_t line
        cdef Entered entered
        cdef int64_t left = 0
        self.check_open()
        line = self.line()
        entered = self.queue.try_enter(line)
        while entered == Entered.no:
            left = BRIEFLY_NS if deadline == AT_ONCE else remaining_ns(deadline)
            if left <= 0:
                return 0
            with nogil:
                entered = self.queue.enter(line, min(left, <int64_t>BRIEFLY_NS))
            if entered != Entered.no:
                break
            PyErr_CheckSignals()
            self.check_open()
            if deadline == AT_ONCE:
                return 0
            line = self.line()
        if entered == Entered.corrupt:
            self.raise_corrupt()
        return 1

    cdef int leave(self) except -1:
        cdef vector[void*] forgotten
        self.queue.leave()
        if not self.forgotten.empty():
            forgotten.swap(self.forgotten)
            drop_each(forgotten.data(), forgotten.size())
        return 0

    cdef void abandon_reader(self, uint32_t number) noexcept:
        """Without waiting: where the lock cannot be had, whoever needs room next sees that nobody holds the line."""
        cdef uint32_t line = 0
        if self.queue.find_line(line) and not self.queue.is_within(line) and \
                self.queue.try_enter(line) == Entered.yes:
            self.queue.leave_reader(number)
            self.leave()
        else:
            self.queue.abandon_reader(number)

    def release_readers(self):
        """At the end of the handle: all that it holds can be held by others."""
        cdef bint is_entered = False
        cdef uint32_t i
        cdef bint is_any = False
        for i in range(self.map.reader_lines):
            is_any |= self.queue.roster().holds(reader_lock_number(i))
        if not is_any:
            return
        try:
            is_entered = self.enter(AT_ONCE)
        except (CorruptSegment, TooManyParticipants):
            pass
        for i in range(self.map.reader_lines):
            if not self.queue.roster().holds(reader_lock_number(i)):
                continue
            if is_entered:
                self.queue.leave_reader(i)
            else:
                self.queue.abandon_reader(i)
        if is_entered:
            self.leave()

    # -- put --------------------------------------------------------------------------------------------

    cdef int put(self, object item, int64_t deadline) except -1:
        cdef Held lent
        cdef Buffer one
        cdef PyObject* reference
        if self.form == REFERENCE:
            reference = <PyObject*>item
            return self.append(&reference, NULL, 1, sizeof(void*), deadline, NULL) == 1
        if self.form == RECORD:
            item = as_records(self.dtype, item, one=True)
            return self.append(array_data(item), NULL, 1, self.map.item_bytes, deadline, NULL) == 1
        if self.form == OBJECT:
            item = encode_object(item)
        if type(item) is bytes:
            one.data = PyBytes_AS_STRING(item)
            one.bytes = PyBytes_GET_SIZE(item)
        else:
            lent = borrow(item)
            one.data = lent.view.buf
            one.bytes = lent.view.len
        self.check_length(one.bytes)
        return self.append(NULL, &one, 1, one.bytes, deadline, NULL) == 1

    cdef object put_many(self, object given, int64_t deadline):
        cdef Gathered batch
        cdef uint64_t total
        cdef object held
        self.check_open()
        if self.form == REFERENCE:
            held = tuple(given)
            if not held:
                return 0
            total = self.append(references_of(held), NULL, len(held), len(held) * sizeof(void*), deadline, NULL)
        elif self.form == RECORD:
            held = as_records(self.dtype, given, one=False)
            if held.nbytes == 0:
                return 0
            total = self.append(
                array_data(held), NULL, <uint64_t>held.nbytes // self.map.item_bytes, held.nbytes, deadline, NULL
            )
        else:
            batch = gather([encode_object(item) for item in given] if self.form == OBJECT else given)
            if batch.count == 0:
                return 0
            self.check_length(batch.longest)
            total = self.append(NULL, batch.buffers, batch.count, batch.in_all, deadline, NULL)
        if total == 0:
            raise Full
        return total

    cdef int check_length(self, uint64_t length) except -1:
        cdef uint64_t needed = self.log.chunk_bytes(self.map.first_items, length)
        cdef uint64_t limit = min(self.map.max_bytes, block_bytes_limit)
        if needed > limit:
            raise ValueError(
                f"an item of {length} bytes can never fit into {self.label}: a chunk for it has {needed} bytes, "
                f"the limit is {limit}; create the queue with a larger max_bytes"
            )
        return 0

    cdef uint64_t append(
        self, const void* records, const Buffer* items, uint64_t count, uint64_t in_all, int64_t deadline,
        ProducerLine* once,
    ) except? 0xFFFFFFFFFFFFFFFF:
        """How many are in, of records or of items. Raises only if none is."""
        cdef uint64_t total = 0
        cdef uint64_t put = 0
        cdef uint32_t ticket = 0
        cdef bint is_announced = False
        cdef Appended outcome = Appended.done
        if self.form == REFERENCE:
            count_each(<void**>records, count)
        try:
            while total < count:
                if not self.enter(deadline):
                    break
                if in_all < LONG_COPY or self.form == REFERENCE:
                    outcome = self._append_locked(records, items, total, count, once, &put)
                else:
                    with nogil:
                        outcome = self._append_locked(records, items, total, count, once, &put)
                self.leave()
                if outcome == Appended.done:
                    total += put
                    is_announced = False
                    self.after_put()
                elif total > 0 and (outcome == Appended.closed or outcome == Appended.no_memory):
                    break
                elif not self.wait_for_room(outcome, not is_announced, deadline, &ticket):
                    break
                else:
                    is_announced = not is_announced
        finally:
            if self.form == REFERENCE:
                drop_each(<void**>records + total, count - total)
        return total

    cdef Appended _append_locked(
        self, const void* records, const Buffer* items, uint64_t total, uint64_t count, ProducerLine* once,
        uint64_t* put,
    ) noexcept nogil:
        cdef const char* data
        if items is NULL:
            data = <const char*>records + total * self.map.item_bytes
            if once is NULL:
                return self.queue.append_records(data, count - total, put[0])
            return self.queue.append_records_once(once, data, count - total, put[0])
        if once is NULL:
            return self.queue.append_bytes(items + total, count - total, put[0])
        return self.queue.append_bytes_once(once, items + total, count - total, put[0])

    cdef int after_put(self) except -1:
        if is_broken(self.guard):
            self.raise_corrupt()
        self.queue.items().notify()
        return self.write_to_disk() if self.syncs_always else 0

    cdef int write_to_disk(self) except -1:
        cdef int error
        with nogil:
            error = self.queue.sync()
        if error != 0:
            raise OSError(error, f"the queue {self.label} could not be written to its disk: {os.strerror(error)}")
        return 0

    cdef bint wait_for_room(self, Appended outcome, bint is_first, int64_t deadline, uint32_t* ticket) except -1:
        """After an append that did not succeed: True to try again, False when the time is up."""
        cdef int64_t left
        if outcome == Appended.closed:
            self.raise_shut_down()
        if outcome == Appended.corrupt or is_broken(self.guard):
            self.raise_corrupt()
        if outcome == Appended.no_memory:
            error = self.log.error()
            raise OSError(
                error, f"no memory for another chunk of {self.label}: {os.strerror(error)}; "
                "nothing of this item was put. Free some, or let readers go on"
            )
        if deadline == AT_ONCE or self.raises_when_full:
            return False
        if is_first:
            ticket[0] = self.queue.room().announce()  # then look again, then sleep
            return True
        left = remaining_ns(deadline)
        if left <= 0:
            return False
        with nogil:
            self.queue.wait_for_room(ticket[0], left)
        PyErr_CheckSignals()
        self.check_open()
        return True

    # -- the rest ---------------------------------------------------------------------------------------

    def sync_if_needed(self):
        """Write what is new to the disk. False: the handle is closed."""
        cdef EventsWord end
        if self.is_closing:
            return False
        end.word = self.map.control.end.load()
        if self.is_on_disk and end.position() > self.map.control.synced.load():
            self.write_to_disk()
        return True

    def resident_bytes(self):
        """What the queue takes of memory or disk, as the kernel counts it."""
        if self.form == REFERENCE:
            return self.map.control.used_bytes.load() + self.map.control.spare_bytes.load()
        return os.fstat(self.queue.roster().descriptor()).st_blocks * 512

    cdef int wait(self, bint for_items, uint64_t slots, int64_t deadline) except -1:
        cdef int64_t left = remaining_ns(deadline)
        cdef uint32_t ticket
        if not for_items:
            ticket = self.queue.room().announce()
            with nogil:
                self.queue.wait_for_room(ticket, left)
        return self.check_open()

    cdef object get(self, int64_t deadline):
        raise TypeError(f"an event queue is read through a reader: subscribe() to {self.label} first")

    cdef object get_many(self, uint64_t limit, int64_t deadline):
        raise TypeError(f"an event queue is read through a reader: subscribe() to {self.label} first")

    cdef object size(self):
        cdef EventsWord end
        end.word = self.map.control.end.load()
        return end.position() - earliest_position(self.map[0])

    cdef int end(self, bint immediate) except -1:
        self.enter(0x7FFFFFFFFFFFFFFF)
        self.log.shut_down()
        if immediate:
            self.queue.keep_last(0)
        self.leave()
        self.wake_everybody()
        return 0

    cdef void wake_everybody(self) noexcept:
        self.queue.items().wake_all()
        self.queue.room().wake_all()


# For the cycle collector: what the log holds is reachable from the queue.

cdef int traverse(PyObject* body, visitproc visit, void* arg) noexcept:
    cdef EventsBody self = <EventsBody>body
    cdef int stop = original_traverse(body, visit, arg) if original_traverse is not NULL else 0
    if stop or self.queue is NULL or self.form != REFERENCE:
        return stop
    return visit_events(self.map[0], visit, arg)


cdef int clear(PyObject* body) noexcept:
    """Only what the log holds can be part of a cycle. The memory stays: readers, and our own end, still need it."""
    cdef EventsBody self = <EventsBody>body
    cdef vector[void*] forgotten
    if self.queue is not NULL and self.form == REFERENCE:
        collect_events(self.map[0], forgotten)
        drop_each(forgotten.data(), forgotten.size())
    return 0


cdef traverseproc original_traverse = (<PyTypeObject*>EventsBody).tp_traverse
(<PyTypeObject*>EventsBody).tp_traverse = traverse
(<PyTypeObject*>EventsBody).tp_clear = clear
