# cython: language_level=3, binding=False, freethreading_compatible=True
"""Eviction from a slot queue: the oldest item makes room for another one, or goes because the capacity has shrunk."""

from libc.stdint cimport int64_t, uint32_t

from queueduct.items._item_kinds cimport OBJECT
from queueduct.native._native cimport Buffer, is_broken
from queueduct.core._queue cimport NOTHING
from queueduct.slots._backend cimport SlotsBody
from queueduct.slots._native cimport Lease, SlotOutcome

from queueduct.items import types as items

cdef object is_its_own = items.is_its_own


cdef object put_evicting(SlotsBody body, object item, int64_t deadline):
    """The evicted item, or None; NOTHING when the time is up."""
    cdef Buffer one
    cdef Lease lease
    cdef object lent = body.lend(item, &one)
    cdef object evicted = None
    cdef int held
    body.check_length(one.bytes)
    while True:
        held = hold_or_evict(body, &lease, deadline)
        if held == 0:
            return NOTHING
        if held != 3:
            break
        evicted = as_evicted(body, &lease)
        if evicted is not NOTHING:
            break
        evicted = None  # what we had is the parent's
    body.fill(&lease, one.data, one.bytes)
    body.publish(&lease, one.bytes, held == 2)
    return evicted


cdef int hold_or_evict(SlotsBody body, Lease* lease, int64_t deadline) except -1:
    """As SlotsBody.hold; 3: the oldest item's slot, and the item is still in it."""
    cdef SlotOutcome outcome
    cdef int waited = 1
    while True:
        outcome = body.slots.try_hold(body.me(), lease[0])
        if outcome == SlotOutcome.full:
            outcome = body.slots.try_evict(body.me(), lease[0])
            if outcome == SlotOutcome.done:
                return 3
            if outcome == SlotOutcome.empty:
                outcome = SlotOutcome.full
        if outcome == SlotOutcome.done:
            return waited
        if not body.go_on(outcome, False, deadline):
            return 0
        waited = 2


cdef object evict_surplus(SlotsBody body):
    """The oldest item while more slots are out than the capacity allows, else NOTHING."""
    cdef Lease lease
    cdef object evicted
    cdef SlotOutcome outcome
    while True:
        outcome = body.slots.try_evict_surplus(body.me(), lease)
        if outcome == SlotOutcome.corrupt or is_broken(body.guard):
            body.raise_corrupt()
        if outcome != SlotOutcome.done:
            return NOTHING
        evicted = as_evicted(body, &lease)
        if evicted is not NOTHING:
            body.leave(&lease, False)
            return evicted


cdef object as_evicted(SlotsBody body, Lease* lease):
    """Who evicts does what it came for: an item that cannot be unpickled is its error, and raises none.

    Any other error puts the item back. NOTHING: unpickling has forked, and the slot is the parent's.
    """
    cdef uint32_t forks = body.queue.roster().generation()
    cdef object copied = None
    cdef object item = NOTHING
    try:
        copied = body.copy_out(lease)
        try:
            item = body.decoded(copied)
        except Exception as error:
            if body.form != OBJECT or not is_its_own(error, copied):
                raise
            item = error
    except BaseException:
        if forks == body.queue.roster().generation():
            body.put_back(lease)
        raise
    return item if forks == body.queue.roster().generation() else NOTHING
