# cython: language_level=3, binding=False, freethreading_compatible=True
"""The class SlotQueue: create, open, loan, take, capacity, statistics. Its backend puts and gets."""

from libc.stdint cimport int64_t, uint64_t

from queueduct.core._backend cimport counter_fields
from queueduct.core._queue cimport (
    TIMED_OUT, Backend, Queue, checked_int, computed_deadline, open_backend, sound, waited_until,
)
from queueduct.slots._backend cimport SlotsBackend
from queueduct.slots._eviction cimport evict_surplus, put_evicting
from queueduct.slots._native cimport SlotCounts, gets_closed, puts_closed
from queueduct.slots.loans cimport loan_slot, take_slot

from queueduct.async_calls import AsyncGets, AsyncPuts
from queueduct.core._lease import LeaseMethods
from queueduct.core._put_once import PutOnceMethods
from queueduct.slots._lease import SlotsHolding
from queueduct.slots._put_once import SlotsProducerCall
from queueduct.slots.geometry import SlotsGeometry
from queueduct.stats import SlotStats
from queueduct.watching._participants import ParticipantMethods


cdef class SlotQueue(Queue, AsyncPuts, AsyncGets, PutOnceMethods, LeaseMethods, ParticipantMethods):
    """A queue of slots, for items that are too big to copy: loan one, fill it, publish it; take it, read it.

    ``SlotQueue.create("frames", capacity=8, item=np.dtype(("f4", (1080, 1920))))`` lives in shared memory, by
    name: other processes ``SlotQueue.open("frames")`` it, or get it pickled. One consumer gets each item.

    >>> q = queueduct.SlotQueue.create(None, item=np.dtype(("f4", (2, 2))))
    >>> with q.loan() as slot:
    ...     slot.array[...] = 1.5
    >>> with q.take() as slot:
    ...     print(slot.array.sum())
    6.0
    """

    _geometry = SlotsGeometry
    _producer_call = SlotsProducerCall
    _holding = SlotsHolding

    def __init__(self, *args, **kwargs):
        raise TypeError(
            "a SlotQueue has a name: use SlotQueue.create(name, capacity=..., item=...); "
            "for objects between threads there is BoundedQueue(capacity)"
        )

    @classmethod
    def create(
        cls, name, capacity=8, *, item=None, slot_bytes=None, participants=256, producers=32, directory=None,
        exist_ok=False, replace=False,
    ):
        """Create a queue of that name in shared memory.

        ``item`` is ``bytes``, a numpy dtype, or ``object`` (pickled). ``capacity`` is how many slots there are, of
        ``slot_bytes`` each. ``participants`` is how many threads of all processes may use it at once, ``producers``
        how many producers' names put_once keeps.
        With ``exist_ok`` an existing queue of the same shape is opened instead; with ``replace`` the new queue takes
        the name of an existing one, and those who have the old one open keep it.
        ``directory`` is where its file is, by default ``$QUEUEDUCT_DIR``, or else ``/dev/shm/queueduct-<uid>``.

        >>> q = queueduct.SlotQueue.create("frames", 8, item=np.dtype(("u1", (1080, 1920))))
        >>> q.slots
        8
        >>> q.unlink()
        """
        return cls._create(
            name, item, directory, exist_ok, replace,
            dict(capacity=capacity, slot_bytes=slot_bytes, participants=participants, producers=producers),
        )

    cdef Backend attach(self, object opened):
        return SlotsBackend(opened)

    # -- without a copy ---------------------------------------------------------------------------------

    def loan(self, timeout=None, *, length=None):
        """Return a slot to fill: ``with q.loan() as slot: slot.array[...] = frame``. Raises Full or ShutDown.

        Leaving the ``with`` publishes it; an exception gives it back unpublished. In a queue of bytes the item has
        ``length`` bytes, or the size of the slot if ``length`` is None.

        >>> q = queueduct.SlotQueue.create(None, slot_bytes=1024)
        >>> with q.loan(length=2) as slot:
        ...     slot.view[:] = b"ab"
        >>> q.get()
        b'ab'
        """
        cdef SlotsBackend backend = open_backend(self)
        cdef int64_t deadline = computed_deadline(True, timeout)
        try:
            slot = sound(backend, loan_slot(backend, length, deadline))
        except Exception:
            backend.check_sound()  # a truncated segment is the cause, and is reported instead
            raise
        if slot is None:
            raise backend.why_full(waited_until(deadline, timeout))
        return slot

    def take(self, timeout=None):
        """Return the oldest item in its slot: ``with q.take() as slot: use(slot.array)``. Raises Empty or ShutDown.

        It is read-only. Leaving the ``with`` frees the slot. After an exception, or if this process dies before, the
        item is redelivered to the next consumer, which sees that in ``slot.is_redelivered``.

        >>> q = queueduct.SlotQueue.create(None, slot_bytes=1024)
        >>> q.put(b"ab")
        >>> with q.take() as slot:
        ...     bytes(slot.view)
        b'ab'
        """
        cdef SlotsBackend backend = open_backend(self)
        cdef int64_t deadline = computed_deadline(True, timeout)
        try:
            slot = sound(backend, take_slot(backend, deadline))
        except Exception:
            backend.check_sound()  # a truncated segment is the cause, and is reported instead
            raise
        if slot is None:
            raise backend.why_empty(waited_until(deadline, timeout))
        return slot

    def aloan(self, timeout=None, *, length=None):
        """``async with q.aloan() as slot:``, or ``slot = await q.aloan()``: loan for asyncio.

        >>> import asyncio
        >>> q = queueduct.SlotQueue.create(None, slot_bytes=1024)
        >>> async def work():
        ...     async with q.aloan(length=2) as slot:
        ...         slot.view[:] = b"ab"
        >>> asyncio.run(work())
        """
        from queueduct.core.aio import Borrowing  # here, as in Queue
        return Borrowing(self._bridge().loan, lambda: self.loan(0, length=length), (), timeout)

    def atake(self, timeout=None):
        """``async with q.atake() as slot:``, or ``slot = await q.atake()``: take for asyncio.

        A cancelled atake has taken nothing.

        >>> import asyncio
        >>> q = queueduct.SlotQueue.create(None, slot_bytes=1024)
        >>> q.put(b"ab")
        >>> async def work():
        ...     async with q.atake() as slot:
        ...         return slot.copy()
        >>> asyncio.run(work())
        b'ab'
        """
        from queueduct.core.aio import Borrowing
        return Borrowing(self._bridge().take, self.take, (0,), timeout)

    # -- with a copy ------------------------------------------------------------------------------------

    def put(self, item, block=True, timeout=None, *, overwrite=False):
        """Put a copy of an item; wait for a slot if ``block``, at most ``timeout`` seconds. Raises Full or ShutDown.

        With ``overwrite`` a full queue gives up its oldest item, and returns it; it returns None if there was room. It
        waits only if every slot is loaned or taken.

        >>> q = queueduct.SlotQueue.create(None, 1, slot_bytes=1024)
        >>> q.put(b"a")
        >>> q.put(b"b", overwrite=True)
        b'a'
        """
        cdef SlotsBackend slots = open_backend(self)
        cdef bint evicts = overwrite
        cdef int64_t deadline = computed_deadline(block, timeout)
        cdef object evicted = None
        if evicts:
            evicted = put_evicting(slots, item, deadline)
        elif not slots.put(item, deadline):
            evicted = TIMED_OUT
        if evicted is TIMED_OUT:
            raise slots.why_full(waited_until(deadline, timeout))
        return evicted

    def aput(self, item, timeout=None, *, overwrite=False):
        """``await q.aput(item)``: put without blocking the event loop, with the result of put.

        >>> import asyncio
        >>> q = queueduct.SlotQueue.create(None, slot_bytes=1024)
        >>> asyncio.run(q.aput(b"a"))
        """
        return self._bridge().put(item, timeout, overwrite=overwrite)

    # -- capacity ---------------------------------------------------------------------------------------

    @property
    def capacity(self):
        """How many slots may be in use at a time: see set_capacity."""
        cdef SlotsBackend backend = open_backend(self)
        return sound(backend, backend.slots.capacity())

    @property
    def slots(self):
        """How many slots there are: the capacity that the queue was created with."""
        cdef SlotsBackend backend = open_backend(self)
        return sound(backend, backend.slots.count())

    def set_capacity(self, capacity, on_evict=None):
        """Limit how many slots are in use, 1 to ``slots``, from now on and for all participants.

        Surplus items are evicted, the oldest first: ``on_evict(item)`` is called with each. Slots that are loaned or
        taken stay so; they count when they are given back.

        >>> q = queueduct.SlotQueue.create(None, 8, slot_bytes=1024)
        >>> q.put_many([b"a", b"b"])
        2
        >>> q.set_capacity(1, on_evict=print)
        b'a'
        """
        cdef SlotsBackend slots = open_backend(self)
        cdef object asked = checked_int("capacity", capacity)
        cdef object item
        if not 1 <= asked <= slots.slots.count():
            raise ValueError(
                f"capacity must be between 1 and the queue's {slots.slots.count()} slots: capacity={asked}"
            )
        if on_evict is not None and not callable(on_evict):
            raise TypeError(f"on_evict must be callable or None: on_evict={on_evict!r}")
        slots.queue.recover_if_due(slots.me(), True)  # dead participants' slots would count as used
        slots.queue.set_capacity(asked)
        while True:
            item = evict_surplus(slots)
            if item is TIMED_OUT:
                slots.check_sound()
                return
            if on_evict is not None:
                on_evict(item)

    # -- statistics -------------------------------------------------------------------------------------

    def full(self):
        """Return True if there is no slot to loan. A hint: other threads and processes may change it at once.

        >>> queueduct.SlotQueue.create(None, slot_bytes=1024).full()
        False
        """
        cdef SlotsBackend backend = open_backend(self)
        return sound(backend, not backend.slots.may_be_holdable())

    def stats(self):
        """One look at the queue: where its slots are, and what happened to some.

        >>> queueduct.SlotQueue.create(None, 8, slot_bytes=1024).stats().free
        8
        """
        cdef SlotsBackend slots = open_backend(self)
        cdef SlotCounts counts = slots.queue.count_slots()
        return sound(slots, SlotStats(
            capacity=slots.slots.capacity(),
            size=0 if slots.slots.closed() & gets_closed else counts.queued,
            leased=counts.taken,
            redelivered=slots.queue.control().redelivered.load(),
            puts=slots.slots.published(),
            slot_bytes=slots.slot_bytes,
            resident_bytes=slots.resident_bytes(),
            is_shut_down=bool(slots.slots.closed() & puts_closed),
            participants=slots.participant_table.count_alive(),
            participants_limit=slots.participants,
            slots=slots.slots.count(),
            free=counts.free,
            loaned=counts.loaned,
            queued=counts.queued,
            evicted=slots.queue.control().evicted.load(),
            recovered=slots.queue.control().recovered.load(),
            **counter_fields(slots.queue.counted()),
        ))
