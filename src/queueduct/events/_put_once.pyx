# cython: language_level=3, binding=False, freethreading_compatible=True
"""put_once into an event queue: the native calls. The algorithm is in native/events/queue.hpp."""

cimport cython
from libc.stdint cimport uint64_t

from queueduct.core._put_once cimport SETTLED, UNDECIDED, ProducerCall, Settled
from queueduct.core._queue cimport FOREVER
from queueduct.events._backend cimport EventsBackend
from queueduct.events.reading._held cimport why_full
from queueduct.native._native cimport Producers, Taken


@cython.final
cdef class EventsProducerCall(ProducerCall):

    cdef Producers* table(self) noexcept:
        return &(<EventsBackend>self.backend).queue.producers()

    cdef Taken forget_line(self) except *:
        """Under the lock: a participant that takes it over from a dead owner writes to other producers' lines."""
        cdef Taken taken
        (<EventsBackend>self.backend).enter(FOREVER)
        taken = self.table().forget(self.name, self.owner_word())
        (<EventsBackend>self.backend).leave()
        return taken

    cdef Settled try_settle(self) except *:
        cdef EventsBackend backend = <EventsBackend>self.backend
        cdef int error
        if not backend.enter(self.deadline):
            return UNDECIDED
        with nogil:  # on a disk it syncs
            error = backend.queue.confirm_once(self.line[0])
        backend.leave()
        if error != 0:
            backend.raise_not_written(error)
        return SETTLED

    cdef bint put_some(self) except -1:
        """Puts all of them: the backend itself waits."""
        cdef EventsBackend backend = <EventsBackend>self.backend
        cdef uint64_t missing = self.total - self.done
        cdef uint64_t put
        if self.batch is not None:
            put = backend.append(
                NULL, self.batch.buffers + self.done, missing, self.batch.in_all, self.deadline, self.line
            )
        else:
            put = backend.append(
                self.records + self.done * backend.map.item_bytes, NULL, missing, self.array.nbytes, self.deadline,
                self.line,
            )
        self.done += put
        if put < missing:
            self.check_still_ours()
        return put == missing

    cdef object why_full(self, double waited):
        return why_full(<EventsBackend>self.backend, waited)
