# Put and get of one kind of ring queue, compiled for each: the including module says what NativeQueue is. Calls of its
# methods are direct, since it is final; a virtual call for each step cost a tenth to a fifth of a put and a get.

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t

from queueduct.core._queue cimport TIMED_OUT
from queueduct.items._batches cimport Gathered
from queueduct.items._buffers cimport Held, as_records, borrow, scalar_of
from queueduct.items._item_kinds cimport BYTES, LONG_COPY, OBJECT, RECORD
from queueduct.native._native cimport (
    Span, array_data, import_array, is_broken, item_bytes_limit, run_without_gil,
)
from queueduct.rings._objects cimport get_object, get_objects

import numpy

from queueduct.items import types as items

import_array()

cdef object encode_object = items.encode_object

cdef enum:
    BATCH_LIMIT = 4096   # items of varying length that one claim takes


cdef class KindBackend(RingBackend):

    @cython.final
    cdef inline NativeQueue* native(self) noexcept nogil:
        return <NativeQueue*>self.queue

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

    @cython.final
    cdef int _put_bytes(self, const void* data, uint64_t length, int64_t deadline) except -1:
        cdef Participant ledger
        cdef Outcome outcome
        cdef bint waited = False
        if length > self.slot_bytes or length > item_bytes_limit:
            self.check_length(length)
        if not self.native().find_participant(ledger):
            self.find_participant(&ledger)
        while True:
            if length < LONG_COPY:
                outcome = self.native().put_bytes(ledger, data, length, run_without_gil)
            else:
                with nogil:
                    outcome = self.native().put_bytes(ledger, data, length, run_without_gil)
            if outcome == Outcome.done:
                self._end_put(waited)
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

    @cython.final
    cdef object _put_batch(
        self, const Buffer* buffers, const char* records, uint64_t count, uint64_t in_all, int64_t deadline
    ):
        """Items that vary in length, or records: as many as are in when the time is up."""
        cdef Participant ledger
        cdef Outcome outcome
        cdef uint64_t total = 0
        cdef uint64_t put = 0
        cdef bint waited = False
        if not self.native().find_participant(ledger):
            self.find_participant(&ledger)
        while total < count:
            if in_all < LONG_COPY:
                outcome = self._put_some(ledger, buffers, records, total, count, &put)
            else:
                with nogil:
                    outcome = self._put_some(ledger, buffers, records, total, count, &put)
            if outcome == Outcome.done:
                total += put
                self._end_put(waited)
            elif not self._go_on_putting(
                outcome, total, 1 if buffers is NULL else self.slots_of(buffers[total].bytes), deadline, &ledger
            ):
                break
            else:
                waited = True
        return total

    @cython.final
    cdef Outcome _put_some(
        self, Participant ledger, const Buffer* buffers, const char* records, uint64_t done, uint64_t count,
        uint64_t* put
    ) noexcept nogil:
        cdef Span span
        cdef Outcome outcome
        if buffers is not NULL:
            return self.native().put_buffers(ledger, buffers + done, count - done, put[0], run_without_gil)
        records += done * self.slot_bytes
        outcome = self.native().put_records(ledger, records, count - done, span, run_without_gil)
        put[0] = span.slots
        return outcome

    @cython.final
    cdef inline int _end_put(self, bint waited) except -1:
        if is_broken(self.guard):
            self.raise_corrupt()
        self.native().after_put(waited)
        return 0

    cdef object get(self, int64_t deadline):
        cdef object item
        if self.item_kind == OBJECT:
            return get_object(self, deadline)
        item = self._get_bytes(deadline)
        return item if self.item_kind == BYTES or item is TIMED_OUT else scalar_of(item)

    @cython.final
    cdef object _get_bytes(self, int64_t deadline):
        cdef Participant ledger
        cdef Outcome outcome
        cdef Item item
        cdef Target target
        cdef object found
        if not self.native().find_participant(ledger):
            self.find_participant(&ledger)
        while True:
            outcome = self.native().find(ledger, item, run_without_gil)
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
        if not self.native().find_participant(ledger):
            self.find_participant(&ledger)
        if self.item_kind == BYTES:
            limit = min(limit, BATCH_LIMIT)
            targets = <Target*>PyMem_Malloc(limit * sizeof(Target))
            if targets is NULL:
                raise MemoryError()
        try:
            while True:
                outcome = self.native().find(ledger, item, run_without_gil)
                if outcome == Outcome.done:
                    count = self.native().widen(ledger, item, limit, targets)
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

    @cython.final
    cdef inline object _room_for(self, const Item& item, Target* target):
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

    @cython.final
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

    @cython.final
    cdef inline bint _take(self, Participant ledger, Item& item, const Target* targets, uint64_t count) except -1:
        cdef bint is_taken
        if item.is_redelivered:
            self.check_open()
        if item.bytes < LONG_COPY:
            is_taken = self.native().take(ledger, item, targets, count)
        else:
            with nogil:
                is_taken = self.native().take(ledger, item, targets, count)
        if is_broken(self.guard):
            self.raise_corrupt()
        return is_taken
