# Put and get of one kind of ring queue, in shared memory and within a process, compiled for each kind. The including
# module defines NativeQueue, NativeReferences, new_references() and used_slots(). Calls of their methods are direct,
# since they are final: a virtual call for each step made a put and a get 10 to 20 % slower.

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals
from cpython.list cimport PyList_New
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.stdint cimport int64_t, uint32_t
from libcpp.vector cimport vector

from queueduct.core._queue cimport AT_ONCE, TIMED_OUT, remaining_ns
from queueduct.items._buffers cimport Gathered, Held, as_records, borrow, listed, scalar_of
from queueduct.items._item_kinds cimport BYTES, LONG_COPY, OBJECT, RECORD
from queueduct.native._native cimport (
    PyTypeObject, Span, array_data, count_each, drop_each, drop_held, has_gil, import_array, inquiry, is_broken,
    item_bytes_limit, notify_local, owned, park_limit_ns, pause_between_attempts, references_of, run_without_gil,
    traverseproc, visitproc,
)
from queueduct.rings.shared._native cimport LocalFound, visit_references
from queueduct.rings.shared._objects cimport get_object, get_objects, raise_no_task, wait_for_tasks

import numpy

from queueduct.errors import QueueFull, ShutDown
from queueduct.items import types as items

import_array()

cdef object encode_object = items.encode_object

cdef enum:
    BATCH_LIMIT = 4096   # items of varying length that one claim takes at most

cdef str FULL_HERE = (
    "the queue {queue} is full: {size:,} of {capacity:,} slots{waited}; get items, or make it with a larger capacity"
)


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
            if not self.wait_for_room(outcome, self.slots_of(length), deadline, &ledger, not waited):
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
        """Puts items that vary in length, or records. Returns how many are in when the time is up; None if none is."""
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
                outcome, total, 1 if buffers is NULL else self.slots_of(buffers[total].bytes), deadline, &ledger,
                not waited,
            ):
                return None if total == 0 else total
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
            elif self.go_on_getting(outcome, deadline, &ledger, not item.has_waited):
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
                elif self.go_on_getting(outcome, deadline, &ledger, not item.has_waited):
                    item.has_waited = True
                else:
                    return TIMED_OUT
        finally:
            if targets is not &one:
                PyMem_Free(targets)

    @cython.final
    cdef inline object _room_for(self, const Item& item, Target* target):
        """Allocates the memory for one item before the item is claimed, so that a MemoryError loses nothing."""
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
        """The same for several items. Memory of a claim that failed is kept in `spare` for the next."""
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


@cython.final
cdef class LocalBackend(Backend):

    def __cinit__(self, capacity):
        self.queue = new_references(capacity)
        if self.queue is NULL:
            raise MemoryError(f"no memory for a queue of capacity={capacity}")

    def __dealloc__(self):
        if self.queue is not NULL:
            self._drop_references()
        del self.queue

    cdef uint64_t _drop_references(self) noexcept:
        """Drops the references in the queue, and returns how many. No other thread gets from it any more."""
        cdef void* reference = NULL
        cdef vector[void*] held
        while self.queue.try_drain(reference):
            held.push_back(reference)
        drop_held(held.data(), held.size())
        return held.size()

    cdef int put(self, object item, int64_t deadline) except -1:
        cdef Outcome outcome
        cdef bint waited = False
        if self.is_closing:  # an argument's own code may have forked, or closed the handle
            self.check_open()
        while True:
            Py_INCREF(item)  # before it is published: a consumer may drop it at once
            outcome = self.queue.put(<PyObject*>item)
            if outcome == Outcome.done:
                self._after_put(waited)
                return 1
            Py_DECREF(item)
            if not self._wait_for_room(outcome, deadline):
                return 0
            waited = True

    cdef object put_many(self, object given, int64_t deadline):
        cdef Outcome outcome
        # A list is read again after each wait. With a GIL no other thread changes it meanwhile; without one, a slice of
        # it is copied in one step.
        cdef object items = listed(given)
        cdef object part
        cdef uint64_t done
        cdef uint64_t most = self.queue.claim_limit()
        cdef void** references
        cdef uint64_t total = 0
        cdef uint64_t put = 0
        cdef uint64_t wanted
        cdef bint waited = False
        self.check_open()
        while total < <uint64_t>len(items):
            part = items if has_gil else items[total:total + most]
            done = total if has_gil else 0
            references = references_of(part) + done
            wanted = min(<uint64_t>len(part) - done, most)
            if not has_gil and wanted == 0:  # another thread has shortened it
                break
            count_each(references, wanted)
            outcome = self.queue.put_many(references, wanted, put)
            drop_each(references + put, wanted - put)
            if outcome == Outcome.done:
                total += put
                self._after_put(waited)
            elif total > 0 and outcome == Outcome.closed:
                break
            elif not self._wait_for_room(outcome, deadline):
                return None if total == 0 else total
            else:
                waited = True
        return total

    cdef inline void _after_put(self, bint waited) noexcept:
        notify_local(self.queue.items())
        if waited and self.queue.may_be_puttable():
            notify_local(self.queue.room())

    cdef object get(self, int64_t deadline):
        cdef Outcome outcome
        cdef void* reference = NULL
        cdef bint waited = False
        if self.is_closing:
            self.check_open()
        while True:
            outcome = self.queue.get(reference)
            if outcome == Outcome.done:
                self._after_get(waited)
                return owned(reference)
            if not self._wait_for_items(outcome, deadline):
                return TIMED_OUT
            waited = True

    cdef object get_many(self, uint64_t limit, int64_t deadline):
        cdef Outcome outcome
        cdef LocalFound found
        cdef list items
        cdef bint waited = False
        if self.is_closing:
            self.check_open()
        while True:
            outcome = self.queue.find(limit, found)
            if outcome == Outcome.done:
                items = PyList_New(found.span.slots)  # of NULLs, until take() sets them
                if not self.queue.take(found, references_of(items)):
                    continue
                self._after_get(waited)
                return items
            if not self._wait_for_items(outcome, deadline):
                return TIMED_OUT
            waited = True

    cdef inline void _after_get(self, bint waited) noexcept:
        notify_local(self.queue.room())
        if waited and self.queue.may_be_gettable():
            notify_local(self.queue.items())

    cdef bint _wait_for_room(self, Outcome outcome, int64_t deadline) except -1:
        """Waits after a failed put. Returns true to try again, false if the time is up."""
        if outcome == Outcome.closed:
            raise ShutDown("the queue is shut down")
        if (deadline == AT_ONCE or remaining_ns(deadline) <= 0) and self.queue.is_worth_a_try(outcome):
            with nogil:
                pause_between_attempts()
            return True
        return self._park(self.queue.room(), deadline, for_items=False)

    cdef bint _wait_for_items(self, Outcome outcome, int64_t deadline) except -1:
        """The same after a get that found no item."""
        if outcome == Outcome.closed:
            raise ShutDown("the queue is shut down")
        self.queue.upkeep_while_empty()
        return self._park(self.queue.items(), deadline, for_items=True)

    cdef bint _park(self, Event event, int64_t deadline, bint for_items) except -1:
        """Sleeps. Announces it before the GIL is released: see notify_local."""
        cdef int64_t left
        cdef uint32_t ticket
        if deadline == AT_ONCE:
            return False
        left = remaining_ns(deadline)
        if left <= 0:
            return False
        ticket = event.announce()
        if self.queue.may_be_gettable() if for_items else self.queue.may_be_puttable():
            return True
        with nogil:
            event.park(ticket, min(left, park_limit_ns))
        PyErr_CheckSignals()
        self.check_open()
        return True

    cdef int wait(self, bint for_items, uint64_t slots, int64_t deadline) except -1:
        if for_items:
            self._park(self.queue.items(), deadline, True)
        else:
            self._park(self.queue.room(), deadline, False)
        return 0

    cdef object size(self):
        return self.queue.count_items()

    cdef object why_full(self, double waited):
        return QueueFull(FULL_HERE, None, waited, *used_slots(self.queue))

    cdef bint wait_done(self, int64_t deadline) except -1:
        return wait_for_tasks(self, self.queue, deadline)

    cdef int task_done(self) except -1:
        if self.is_closing:
            self.check_open()
        return 0 if self.queue.finish_task() else raise_no_task(self.queue)

    cdef int shut_down(self, bint immediate) except -1:
        if self.queue.shut_down(immediate):
            self.queue.discard_tasks(self._drop_references())
        return 0

    cdef void wake_everybody(self) noexcept:
        self.queue.tasks().wake_all()
        self.queue.items().wake_all()
        self.queue.room().wake_all()


# For the garbage collector: the items are reachable from the queue.

cdef int traverse(PyObject* backend, visitproc visit, void* arg) noexcept:
    cdef NativeReferences* queue = (<LocalBackend>backend).queue
    cdef int stop = original_traverse(backend, visit, arg) if original_traverse is not NULL else 0
    return stop if stop or queue is NULL else visit_references(queue[0], visit, arg)


cdef int clear(PyObject* backend) noexcept:
    if (<LocalBackend>backend).queue is not NULL:
        (<LocalBackend>backend)._drop_references()
    return original_clear(backend) if original_clear is not NULL else 0


cdef traverseproc original_traverse = (<PyTypeObject*>LocalBackend).tp_traverse
cdef inquiry original_clear = (<PyTypeObject*>LocalBackend).tp_clear
(<PyTypeObject*>LocalBackend).tp_traverse = traverse
(<PyTypeObject*>LocalBackend).tp_clear = clear
