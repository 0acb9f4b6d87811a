# cython: language_level=3, binding=False, freethreading_compatible=True
"""BoundedQueue: how it is made, and what it says of itself. The work is in its backends."""

from libc.stdint cimport uint64_t

from queueduct.rings._bounded_local cimport BoundedLocalBackend
from queueduct.rings._bounded_backend cimport BoundedBackend
from queueduct.native._native cimport LocalQueue, Ring, closed_bit, slots_in_use
from queueduct.core._queue cimport Backend, Queue, checked_int, computed_deadline, held, install, is_made, sound

from queueduct.rings import _lease as _bounded_lease
from queueduct.rings import _put_once as _bounded_once
from queueduct.segments import creation as creating
from queueduct.items import types as items
from queueduct.segments import segment
from queueduct.rings.bounded_geometry import BoundedGeometry
from queueduct.stats import BoundedStats


cdef class BoundedQueue(Queue):
    """A bounded queue of many producers and many consumers: each item goes to one of them.

    ``BoundedQueue(1024)`` passes references between the threads of this process.
    ``BoundedQueue.create("ticks", capacity=65536, item=dtype)`` lives in shared memory, by name:
    other processes ``BoundedQueue.open("ticks")`` it, or get it pickled.
    """

    def __init__(self, capacity=1024):
        if is_made(self):
            raise TypeError("a queue is initialised once")
        BoundedGeometry(1, 0, checked_int("capacity", capacity), sizeof(void*)).check()
        install(self, BoundedLocalBackend(capacity))
        self.stay_in_process()

    @classmethod
    def create(
        cls, name, capacity=1024, *, item=bytes, slot_bytes=None, participants=256, producers=32, exist_ok=False
    ):
        """Make a queue of that name in shared memory.

        ``item`` is ``bytes``, a numpy dtype, or ``object`` (pickled). ``capacity`` counts slots, a power of
        two; a bytes or object item longer than ``slot_bytes`` takes several. ``participants`` is how many
        threads of all processes may use it at once, ``producers`` how many names put_once keeps. With
        ``exist_ok`` an existing queue of the same shape is opened instead.
        """
        item_type = items.ItemType.of(item)
        geometry = BoundedGeometry(
            checked_int("participants", participants),
            checked_int("producers", producers),
            checked_int("capacity", capacity),
            item_type.slot_bytes(None if slot_bytes is None else checked_int("slot_bytes", slot_bytes)),
        )
        return creating.create(name, geometry, item_type, cls._attach, exist_ok=exist_ok)

    @classmethod
    def open(cls, name, *, allow_pickle=True):
        """Open the bounded queue of that name. Without ``allow_pickle``, one of objects is refused."""
        return cls._attach(segment.open_segment(name, kind="bounded"), allow_pickle)

    @classmethod
    def _attach(cls, opened, allow_pickle=True):
        cdef BoundedQueue self = cls.__new__(cls)
        try:
            opened.item.check_pickle(opened.name, allow_pickle)
            install(self, BoundedBackend(opened))
        except BaseException:
            opened.close()
            raise
        self.segment = opened
        return self

    def put_once(self, items, producer, sequence, *, block=True, timeout=None):
        """Put all of ``items`` exactly once for this sequence of this producer; returns how many it put now.

        A call that was killed, or ran out of time, is repeated with the same items and goes on where it stopped.
        A sequence that is complete, or lies before the last one, is left alone: 0. A producer is a name of 1 to 64
        bytes of UTF-8, used by one at a time; its sequences only rise, gaps are fine. Raises Full when the time is
        up (what is in stays counted), ShutDown, ProducerInUse, TooManyProducers.
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

        ``with q.lease(1000) as lease:`` has ``lease.items`` and ``lease.positions``, and releases them at its end. If it
        ends by an exception, or its process dies, they go to somebody else, at the same positions. Raises Empty or
        ShutDown, as a get.
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
        """Slots: with items of one slot, how many fit."""
        cdef Backend backend = held(self)
        return ring_of(backend).capacity

    def full(self):
        """Is there no free slot? A hint, as with every queue that others use."""
        cdef Backend backend = held(self)
        cdef const Ring* ring = ring_of(backend)
        return sound(backend, slots_in_use(ring[0]) >= ring.capacity)

    def stats(self):
        """One look at the queue's counters."""
        cdef Backend backend = held(self)
        cdef const Ring* ring = ring_of(backend)
        cdef uint64_t pushed = ring.push_position.load()
        cdef uint64_t popped = ring.pop_position.load()
        cdef BoundedBackend shared = backend if isinstance(backend, BoundedBackend) else None
        return sound(backend, BoundedStats(
            capacity=ring.capacity,
            size=backend.size(),
            slots_pushed=pushed & ~closed_bit,
            slots_popped=popped & ~closed_bit,
            slot_bytes=ring.slot_bytes if shared is not None else 0,
            total_bytes=self.segment.total_bytes if shared is not None else LocalQueue.offsets(ring.capacity).total,
            is_shut_down=bool(pushed & closed_bit),
            participants=shared.queue.count_alive() if shared is not None else 0,
            participants_limit=shared.participants if shared is not None else 0,
            tombstones=shared.queue.control().tombstones.load() if shared is not None else 0,
            redelivered=shared.queue.control().redelivered.load() if shared is not None else 0,
            leased=shared.queue.count_leased() if shared is not None else 0,
        ))


cdef Backend shared_body(Backend backend, what="producers"):
    backend.check_open()
    if not isinstance(backend, BoundedBackend):
        raise ValueError(f"a queue without a name has no {what}; use BoundedQueue.create(name, ...)")
    return backend


cdef const Ring* ring_of(Backend backend) except NULL:
    backend.check_open()
    return (<BoundedBackend>backend).ring if isinstance(backend, BoundedBackend) else &(<BoundedLocalBackend>backend).queue.ring()
