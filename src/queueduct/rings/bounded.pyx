# cython: language_level=3, binding=False, freethreading_compatible=True
"""The class BoundedQueue: create, open, statistics. Its backends put and get."""

from libc.stdint cimport uint64_t

from queueduct.rings.shared._bounded_backend cimport BoundedBackend, LocalBackend
from queueduct.native._native cimport closed_bit
from queueduct.rings.shared._native cimport BoundedReferences, Ring, BoundedQueueHandle, slots_in_use
from queueduct.core._backend cimport counter_fields
from queueduct.rings.shared._backend cimport counted_by
from queueduct.core._queue cimport Backend, Queue, checked_int, held, install, raise_no_name, sound

from queueduct.async_calls import AsyncGets, AsyncPuts
from queueduct.core._lease import LeaseMethods
from queueduct.core._put_once import PutOnceMethods
from queueduct.rings.shared._lease import RingHolding
from queueduct.rings.shared._put_once import RingProducerCall
from queueduct.rings.geometry import BoundedGeometry
from queueduct.stats import BoundedStats
from queueduct.watching._participants import ParticipantMethods


cdef class BoundedQueue(Queue, AsyncPuts, AsyncGets, PutOnceMethods, LeaseMethods, ParticipantMethods):
    """BoundedQueue(capacity=1024)\n--\n
    A bounded queue of many producers and many consumers: one consumer gets each item.

    ``BoundedQueue(1024)`` passes references between the threads of this process.
    ``BoundedQueue.create("ticks", capacity=65536, item=dtype)`` lives in shared memory, by name:
    other processes ``BoundedQueue.open("ticks")`` it, or get it pickled.

    >>> q = queueduct.BoundedQueue(1024)
    >>> q.put("a")
    >>> q.get()
    'a'
    """

    _geometry = BoundedGeometry
    _producer_call = RingProducerCall
    _holding = RingHolding

    def __init__(self, capacity=1024):
        if isinstance(capacity, str):
            raise_no_name(type(self), capacity)
        BoundedGeometry(1, 0, checked_int("capacity", capacity), sizeof(void*)).check()
        install(self, LocalBackend(capacity))
        self.stay_in_process()

    @classmethod
    def create(
        cls, name, capacity=1024, *, item=None, slot_bytes=None, participants=256, producers=32, directory=None,
        exist_ok=False, replace=False,
    ):
        """Create a queue of that name in shared memory.

        ``item`` is ``bytes``, a numpy dtype, or ``object`` (pickled). ``capacity`` is the number of slots, from 1 on;
        a bytes or object item longer than ``slot_bytes`` takes several slots. ``participants`` is how many threads of
        all processes may use it at once, ``producers`` how many producers' names put_once keeps.
        With ``exist_ok`` an existing queue of the same shape is opened instead; with ``replace`` the new queue takes
        the name of an existing one, and those who have the old one open keep it.
        ``directory`` is where its file is, by default ``$QUEUEDUCT_DIR``, or else ``/dev/shm/queueduct-<uid>``.

        >>> q = queueduct.BoundedQueue.create("ticks", 65536, item=[("symbol", "S8"), ("price", "f8")])
        >>> q.put((b"ACME", 101.5))
        >>> float(q.get()["price"])
        101.5
        >>> q.unlink()
        """
        return cls._create(
            name, item, directory, exist_ok, replace,
            dict(capacity=capacity, slot_bytes=slot_bytes, participants=participants, producers=producers),
        )

    cdef Backend attach(self, object opened):
        return BoundedBackend(opened)

    @property
    def capacity(self):
        """The number of slots: how many items of one slot fit."""
        cdef Backend backend = held(self)
        return ring_of(backend).capacity

    def full(self):
        """Return True if there is no free slot. A hint: other threads and processes may change it at once.

        >>> queueduct.BoundedQueue(1).full()
        False
        """
        cdef Backend backend = held(self)
        cdef const Ring* ring = ring_of(backend)
        return sound(backend, slots_in_use(ring[0]) >= ring.capacity)

    def stats(self):
        """One look at the queue's counters.

        >>> queueduct.BoundedQueue(8).stats().size
        0
        """
        cdef Backend backend = held(self)
        cdef const Ring* ring = ring_of(backend)
        cdef uint64_t pushed = ring.push_position.load()
        cdef uint64_t popped = ring.pop_position.load()
        cdef BoundedBackend shared = backend if isinstance(backend, BoundedBackend) else None
        return sound(backend, BoundedStats(
            capacity=ring.capacity,
            size=backend.size(),
            leased=shared.queue.count_leased() if shared is not None else 0,
            redelivered=(<BoundedQueueHandle*>shared.queue).control().redelivered.load() if shared is not None else 0,
            push_position=pushed & ~closed_bit,
            pop_position=popped & ~closed_bit,
            tombstones=(<BoundedQueueHandle*>shared.queue).control().tombstones.load() if shared is not None else 0,
            slot_bytes=ring.slot_bytes if shared is not None else 0,
            resident_bytes=(
                shared.resident_bytes() if shared is not None else BoundedReferences.offsets(ring.capacity).total
            ),
            is_shut_down=bool(pushed & closed_bit),
            participants=shared.queue.count_alive() if shared is not None else 0,
            participants_limit=shared.participants if shared is not None else 0,
            **counter_fields(counted_by(shared, pushed & ~closed_bit, popped & ~closed_bit)),
        ))


cdef const Ring* ring_of(Backend backend) except NULL:
    backend.check_open()
    if isinstance(backend, BoundedBackend):
        return &(<BoundedQueueHandle*>(<BoundedBackend>backend).queue).ring()
    return &(<LocalBackend>backend).queue.ring()
