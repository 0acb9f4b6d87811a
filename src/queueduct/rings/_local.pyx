# cython: language_level=3, binding=False, freethreading_compatible=True
"""A queue within this process, bounded or growing: references change hands, nothing is copied or pickled."""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from cpython.list cimport PyList_New
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libcpp.vector cimport vector

from queueduct.native._native cimport (
    Event, Outcome, PyTypeObject, count_each, drop_each, drop_held, has_gil, inquiry, notify_local, owned, park_limit_ns,
    references_of, traverseproc, visitproc,
)
from queueduct.rings.shared._native cimport (
    LocalFound, LocalHandle, new_bounded_references, new_growing_references,
    visit_references,
)
from queueduct.core._queue cimport AT_ONCE, TIMED_OUT, remaining_ns

from queueduct.errors import Full, ShutDown


@cython.final
cdef class LocalBackend(Backend):

    def __cinit__(self, capacity):
        """``capacity`` None: it grows."""
        if capacity is None:
            self.queue = new_growing_references()
        else:
            self.queue = new_bounded_references(capacity)
        if self.queue is NULL:
            raise MemoryError(f"no memory for a queue of capacity={capacity}")

    def __dealloc__(self):
        if self.queue is not NULL:
            self._drop_references()
        del self.queue

    cdef void _drop_references(self) noexcept:
        """Forget what the queue still holds. Nobody else gets from it any more."""
        cdef void* reference = NULL
        cdef vector[void*] held
        while self.queue.try_drain(reference):
            held.push_back(reference)
        drop_held(held.data(), held.size())

    cdef int put(self, object item, int64_t deadline) except -1:
        cdef Outcome outcome
        cdef bint waited = False
        if self.is_closing:  # by now: an argument's own code may have forked, or closed it
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
        # A list is looked at anew after each wait. Under the GIL it stands still while we are at it; without one we
        # take a part of it, which is one step, and is ours.
        cdef object items = given if type(given) in (list, tuple) else tuple(given)
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
            if not has_gil and wanted == 0:  # it has just become shorter
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
                if total == 0:
                    raise Full
                break
            else:
                waited = True
        return total

    cdef inline void _after_put(self, bint waited) noexcept:
        notify_local(self.queue.items())
        if waited and self.queue.looks_puttable():
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
                items = PyList_New(found.span.slots)  # of NULLs, until they are taken
                if not self.queue.take(found, references_of(items)):
                    continue
                self._after_get(waited)
                return items
            if not self._wait_for_items(outcome, deadline):
                return TIMED_OUT
            waited = True

    cdef inline void _after_get(self, bint waited) noexcept:
        notify_local(self.queue.room())
        if waited and self.queue.looks_gettable():
            notify_local(self.queue.items())

    cdef bint _wait_for_room(self, Outcome outcome, int64_t deadline) except -1:
        """After a put that did not succeed: True to try again, False when the time is up."""
        if outcome == Outcome.closed:
            raise ShutDown("the queue is shut down")
        if (deadline == AT_ONCE or remaining_ns(deadline) <= 0) and self.queue.is_worth_a_try(outcome):
            with nogil:
                self.queue.wait_a_moment()
            return True
        return self._park(self.queue.room(), deadline, for_items=False)

    cdef bint _wait_for_items(self, Outcome outcome, int64_t deadline) except -1:
        """The same after a get."""
        if outcome == Outcome.closed:
            raise ShutDown("the queue is shut down")
        self.queue.upkeep_while_empty()
        return self._park(self.queue.items(), deadline, for_items=True)

    cdef bint _park(self, Event event, int64_t deadline, bint for_items) except -1:
        """Sleep, announced before the GIL is let go: see notify_local."""
        cdef int64_t left
        cdef uint32_t ticket
        if deadline == AT_ONCE:
            return False
        left = remaining_ns(deadline)
        if left <= 0:
            return False
        ticket = event.announce()
        if self.queue.looks_gettable() if for_items else self.queue.looks_puttable():
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

    cdef int shut_down(self, bint immediate) except -1:
        if self.queue.shut_down(immediate):
            self._drop_references()
        return 0

    cdef void wake_everybody(self) noexcept:
        self.queue.items().wake_all()
        self.queue.room().wake_all()


# For the cycle collector: the items are reachable from the queue.

cdef int traverse(PyObject* backend, visitproc visit, void* arg) noexcept:
    cdef LocalHandle* queue = (<LocalBackend>backend).queue
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
