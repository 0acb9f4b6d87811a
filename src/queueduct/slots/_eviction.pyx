# cython: language_level=3, binding=False, freethreading_compatible=True
"""Eviction from a slot queue: the oldest item is removed to make room, or because the capacity has shrunk."""

from libc.stdint cimport int64_t, uint32_t

from queueduct.items._item_kinds cimport OBJECT
from queueduct.native._native cimport Buffer, is_broken
from queueduct.core._backend cimport lend
from queueduct.core._queue cimport TIMED_OUT
from queueduct.slots._backend cimport SlotsBackend
from queueduct.slots._native cimport Lease, SlotOutcome, owner_of

from queueduct.items import types as items

cdef object is_its_own = items.is_its_own


cdef object put_evicting(SlotsBackend backend, object item, int64_t deadline):
    """Returns the evicted item, or None if there was room, or TIMED_OUT if the time is up."""
    cdef Buffer one
    cdef Lease lease
    cdef object lent = lend(backend, item, &one)
    cdef object evicted = None
    cdef int held
    cdef uint32_t me
    backend.check_length(one.bytes)
    while True:
        held = hold_or_evict(backend, &lease, deadline)
        if held == 0:
            return TIMED_OUT
        if held != 3:
            break
        evicted = as_evicted(backend, &lease)
        if evicted is not TIMED_OUT:
            break
        evicted = None  # a fork: the slot is the parent's
    backend.fill(&lease, one.data, one.bytes)
    me = owner_of(lease.word)
    backend.publish(&lease, one.bytes, held == 2)
    backend.queue.count_put(me, one.bytes)
    return evicted


cdef int hold_or_evict(SlotsBackend backend, Lease* lease, int64_t deadline) except -1:
    """As SlotsBackend.hold(). Returns 3 if it is the oldest item's slot, with the item still in it."""
    cdef SlotOutcome outcome
    cdef int waited = 1
    while True:
        outcome = backend.slots.try_hold(backend.me(), lease[0])
        if outcome == SlotOutcome.full:
            outcome = backend.slots.try_evict(backend.me(), lease[0])
            if outcome == SlotOutcome.done:
                return 3
            if outcome == SlotOutcome.empty:
                outcome = SlotOutcome.full
        if outcome == SlotOutcome.done:
            return waited
        if not backend.go_on(outcome, False, deadline, waited == 1):
            return 0
        waited = 2


cdef object evict_surplus(SlotsBackend backend):
    """Returns the oldest item if more slots are in use than the capacity allows, else TIMED_OUT."""
    cdef Lease lease
    cdef object evicted
    cdef SlotOutcome outcome
    while True:
        outcome = backend.slots.try_evict_surplus(backend.me(), lease)
        if outcome == SlotOutcome.corrupt or is_broken(backend.guard):
            backend.raise_corrupt()
        if outcome != SlotOutcome.done:
            return TIMED_OUT
        evicted = as_evicted(backend, &lease)
        if evicted is not TIMED_OUT:
            backend.leave(&lease, False)
            return evicted


cdef object as_evicted(SlotsBackend backend, Lease* lease):
    """Returns the evicted item. For an item that cannot be unpickled it returns the error: the eviction goes on.

    Any other error puts the item back, and is raised. Returns TIMED_OUT in a child that unpickling has forked.
    """
    cdef uint32_t forks = backend.queue.participant_table().generation()
    cdef object copied = None
    cdef object item = TIMED_OUT
    try:
        copied = backend.copy_out(lease)
        try:
            item = backend.decoded(copied)
        except Exception as error:
            if backend.item_kind != OBJECT or not is_its_own(error, copied):
                raise
            item = error
    except BaseException:
        if forks == backend.queue.participant_table().generation():
            backend.put_back(lease)
        raise
    return item if forks == backend.queue.participant_table().generation() else TIMED_OUT
