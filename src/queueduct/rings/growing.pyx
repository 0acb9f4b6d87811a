# cython: language_level=3, binding=False, freethreading_compatible=True
"""The class GrowingQueue: create, open, statistics. Its backends put and get."""

from libc.stdint cimport uint32_t, uint64_t

from queueduct.rings.shared._native cimport GrowingRing, Levels, NativeGrowing, LevelRange
from queueduct.rings.shared._growing_backend cimport GrowingBackend, LocalBackend
from queueduct.core._backend cimport counter_fields
from queueduct.rings.shared._backend cimport counted_by
from queueduct.core._queue cimport Backend, Queue, checked_int, held, install, raise_no_name, sound

from queueduct.async_calls import AsyncGets, AsyncPuts
from queueduct.core._lease import LeaseMethods
from queueduct.core._put_once import PutOnceMethods
from queueduct.rings.shared._lease import RingHolding
from queueduct.rings.shared._put_once import RingProducerCall
from queueduct.rings.geometry import GrowingGeometry
from queueduct.stats import GrowingStats
from queueduct.watching._participants import ParticipantMethods


cdef class GrowingQueue(Queue, AsyncPuts, AsyncGets, PutOnceMethods, LeaseMethods, ParticipantMethods):
    """GrowingQueue()\n--\n
    A queue of many producers and many consumers that grows with its items, and gives memory back.

    ``GrowingQueue()`` passes references between the threads of this process.
    ``GrowingQueue.create("jobs", item=bytes)`` lives in shared memory, by name: it starts at 4 kB, and each
    sub-queue that is full is followed by one of four times its size.

    >>> q = queueduct.GrowingQueue()
    >>> q.put("a")
    >>> q.get()
    'a'
    """

    _geometry = GrowingGeometry
    _producer_call = RingProducerCall
    _holding = RingHolding

    def __init__(self, *args):
        if args:
            raise_no_name(type(self), args[0])
        install(self, LocalBackend(None))
        self.stay_in_process()

    @classmethod
    def create(
        cls, name, *, item=None, first_bytes=4096, steps=11, slot_bytes=None, max_bytes=None, participants=256,
        producers=32, directory=None, exist_ok=False, replace=False
    ):
        """Create a queue of that name in shared memory.

        ``item`` is ``bytes``, a numpy dtype, or ``object`` (pickled). Sub-queue i has ``first_bytes * 4**i`` bytes,
        and there are ``steps`` of them; a bytes or object item longer than ``slot_bytes`` takes several slots.
        ``max_bytes`` limits the memory that the whole queue takes: beyond it put waits, or raises Full.
        ``participants`` is how many threads of all processes may use it at once, ``producers`` how many producers'
        names put_once keeps.
        With ``exist_ok`` an existing queue of the same shape is opened instead; with ``replace`` the new queue takes
        the name of an existing one, and those who have the old one open keep it.
        ``directory`` is where its file is, by default ``$QUEUEDUCT_DIR``, or else ``/dev/shm/queueduct-<uid>``.

        >>> q = queueduct.GrowingQueue.create("jobs", item=object, max_bytes=1 << 30)
        >>> q.put({"job": 1})
        >>> q.get()
        {'job': 1}
        >>> q.unlink()
        """
        if max_bytes is not None and checked_int("max_bytes", max_bytes) < 1:
            raise ValueError(f"max_bytes must be at least 1, or None for no limit: max_bytes={max_bytes}")
        return cls._create(name, item, directory, exist_ok, replace, dict(
            first_bytes=first_bytes, steps=steps, slot_bytes=slot_bytes, participants=participants, producers=producers,
            max_bytes=0 if max_bytes is None else max_bytes,
        ))

    cdef Backend attach(self, object opened):
        return GrowingBackend(opened)

    @property
    def capacity(self):
        """The number of slots of all sub-queues: how many items of one slot fit at most."""
        cdef Backend backend = held(self)  # it keeps the levels alive
        cdef const Levels* levels = levels_of(backend)
        cdef uint32_t i
        return sum([levels[0][i].capacity for i in range(levels.steps())])

    def full(self):
        """Return True if the last sub-queue is in use and has no free slot. A hint: others may change it at once.

        >>> queueduct.GrowingQueue().full()
        False
        """
        cdef Backend backend = held(self)  # it keeps the levels alive
        cdef const Levels* levels = levels_of(backend)
        cdef LevelRange now = levels.level_range()
        cdef GrowingRing ring = levels.ring(now.written_level(), now)
        cdef uint64_t pushed = GrowingRing.position_of(ring.push_position.load())
        cdef uint64_t popped = GrowingRing.position_of(ring.pop_position.load())
        return sound(backend, now.written_level() + 1 == levels.steps() and pushed - popped >= ring.capacity)

    def stats(self):
        """One look at the queue's counters.

        >>> queueduct.GrowingQueue().stats().grown
        0
        """
        cdef Backend backend = held(self)
        cdef const Levels* levels = levels_of(backend)
        cdef LevelRange now = levels.level_range()
        cdef GrowingRing written = levels.ring(now.written_level(), now)
        cdef GrowingRing read = levels.ring(now.read_level(), now)
        cdef GrowingBackend shared = backend if isinstance(backend, GrowingBackend) else None
        cdef uint32_t i
        return sound(backend, GrowingStats(
            size=backend.size(),
            leased=shared.queue.count_leased() if shared is not None else 0,
            redelivered=levels.control().redelivered.load(),
            push_position=GrowingRing.position_of(written.push_position.load()),
            pop_position=GrowingRing.position_of(read.pop_position.load()),
            tombstones=levels.control().tombstones.load(),
            slot_bytes=levels.slot_bytes() if shared is not None else 0,
            resident_bytes=shared.resident_bytes() if shared is not None else 0,
            max_bytes=self.segment.geometry.max_bytes if shared is not None else 0,
            is_shut_down=bool(now.is_shut()),
            participants=shared.queue.count_alive() if shared is not None else 0,
            participants_limit=shared.participants if shared is not None else 0,
            level_slots=tuple([levels[0][i].capacity for i in range(levels.steps())]),
            read_level=now.read_level(),
            written_level=now.written_level(),
            reserved_bytes=(<NativeGrowing*>shared.queue).upkeep().reserved_bytes() if shared is not None else 0,
            grown=levels.control().grown.load(),
            shrunk=levels.control().shrunk.load(),
            **counter_fields(counted_by(
                shared, GrowingRing.position_of(written.push_position.load()),
                GrowingRing.position_of(read.pop_position.load()),
            )),
        ))


cdef const Levels* levels_of(Backend backend) except NULL:
    backend.check_open()
    if isinstance(backend, GrowingBackend):
        return &(<NativeGrowing*>(<GrowingBackend>backend).queue).levels()
    return &(<LocalBackend>backend).queue.levels()
