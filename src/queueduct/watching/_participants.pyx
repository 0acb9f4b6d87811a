# cython: language_level=3, binding=False, freethreading_compatible=True
"""Who takes part in a queue: the lines of the participant table, as anybody may read them. Nothing is written."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from queueduct.core._backend cimport SegmentBackend, counter_fields, named_backend
from queueduct.core._queue cimport Queue, not_none, sound
from queueduct.native._native cimport Counted, ParticipantSeen, see_participant

from datetime import datetime, timedelta, timezone

from queueduct.stats import ParticipantInfo
from queueduct.watching.commands import command_of

cdef object EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


cdef object told(SegmentBackend backend, const ParticipantSeen& seen, bint is_alive, bint with_command):
    cdef Counted counters = seen.counted
    cdef uint64_t boot[2]
    boot[0], boot[1] = seen.boot_id[0], seen.boot_id[1]
    if backend.message_bytes:
        counters.bytes_put = counters.items_put * backend.message_bytes
        counters.bytes_got = counters.items_got * backend.message_bytes
    return ParticipantInfo(
        pid=seen.pid,
        thread=seen.thread,
        command=command_of(seen.pid, seen.start_ticks, (<char*>boot)[:16]) if with_command else None,
        alive=is_alive,
        last_use=EPOCH + timedelta(microseconds=seen.last_use_ns // 1000),
        owners=seen.tenure,
        **counter_fields(counters),
    )


@cython.binding(True)
class ParticipantMethods:
    """What every queue says of its making and its participants."""

    __slots__ = ()

    @property
    def created(self):
        """When the queue was created, a datetime in UTC; None within a process."""
        cdef Queue queue = not_none(self)
        return None if queue.segment is None else queue.segment.created

    @property
    def creator(self):
        """The pid of the process that created the queue, in that process's own pid namespace; None within a process."""
        cdef Queue queue = not_none(self)
        return None if queue.segment is None else queue.segment.creator

    def participants(self, *, commands=True):
        """Returns what is known of each participant: a list of ParticipantInfo. Never waits, and writes nothing.

        A participant is a thread that has used the queue, in any process, or a lease. A dead one is listed, with
        ``alive=False``, as long as no other participant has taken over what it left. Without ``commands`` each
        ``command`` is None: to read it of ``/proc`` takes ten times as long as all the rest.

        >>> q = queueduct.BoundedQueue.create(None)
        >>> q.put(b"a")
        >>> [(each.alive, each.items_put) for each in q.participants()]
        [(True, 1)]
        """
        cdef SegmentBackend backend = named_backend(self, "participants")
        cdef ParticipantSeen seen
        cdef uint32_t line
        cdef bint is_alive
        cdef bint with_commands = commands
        cdef list found = []
        for line in range(backend.participant_table.used()):
            is_alive = backend.participant_table.is_alive(line)
            if not is_alive and not backend.is_unsettled(line):
                continue
            if see_participant(backend.participant_table.lines()[line], seen):
                found.append(told(backend, seen, is_alive, with_commands))
        return sound(backend, found)
