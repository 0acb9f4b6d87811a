# cython: language_level=3, binding=False, freethreading_compatible=True
"""GrowingQueue: how it is made, and what it says of itself. The work is in its backends."""

from libc.stdint cimport uint32_t, uint64_t

from queueduct.rings._growing_local cimport GrowingLocalBackend
from queueduct.rings._growing_native cimport GrowingRing, Levels, LevelRange
from queueduct.rings._growing_backend cimport GrowingBackend
from queueduct.core._queue cimport Backend, Queue, checked_int, computed_deadline, held, install, is_made, sound

from queueduct.rings import _lease as _bounded_lease
from queueduct.rings import _put_once as _bounded_once
from queueduct.segments import creation as creating
from queueduct.items import types as items
from queueduct.segments import segment
from queueduct.rings.growing_geometry import GrowingGeometry
from queueduct.stats import GrowingStats


cdef class GrowingQueue(Queue):
    """A queue of many producers and many consumers that grows with what is in it, and gives memory back.

    ``GrowingQueue()`` passes references between the threads of this process.
    ``GrowingQueue.create("jobs", item=bytes)`` lives in shared memory, by name: it starts at 4 kB, and each
    sub-queue that is full is followed by one of four times its size.
    """

    def __init__(self):
        if is_made(self):
            raise TypeError("a queue is initialised once")
        install(self, GrowingLocalBackend())
        self.stay_in_process()

    @classmethod
    def create(
        cls, name, *, item=bytes, first_bytes=4096, steps=11, slot_bytes=None, max_bytes=None, participants=256,
        producers=32, exist_ok=False
    ):
        """Make a queue of that name in shared memory.

        ``item`` is ``bytes``, a numpy dtype, or ``object`` (pickled). Sub-queue i has ``first_bytes * 4**i`` bytes,
        and there are ``steps`` of them; a bytes or object item longer than ``slot_bytes`` takes several slots.
        ``max_bytes`` limits the memory that the whole queue takes: beyond it put waits, or raises Full.
        ``participants`` is how many threads of all processes may use it at once, ``producers`` how many names
        put_once keeps. With ``exist_ok`` an existing queue of the same shape is opened instead.
        """
        item_type = items.ItemType.of(item)
        if max_bytes is not None and checked_int("max_bytes", max_bytes) < 1:
            raise ValueError(f"max_bytes must be at least 1, or None for no limit: max_bytes={max_bytes}")
        geometry = GrowingGeometry(
            checked_int("participants", participants),
            checked_int("producers", producers),
            first_bytes=checked_int("first_bytes", first_bytes),
            steps=checked_int("steps", steps),
            slot_bytes=item_type.slot_bytes(None if slot_bytes is None else checked_int("slot_bytes", slot_bytes)),
            max_bytes=0 if max_bytes is None else checked_int("max_bytes", max_bytes),
        )
        geometry.check()
        geometry.check_item(item_type)
        return creating.create(name, geometry, item_type, cls._attach, exist_ok=exist_ok)

    @classmethod
    def open(cls, name, *, allow_pickle=True):
        """Open the growing queue of that name. Without ``allow_pickle``, one of objects is refused."""
        return cls._attach(segment.open_segment(name, kind="growing"), allow_pickle)

    @classmethod
    def _attach(cls, opened, allow_pickle=True):
        cdef GrowingQueue self = cls.__new__(cls)
        try:
            opened.item.check_pickle(opened.name, allow_pickle)
            install(self, GrowingBackend(opened))
        except BaseException:
            opened.close()
            raise
        self.segment = opened
        return self

    def put_once(self, items, producer, sequence, *, block=True, timeout=None):
        """Put all of ``items`` exactly once for this sequence of this producer; returns how many it put now.

        As BoundedQueue.put_once.
        """
        cdef Backend backend = shared_body(held(self))
        try:
            return sound(backend, _bounded_once.put_once(backend, items, producer, sequence, computed_deadline(block, timeout)))
        except Exception:
            backend.check_sound()  # then that is the news
            raise

    def producers(self):
        """What put_once keeps of each producer: a list of (name, sequence, done, total)."""
        cdef Backend backend = shared_body(held(self))
        return sound(backend, _bounded_once.producers(backend))

    def forget_producer(self, name):
        """Make room for another name in the table of producers. A sequence repeated afterwards is put again."""
        cdef Backend backend = shared_body(held(self))
        try:
            sound(backend, _bounded_once.forget_producer(backend, name))
        except Exception:
            backend.check_sound()  # then that is the news
            raise

    def lease(self, max_items, block=True, timeout=None):
        """Claim at least one item and at most ``max_items``, and keep them in the queue until they are released.

        As BoundedQueue.lease. What one lease has is of one sub-queue, which is not given back before it is released.
        """
        return _bounded_lease.lease(
            shared_body(held(self), "leases"), self.name, max_items, computed_deadline(block, timeout)
        )

    def unreleased(self, positions):
        """Those of the positions that somebody has claimed to get, and nobody has given back yet."""
        cdef Backend backend = shared_body(held(self), "leases")
        return sound(backend, _bounded_lease.unreleased(backend, positions))

    @property
    def capacity(self):
        """Slots of all sub-queues together: how many items of one slot fit at the very most."""
        cdef Backend backend = held(self)  # it keeps the levels
        cdef const Levels* levels = levels_of(backend)
        cdef uint32_t i
        return sum([levels[0][i].capacity for i in range(levels.steps())])

    def full(self):
        """Is the last sub-queue written, and has no free slot? A hint, as with every queue that others use."""
        cdef Backend backend = held(self)  # it keeps the levels
        cdef const Levels* levels = levels_of(backend)
        cdef LevelRange now = levels.stage()
        cdef GrowingRing ring = levels.ring(now.written_level(), now)
        cdef uint64_t pushed = GrowingRing.position_of(ring.push_position.load())
        cdef uint64_t popped = GrowingRing.position_of(ring.pop_position.load())
        return sound(backend, now.written_level() + 1 == levels.steps() and pushed - popped >= ring.capacity)

    def stats(self):
        """One look at the queue's counters."""
        cdef Backend backend = held(self)
        cdef const Levels* levels = levels_of(backend)
        cdef LevelRange now = levels.stage()
        cdef GrowingRing ring = levels.ring(now.written_level(), now)
        cdef GrowingBackend shared = backend if isinstance(backend, GrowingBackend) else None
        cdef uint32_t i
        return sound(backend, GrowingStats(
            level_slots=tuple([levels[0][i].capacity for i in range(levels.steps())]),
            read_level=now.read_level(),
            written_level=now.written_level(),
            size=backend.size(),
            position=GrowingRing.position_of(ring.push_position.load()),
            slot_bytes=levels.slot_bytes() if shared is not None else 0,
            resident_bytes=shared.resident_bytes() if shared is not None else 0,
            reserved_bytes=shared.queue.upkeep().reserved_bytes() if shared is not None else 0,
            max_bytes=self.segment.geometry.max_bytes if shared is not None else 0,
            grown=levels.control().grown.load(),
            shrunk=levels.control().shrunk.load(),
            is_shut_down=bool(now.is_shut()),
            participants=shared.queue.count_alive() if shared is not None else 0,
            participants_limit=shared.participants if shared is not None else 0,
            tombstones=levels.control().tombstones.load(),
            redelivered=levels.control().redelivered.load(),
            leased=shared.queue.count_leased() if shared is not None else 0,
        ))


cdef Backend shared_body(Backend backend, what="producers"):
    backend.check_open()
    if not isinstance(backend, GrowingBackend):
        raise ValueError(f"a queue without a name has no {what}; use GrowingQueue.create(name, ...)")
    return backend


cdef const Levels* levels_of(Backend backend) except NULL:
    backend.check_open()
    if isinstance(backend, GrowingBackend):
        return &(<GrowingBackend>backend).queue.levels()
    return &(<GrowingLocalBackend>backend).queue.levels()
