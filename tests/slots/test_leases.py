"""Leases of slots beyond what every kind promises: frames, order, eviction, and slots taken one by one."""

from __future__ import annotations

import numpy as np
import pytest

import queueduct
from queueduct import SlotQueue

FRAME = np.dtype(("<f4", (4, 5)))


def frames(start, stop):
    return np.arange(start * 20, stop * 20, dtype="<f4").reshape(-1, 4, 5)


def test_frames_come_as_one_array_that_is_the_holders_own():
    with SlotQueue.create("q", 6, item=FRAME) as q:
        q.put_many(frames(0, 5))
        with q.lease(3) as lease:
            assert lease.items.shape == (3, 4, 5)
            assert lease.items.dtype == np.dtype("<f4")
            np.testing.assert_array_equal(lease.items, frames(0, 3))
            kept = lease.items
        q.put_many(frames(5, 9))
        np.testing.assert_array_equal(kept, frames(0, 3))
        with q.lease(100) as lease:
            np.testing.assert_array_equal(lease.items, frames(3, 9))
            assert lease.positions.tolist() == [3, 4, 5, 6, 7, 8]


def test_what_was_given_back_comes_oldest_first_and_apart_from_what_is_new():
    with SlotQueue.create("q", 8, item="i8") as q:
        q.put_many(range(6))
        one, two = q.lease(2), q.lease(2)
        two.give_back()
        one.release(1)
        with q.lease(2) as lease:
            assert (lease.positions.tolist(), lease.is_redelivered) == ([1, 2], True)
        q.put_many([6, 7])
        with q.lease(100) as lease:
            assert (lease.positions.tolist(), lease.is_redelivered) == ([3], True)
        with q.lease(100) as lease:
            assert (lease.items.tolist(), lease.is_redelivered) == ([4, 5, 6, 7], False)


def test_a_taken_slot_is_unreleased_like_a_leased_one():
    with SlotQueue.create("q", 4) as q:
        q.put_many([b"a", b"b", b"c"])
        with q.take() as slot:
            assert q.unreleased([0, 1, 2, 99]) == [slot.position] == [0]
        taken = q.take()
        taken.give_back()
        assert q.unreleased(range(3)) == [1]
        with q.lease(9) as lease:
            assert (lease.items, lease.is_redelivered) == ([b"b"], True)
        assert q.unreleased(range(3)) == []
        with q.take() as slot:
            assert (slot.position, slot.is_redelivered) == (2, False)


def test_an_item_that_was_given_back_can_be_evicted_and_is_gone():
    with SlotQueue.create("q", 2, item="i8") as q:
        q.put_many([1, 2])
        q.lease(1).give_back()
        assert q.put(3, overwrite=True) == 1
        assert q.unreleased([0]) == []
        with q.lease(9) as lease:
            assert lease.items.tolist() == [2, 3]


def test_shutdown_at_once_ends_leases_and_leaves_what_is_held_to_its_holder():
    with SlotQueue.create("q", 4, item="i8") as q:
        q.put_many([1, 2])
        held = q.lease(1)
        q.shutdown(immediate=True)
        with pytest.raises(queueduct.ShutDown):
            q.lease(1)
        held.release()


def test_a_lease_outlives_the_handle_it_came_from():
    with SlotQueue.create("q", 4, item="i8") as q:
        q.put_many([1, 2])
        other = SlotQueue.open("q")
        lease = other.lease(1)
        other.close()
        assert q.unreleased(lease.positions) == [0]
        lease.release()
        assert q.unreleased([0]) == []
        assert q.stats().free == 3
