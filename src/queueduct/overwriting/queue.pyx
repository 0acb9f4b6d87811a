# cython: language_level=3, binding=False, freethreading_compatible=True
"""The class OverwritingQueue: create, open, adopt, statistics. Its backend puts and gets."""

from libc.stdint cimport int64_t

from queueduct.core._backend cimport counter_fields
from queueduct.core._queue cimport (
    AT_ONCE, FOREVER, Backend, Queue, checked_int, computed_deadline, held, open_backend, sound, waited_until,
)
from queueduct.items._buffers cimport refuse_stream
from queueduct.native._native cimport Counted, counted
from queueduct.overwriting._backend cimport OverwritingBackend
from queueduct.overwriting._native cimport Fates

from queueduct.async_calls import AsyncGets, AsyncPuts
from queueduct.core._lease import LeaseMethods
from queueduct.items.types import ItemType
from queueduct.overwriting._lease import OverwritingHolding
from queueduct.overwriting.geometry import OverwritingGeometry
from queueduct.overwriting.latest import LatestMethods
from queueduct.segments import foreign_segment
from queueduct.stats import OverwritingStats
from queueduct.watching._participants import ParticipantMethods


cdef class OverwritingQueue(Queue, AsyncPuts, AsyncGets, LeaseMethods, LatestMethods, ParticipantMethods):
    """A queue that is never full: if there is no room, a put overwrites the oldest message, which is counted.

    ``OverwritingQueue.create("prices", capacity=1024, item=dtype)`` lives in shared memory, by name, in a published
    format: other processes ``OverwritingQueue.open("prices")`` it, or get it pickled, and a program in any language
    can join (docs/memory-layout.md). One consumer gets each message.

    >>> q = queueduct.OverwritingQueue.create(None, 2, item="i8")
    >>> q.put_many([1, 2, 3])
    3
    >>> q.get_many(100)
    array([2, 3])
    """

    _geometry = OverwritingGeometry
    _holding = OverwritingHolding

    def __init__(self, *args, **kwargs):
        raise TypeError(
            "an overwriting queue lives in shared memory: use OverwritingQueue.create(name, ...) or "
            "OverwritingQueue.open(name)"
        )

    @classmethod
    def create(
        cls, name, capacity=1024, *, item=None, message_bytes=None, participants=256, directory=None, exist_ok=False,
        replace=False,
    ):
        """Create a queue of that name in shared memory.

        ``capacity`` is how many messages fit, 1 or more. ``item`` is ``bytes`` (each exactly ``message_bytes`` long, a
        multiple of 8, 64 if not given), a numpy dtype, or ``object`` (pickled, at most ``message_bytes``, 256 if not
        given). ``participants`` is how many threads of all processes may use it at once.
        With ``exist_ok`` an existing queue of the same shape is opened instead; with ``replace`` the new queue takes
        the name of an existing one, and those who have the old one open keep it.
        ``directory`` is where its file is, by default ``$QUEUEDUCT_DIR``, or else ``/dev/shm/queueduct-<uid>``.

        >>> q = queueduct.OverwritingQueue.create("prices", 1024, item=[("symbol", "S8"), ("price", "f8")])
        >>> q.put((b"ACME", 101.5))
        >>> float(q.peek()["price"])
        101.5
        >>> q.unlink()
        """
        return cls._create(
            name, item, directory, exist_ok, replace,
            dict(capacity=capacity, message_bytes=message_bytes, participants=participants),
        )

    @classmethod
    def adopt(cls, name, *, item=None, participants=256, directory=None):
        """Open a file of that name that another program made in the published format, and use it from now on.

        queueduct adds its own part after the messages; processes that have the file open go on with it. ``item`` is
        the type of a message. A file that has been adopted already is only opened.

        >>> made = queueduct.OverwritingQueue.create("prices", item="f8")
        >>> q = queueduct.OverwritingQueue.adopt("prices", item="f8")
        >>> q.unlink()
        """
        return foreign_segment.adopt(
            name, OverwritingGeometry, ItemType.of(item), checked_int("participants", participants), cls._attach,
            directory=directory,
        )

    cdef Backend attach(self, object opened):
        return OverwritingBackend(opened)

    def put(self, item, block=True, timeout=None, *, overwrite=True):
        """Put an item. A full queue loses its oldest one, which ``stats().overwritten`` counts.

        With ``overwrite=False`` it waits for room if ``block``, at most ``timeout`` seconds, or raises Full.
        A wrong size is a ValueError before any lock is taken. Raises ShutDown.

        >>> q = queueduct.OverwritingQueue.create(None, 1, item="i8")
        >>> q.put(1)
        >>> q.put(2)
        >>> q.stats().overwritten
        1
        """
        cdef Backend backend = held(self)
        cdef int64_t deadline = computed_deadline(block, timeout)
        if not put_into(backend, item, overwrite, deadline):
            raise backend.why_full(waited_until(deadline, timeout))

    def put_nowait(self, item, *, overwrite=True):
        """``put(item, block=False)``.

        >>> queueduct.OverwritingQueue.create(None, item="i8").put_nowait(1)
        """
        cdef Backend backend = held(self)
        if not put_into(backend, item, overwrite, AT_ONCE):
            raise backend.why_full(0)

    def try_put(self, item, *, overwrite=True):
        """Put an item; with ``overwrite=False`` only if there is room now. Returns True if it is in. Never waits.

        >>> q = queueduct.OverwritingQueue.create(None, 1, item="i8")
        >>> q.try_put(1), q.try_put(2, overwrite=False)
        (True, False)
        """
        cdef Backend backend = held(self)
        return put_into(backend, item, overwrite, AT_ONCE) == 1

    def put_many(self, items, block=True, timeout=None, *, overwrite=True):
        """Put items in order; returns how many are in. A queue of records also takes a dict of columns or a table.

        With ``overwrite=False`` it waits until all are in, at most ``timeout`` seconds, and raises Full only if none
        is. Raises ShutDown only if none is in.

        >>> queueduct.OverwritingQueue.create(None, 2, item="i8").put_many([1, 2, 3])
        3
        """
        cdef OverwritingBackend backend = open_backend(self)
        cdef int64_t deadline = computed_deadline(block, timeout)
        if deadline != FOREVER:
            refuse_stream(items)
        put = backend.put_many_as(items, overwrite, deadline)
        if put is None:
            raise backend.why_full(waited_until(deadline, timeout))
        return put

    def aput(self, item, timeout=None, *, overwrite=True):
        """``await q.aput(item)``: put without blocking the event loop; with ``overwrite=False`` it waits for room.

        >>> import asyncio
        >>> q = queueduct.OverwritingQueue.create(None, item="i8")
        >>> asyncio.run(q.aput(1))
        """
        return self._bridge().put(item, timeout, overwrite=overwrite)

    def aput_many(self, items, timeout=None, *, overwrite=True):
        """``await q.aput_many(items)``: put_many without blocking the event loop.

        >>> import asyncio
        >>> q = queueduct.OverwritingQueue.create(None, item="i8")
        >>> asyncio.run(q.aput_many([1, 2]))
        2
        """
        return self._bridge().put_many(self._batch(items, timeout), timeout, overwrite=overwrite)

    @property
    def capacity(self):
        """How many messages fit."""
        return (<OverwritingBackend>open_backend(self)).ring.capacity()

    @property
    def message_bytes(self):
        """Bytes of a message: whole words. A shorter record or pickled object is filled up with zeros."""
        return (<OverwritingBackend>open_backend(self)).ring.message_bytes()

    def full(self):
        """Return True if the next put will overwrite. A hint: other threads and processes may change it at once.

        >>> queueduct.OverwritingQueue.create(None).full()
        False
        """
        cdef OverwritingBackend backend = open_backend(self)
        return sound(backend, backend.ring.length() >= backend.ring.capacity())

    def stats(self):
        """One look at the queue's counters.

        >>> queueduct.OverwritingQueue.create(None).stats().puts
        0
        """
        cdef OverwritingBackend backend = open_backend(self)
        cdef Fates fates = backend.ring.fates()
        cdef Counted sums = counted(backend.participant_table[0])
        sums.bytes_put = sums.items_put * backend.ring.message_bytes()
        sums.bytes_got = sums.items_got * backend.ring.message_bytes()
        return sound(backend, OverwritingStats(
            capacity=backend.ring.capacity(),
            size=backend.size(),
            leased=backend.queue.leased_messages().count_leased(),
            redelivered=backend.queue.control().redelivered.load(),
            puts=fates.puts,
            resident_bytes=backend.resident_bytes(),
            is_shut_down=backend.queue.control().closed.load() != 0,
            participants=backend.participant_table.count_alive(),
            participants_limit=backend.participants,
            message_bytes=backend.ring.message_bytes(),
            gets=fates.delivered - backend.count_left(),
            overwritten=fates.overwritten,
            torn=fates.torn,
            lost_with_consumer=fates.lost_with_consumer,
            discarded=backend.ring.state().length if backend.ring.is_discarded() else 0,
            **counter_fields(sums),
        ))


cdef int put_into(Backend backend, object item, bint overwrite, int64_t deadline) except -1:
    backend.check_open()
    return (<OverwritingBackend>backend).put_as(item, overwrite, deadline)
