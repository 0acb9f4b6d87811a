# cython: language_level=3, binding=False, freethreading_compatible=True
"""Slots lent to a caller: LoanedSlot to fill, TakenSlot to read; and when their views end."""

cimport cython
from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_FillInfo

from queueduct.items._item_kinds cimport OBJECT, RECORD
from queueduct.native._native cimport lower
from queueduct.core._queue cimport TIMED_OUT, checked_int

from types import GenericAlias

import numpy

from queueduct.items.views import Session, slot_view

cdef str KEPT = (
    "a memoryview of this slot, or something made from it, is still in use: "
    "release it before the slot goes to others"
)
cdef str OVER = "this slot was given back already: take or loan another one"
cdef str PARENTS = "this slot belongs to the process that we were forked from: take or loan one of our own"


@cython.final
@cython.no_gc_clear
cdef class SlotMemory:

    def __getbuffer__(self, Py_buffer* view, int flags):
        if not self.is_loan and flags & PyBUF_WRITABLE:
            raise BufferError("a taken slot is read-only: copy it to change it")
        # first count, then read the flag: the thread that ends the slot lowers the flag, then reads the count
        self.exports.fetch_add(1)
        if not self.is_open:
            self.exports.fetch_add(-1)
            raise BufferError(OVER)
        try:
            PyBuffer_FillInfo(view, self, <void*>self.lease.data, self.length, not self.is_loan, flags)
        except BaseException:
            self.exports.fetch_add(-1)
            raise

    def __releasebuffer__(self, Py_buffer* view):
        self.exports.fetch_add(-1)

    def __dealloc__(self):
        # dropped without an end: a loan is not published, a taken item goes to another consumer
        if not self.is_open or self.forks != self.backend.queue.participant_table().generation():
            return
        if self.is_loan:
            if self.backend.slots.leave(self.lease):
                self.backend.queue.room().notify()
        elif self.backend.slots.put_back(self.lease):
            self.backend.queue.rest().forget(self.noted_at)
            self.backend.queue.items().notify()
            self.backend.queue.wake_the_rest()
        self.backend.queue.participant_table().let_go_of_ended()


cdef class Slot:
    """A slot lent to a caller."""
    # Every call is a critical section: see Reader.

    def __init__(self, *args, **kwargs):
        raise TypeError("a slot is lent by SlotQueue.loan() or SlotQueue.take()")

    cdef SlotMemory _mine(self):
        cdef SlotMemory memory = self.memory
        if not memory.is_open:
            raise ValueError(OVER)
        if memory.forks != memory.backend.queue.participant_table().generation():
            raise ValueError(PARENTS)
        return memory

    cdef int _end_views(self, SlotMemory memory) except -1:
        """Ends all views of the slot. If one cannot be ended, raises BufferError and ends nothing."""
        cdef object view = self.lent_view
        if view is not None:
            try:
                view.release()
            except BufferError:
                raise BufferError(KEPT) from None
            self.lent_view = None
            view = None
        if not lower(memory.is_open):  # another thread has just ended it
            raise ValueError(OVER)
        if memory.exports.load() > 0:
            memory.is_open = True
            raise BufferError(KEPT)
        if self.session is not None:
            self.session.is_over = True
            self.lent_array = None
        return 0

    cdef int _let_go(self):
        """After an exception, with views still in use: the slot is given back when the last view is dropped."""
        cdef SlotMemory kept = self.memory
        self.memory = SlotMemory.__new__(SlotMemory)
        self.memory.backend = kept.backend
        self.memory.lease = kept.lease
        self.memory.length = kept.length
        self.lent_view = self.lent_array = None
        return 0

    @property
    @cython.critical_section
    def view(self):
        """The slot itself as a memoryview of bytes; released with the slot."""
        cdef SlotMemory memory = self._mine()
        if self.lent_view is None:
            self.lent_view = memoryview(memory)
        return self.lent_view

    @property
    @cython.critical_section
    def array(self):
        """The slot itself as an array: of the queue's dtype, or of uint8. After the slot its every use raises."""
        cdef SlotMemory memory = self._mine()
        cdef object dtype
        if self.lent_array is None:
            dtype = memory.backend.dtype
            if dtype is None:
                array = numpy.ndarray((memory.length,), numpy.uint8, buffer=memory)
            elif dtype.subdtype is None:
                array = numpy.ndarray((), dtype, buffer=memory)
            else:
                array = numpy.ndarray(dtype.shape, dtype.base, buffer=memory)
            self.session = Session("its slot was given back, and may hold another item by now")
            self.lent_array = slot_view(array, self.session)
        return self.lent_array

    @property
    @cython.critical_section
    def index(self):
        """The number of the slot in the queue."""
        return self.memory.lease.slot

    @property
    @cython.critical_section
    def closed(self):
        """True if the slot was given back."""
        return False if self.memory.is_open else True

    def __len__(self):
        return self.memory.length

    def __enter__(self):
        self._mine()
        return self

    @cython.critical_section
    def __exit__(self, kind, error, trace):
        cdef bint is_loan = self.memory.is_loan
        if not self.memory.is_open:
            return
        if kind is None:
            self.publish() if is_loan else self.release()
            return
        try:
            self.cancel() if is_loan else self.give_back()
        except BufferError:  # the exception that brought us here is the news
            self._let_go()

    def __reduce__(self):
        raise TypeError("a slot cannot be pickled: it belongs to one process; pickle a copy of what is in it")


@cython.final
cdef class LoanedSlot(Slot):
    """A slot to fill. Leaving its ``with`` publishes it; an exception inside gives it back unpublished.

    >>> q = queueduct.SlotQueue.create(None, slot_bytes=1024)
    >>> with q.loan(length=2) as slot:
    ...     slot.view[:] = b"ab"
    """

    @cython.critical_section
    def publish(self, length=None):
        """Put the item in the queue; of bytes, the first ``length``. Ends its views.

        >>> q = queueduct.SlotQueue.create(None, slot_bytes=1024)
        >>> slot = q.loan()
        >>> slot.view[:2] = b"ab"
        >>> slot.publish(2)
        >>> q.get()
        b'ab'
        """
        asked = None if length is None else checked_int("length", length)  # first: its code may end the slot
        cdef SlotMemory memory = self._mine()
        cdef uint64_t size = memory.length
        if asked is not None:
            if memory.backend.item_kind == RECORD:
                raise ValueError("a record has the length of its dtype: publish() takes none")
            if not 0 <= asked <= memory.length:
                raise ValueError(f"length must be between 0 and the slot's {memory.length} bytes: length={asked}")
            size = asked
        self._end_views(memory)
        if memory.backend.is_closing:
            memory.backend.leave(&memory.lease, False)
            memory.backend.check_open()
        memory.backend.publish(&memory.lease, size, memory.has_waited)
        memory.backend.queue.count_put_by_any(size)

    @cython.critical_section
    def cancel(self):
        """Give the slot back unpublished. Ends its views.

        >>> q = queueduct.SlotQueue.create(None, slot_bytes=1024)
        >>> q.loan().cancel()
        >>> len(q)
        0
        """
        cdef SlotMemory memory = self._mine()
        self._end_views(memory)
        memory.backend.leave(&memory.lease, False)


@cython.final
cdef class TakenSlot(Slot):
    """An item to read in shared memory. Leaving its ``with`` releases it; an exception inside puts it back.

    >>> q = queueduct.SlotQueue.create(None, item=np.dtype(("f4", 3)))
    >>> q.put(np.ones(3, "f4"))
    >>> with q.take() as slot:
    ...     print(slot.array.mean())
    1.0
    """

    __class_getitem__ = classmethod(GenericAlias)

    @property
    @cython.critical_section
    def position(self):
        """How many items were published before this one. A redelivered item keeps its position."""
        return self.memory.lease.position

    @property
    @cython.critical_section
    def is_redelivered(self):
        """True if a consumer had the item before, and died or gave it back."""
        return bool(self.memory.lease.redelivered)

    @property
    @cython.critical_section
    def deliveries(self):
        """How often the item has been delivered, this time included: a holder that died or gave it back counts."""
        return self.memory.lease.deliveries

    @cython.critical_section
    def copy(self):
        """Return the item as ``get`` would.

        >>> q = queueduct.SlotQueue.create(None, slot_bytes=1024)
        >>> q.put(b"ab")
        >>> with q.take() as slot:
        ...     slot.copy()
        b'ab'
        """
        cdef SlotMemory memory = self._mine()
        copied = memory.backend.copy_out(&memory.lease)
        memory.backend.check_sound()
        return memory.backend.decoded(copied)

    @cython.critical_section
    def release(self):
        """Release the item: its slot is free. Ends its views.

        >>> q = queueduct.SlotQueue.create(None, slot_bytes=1024)
        >>> q.put(b"ab")
        >>> q.take().release()
        >>> len(q)
        0
        """
        cdef SlotMemory memory = self._mine()
        self._end_views(memory)
        memory.backend.queue.rest().forget(memory.noted_at)
        memory.backend.leave(&memory.lease, memory.has_waited)
        memory.backend.queue.count_got_by_any(memory.lease.bytes, 1)
        memory.backend.queue.wake_the_rest()

    @cython.critical_section
    def give_back(self):
        """Give the item to another consumer, which sees it as ``is_redelivered``. Ends its views.

        >>> q = queueduct.SlotQueue.create(None, slot_bytes=1024)
        >>> q.put(b"ab")
        >>> q.take().give_back()
        >>> q.take().is_redelivered
        True
        """
        cdef SlotMemory memory = self._mine()
        self._end_views(memory)
        memory.backend.queue.rest().forget(memory.noted_at)
        memory.backend.put_back(&memory.lease)
        memory.backend.queue.wake_the_rest()


cdef int begin(Slot slot, SlotMemory memory) except -1:
    memory.forks = memory.backend.queue.participant_table().generation()
    memory.is_open = True
    slot.memory = memory
    return 0


cdef object loan_slot(SlotsBackend backend, object length, int64_t deadline):
    """Returns a LoanedSlot, or None if the time is up."""
    cdef SlotMemory memory = SlotMemory.__new__(SlotMemory)
    cdef LoanedSlot slot = LoanedSlot.__new__(LoanedSlot)
    cdef int held
    backend.check_open()
    if backend.item_kind == OBJECT:
        raise TypeError("a slot of pickled objects cannot be filled in place: use put(), or create the queue of bytes")
    memory.backend = backend
    memory.is_loan = True
    memory.length = backend.slot_bytes
    if length is not None:
        if backend.item_kind == RECORD:
            raise ValueError("a record has the length of its dtype: loan() takes none")
        asked = checked_int("length", length)
        if asked < 0:
            raise ValueError(f"length must not be negative: length={asked}")
        backend.check_length(min(asked, 1 << 62))
        memory.length = asked
    held = backend.hold(&memory.lease, deadline)
    if held == 0:
        return None
    memory.has_waited = held == 2
    begin(slot, memory)
    return slot


cdef object take_slot(SlotsBackend backend, int64_t deadline):
    """Returns a TakenSlot, or None if the time is up."""
    cdef SlotMemory memory = SlotMemory.__new__(SlotMemory)
    cdef TakenSlot slot = TakenSlot.__new__(TakenSlot)
    cdef int taken
    backend.check_open()
    memory.backend = backend
    taken = backend.take(&memory.lease, deadline)
    if taken == 0:
        return None
    memory.length = backend.slot_bytes if backend.item_kind == RECORD else memory.lease.bytes
    memory.has_waited = taken == 2
    memory.noted_at = backend.queue.rest().note()
    begin(slot, memory)
    return slot
