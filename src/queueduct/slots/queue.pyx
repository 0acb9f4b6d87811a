# cython: language_level=3, binding=False, freethreading_compatible=True
"""SlotQueue: how it is made, and what it says of itself. The work is in its backend."""

from libc.stdint cimport int64_t, uint64_t

from queueduct.core._queue cimport TIMED_OUT, Backend, Queue, checked_int, computed_deadline, held, install, sound
from queueduct.slots._backend cimport SlotsBackend
from queueduct.slots._eviction cimport evict_surplus, put_evicting
from queueduct.slots.loans cimport loan_slot, take_slot
from queueduct.slots._native cimport SlotCounts, puts_closed

from queueduct.slots import _lease as _slots_leasing
from queueduct.slots import _put_once as _slots_once
from queueduct.segments import creation as creating
from queueduct.items import types as items
from queueduct.segments import segment
from queueduct.errors import Empty, Full
from queueduct.slots.geometry import SlotsGeometry
from queueduct.stats import SlotStats


cdef class SlotQueue(Queue):
    """A queue of slots, for items that are too big to copy: loan one, fill it, publish it; take it, read it.

    ``SlotQueue.create("frames", capacity=8, item=np.dtype(("f4", (1080, 1920))))`` lives in shared memory, by
    name: other processes ``SlotQueue.open("frames")`` it, or get it pickled. Each item goes to one taker.
    """

    def __init__(self, *args, **kwargs):
        raise TypeError(
            "a SlotQueue has a name: use SlotQueue.create(name, capacity=..., item=...); "
            "for objects between threads there is BoundedQueue(capacity)"
        )

    @classmethod
    def create(
        cls, name, capacity=8, *, item=bytes, slot_bytes=None, participants=256, producers=32, exist_ok=False
    ):
        """Make a queue of that name in shared memory.

        ``item`` is ``bytes``, a numpy dtype, or ``object`` (pickled). ``capacity`` is how many slots there are, of
        ``slot_bytes`` each. ``participants`` is how many threads of all processes may use it at once, ``producers``
        how many names put_once keeps. With ``exist_ok`` an existing queue of the same shape is opened instead.
        """
        item_type = items.ItemType.of(item)
        geometry = SlotsGeometry(
            checked_int("participants", participants),
            checked_int("producers", producers),
            checked_int("capacity", capacity),
            item_type.slot_bytes(None if slot_bytes is None else checked_int("slot_bytes", slot_bytes)),
        )
        return creating.create(name, geometry, item_type, cls._attach, exist_ok=exist_ok)

    @classmethod
    def open(cls, name, *, allow_pickle=True):
        """Open the slot queue of that name. Without ``allow_pickle``, one of objects is refused."""
        return cls._attach(segment.open_segment(name, kind="slots"), allow_pickle)

    @classmethod
    def _attach(cls, opened, allow_pickle=True):
        cdef SlotQueue self = cls.__new__(cls)
        try:
            opened.item.check_pickle(opened.name, allow_pickle)
            install(self, SlotsBackend(opened))
        except BaseException:
            opened.close()
            raise
        self.segment = opened
        return self

    # -- without a copy ---------------------------------------------------------------------------------

    def loan(self, timeout=None, *, length=None):
        """A slot to fill: ``with q.loan() as slot: slot.array[...] = frame``. Raises Full or ShutDown.

        Leaving the ``with`` publishes it, an exception gives it back unpublished. Of a queue of bytes the item has
        ``length`` bytes; all of the slot if it is not given.
        """
        cdef Backend backend = held(self)
        try:
            return sound(backend, loan_slot(slots_body(backend), length, computed_deadline(True, timeout)))
        except Exception:
            backend.check_sound()  # then that is the news
            raise

    def take(self, timeout=None):
        """The oldest item where it lies: ``with q.take() as slot: use(slot.array)``. Raises Empty or ShutDown.

        It is read-only. Leaving the ``with`` frees the slot; after an exception, or if this process dies before, the
        item is delivered again, to whoever takes next, and says so: ``slot.redelivered``.
        """
        cdef Backend backend = held(self)
        try:
            return sound(backend, take_slot(slots_body(backend), computed_deadline(True, timeout)))
        except Exception:
            backend.check_sound()  # then that is the news
            raise

    # -- with one ---------------------------------------------------------------------------------------

    def put(self, item, block=True, timeout=None, *, overwrite=False):
        """Put a copy of an item; wait for a slot if ``block``, at most ``timeout`` seconds. Raises Full or ShutDown.

        With ``overwrite`` the oldest item makes room, and is returned; None if that was not needed. Only when every
        slot is in somebody's hands does that wait.
        """
        cdef Backend backend = held(self)
        cdef SlotsBackend slots = slots_body(backend)
        cdef bint evicts = overwrite
        cdef int64_t deadline = computed_deadline(block, timeout)
        cdef object evicted = None
        if evicts:
            evicted = put_evicting(slots, item, deadline)
        elif not slots.put(item, deadline):
            evicted = TIMED_OUT
        if evicted is TIMED_OUT:
            raise Full
        return evicted

    def put_once(self, items, producer, sequence, *, block=True, timeout=None):
        """Put all of ``items`` exactly once for this sequence of this producer; returns how many it put now.

        A call that was killed, or ran out of time, is repeated with the same items and goes on where it stopped.
        A sequence that is complete, or lies before the last one, is left alone: 0. A producer is a name of 1 to 64
        bytes of UTF-8, used by one at a time; its sequences only rise, gaps are fine. Raises Full when the time is
        up (what is in stays counted), ShutDown, ProducerInUse, TooManyProducers.
        """
        cdef Backend backend = held(self)
        try:
            return sound(
                backend, _slots_once.put_once(slots_body(backend), items, producer, sequence, computed_deadline(block, timeout))
            )
        except Exception:
            backend.check_sound()  # then that is the news
            raise

    def producers(self):
        """What put_once keeps of each producer: a list of (name, sequence, done, total)."""
        cdef Backend backend = held(self)
        return sound(backend, _slots_once.producers(slots_body(backend)))

    def forget_producer(self, name):
        """Make room for another name in the table of producers. A sequence repeated afterwards is put again."""
        cdef Backend backend = held(self)
        try:
            sound(backend, _slots_once.forget_producer(slots_body(backend), name))
        except Exception:
            backend.check_sound()  # then that is the news
            raise

    # -- several at a time, until they are released -----------------------------------------------------

    def lease(self, max_items, block=True, timeout=None):
        """Take at least one item and at most ``max_items``, as copies, and keep them in their slots until released.

        ``with q.lease(100) as lease:`` has ``lease.items`` and ``lease.positions``, and releases them at its end. If it
        ends by an exception, or its process dies, they go to somebody else, at the same positions. Raises Empty or
        ShutDown, as a get.
        """
        cdef Backend backend = held(self)
        cdef object limit = checked_int("max_items", max_items)
        if limit < 1:
            raise ValueError(f"max_items must be at least 1: max_items={max_items}")
        taken = _slots_leasing.lease(
            slots_body(backend), self.name, min(limit, 1 << 62), computed_deadline(block, timeout)
        )
        if taken is None:
            raise Empty
        return taken

    def unreleased(self, positions):
        """Those of the positions that somebody has taken, and nobody has given back for good."""
        cdef Backend backend = held(self)
        return sound(backend, _slots_leasing.unreleased(slots_body(backend), positions))

    # -- capacity ---------------------------------------------------------------------------------------

    @property
    def capacity(self):
        """How many slots may be in use at a time: see set_capacity."""
        cdef Backend backend = held(self)
        return sound(backend, slots_body(backend).slots.capacity())

    @property
    def slots(self):
        """How many slots there are: what the queue was created with."""
        cdef Backend backend = held(self)
        return sound(backend, slots_body(backend).slots.count())

    def set_capacity(self, capacity, on_evict=None):
        """Let at most so many slots be in use, 1 to ``slots``, from now on and for everybody.

        What is too much then is evicted, the oldest first: ``on_evict(item)`` is called with each. Slots in
        somebody's hands stay there; they count when they come back.
        """
        cdef Backend backend = held(self)
        cdef SlotsBackend slots = slots_body(backend)
        cdef object asked = checked_int("capacity", capacity)
        cdef object item
        if not 1 <= asked <= slots.slots.count():
            raise ValueError(f"capacity must be between 1 and the queue's {slots.slots.count()} slots: capacity={asked}")
        if on_evict is not None and not callable(on_evict):
            raise TypeError(f"on_evict must be callable or None: on_evict={on_evict!r}")
        slots.queue.recover_if_due(slots._me(), True)  # slots of the dead would count as used
        slots.queue.set_capacity(asked)
        while True:
            item = evict_surplus(slots)
            if item is TIMED_OUT:
                slots.check_sound()
                return
            if on_evict is not None:
                on_evict(item)

    # -- looks ------------------------------------------------------------------------------------------

    def full(self):
        """Is there no slot to loan? A hint, as with every queue that others use."""
        cdef Backend backend = held(self)
        return sound(backend, not slots_body(backend).slots.looks_holdable())

    def stats(self):
        """One look at the queue: where its slots are, and what happened to some."""
        cdef Backend backend = held(self)
        cdef SlotsBackend slots = slots_body(backend)
        cdef SlotCounts counts = slots.queue.count_slots()
        return sound(backend, SlotStats(
            capacity=slots.slots.capacity(),
            slots=slots.slots.count(),
            size=slots.size(),
            free=counts.free,
            loaned=counts.loaned,
            queued=counts.queued,
            taken=counts.taken,
            published=slots.slots.published(),
            slot_bytes=slots.slot_bytes,
            total_bytes=self.segment.total_bytes,
            is_shut_down=bool(slots.slots.closed() & puts_closed),
            participants=slots.queue.count_alive(),
            participants_limit=slots.participants,
            evicted=slots.queue.control().evicted.load(),
            recovered=slots.queue.control().recovered.load(),
            redelivered=slots.queue.control().redelivered.load(),
            leased=counts.taken,
        ))


cdef SlotsBackend slots_body(Backend backend):
    backend.check_open()
    return backend
