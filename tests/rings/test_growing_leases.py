"""Leases on a queue that grows: positions run through all sub-queues, and what is held keeps its sub-queue."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest

from queueduct import GrowingQueue

COUNT = 500
CALM = 6000


def make(**options):
    """Of records, in sub-queues of 16, 64, 256 and 1024."""
    return GrowingQueue.create("q", **{"item": "i8", "first_bytes": 128, "steps": 4, **options})


def resident(queue_dir):
    return os.stat(queue_dir / "q").st_blocks * 512


def drained(q, most=40):
    """Everything that is in, and where."""
    found = []
    while not q.empty():
        with q.lease(most, timeout=10) as lease:
            found += zip(lease.positions.tolist(), lease.items.tolist(), strict=True)
    return found


def be_calm(q):
    for _ in range(CALM):
        q.put(0)
        q.get()


def test_positions_rise_with_the_items_through_all_sub_queues():
    with make() as q:
        positions = []
        for first in (0, COUNT):
            q.put_many(np.arange(first, first + COUNT))
            found = drained(q)
            assert [number for _, number in found] == list(range(first, first + COUNT))
            positions += [position for position, _ in found]
            be_calm(q)
        assert q.stats().shrunk == 2
        assert np.all(np.diff(positions) > 0)


def test_one_lease_is_of_one_sub_queue():
    with make() as q:
        q.put_many(np.arange(COUNT))
        sizes = []
        while not q.empty():
            with q.lease(100_000) as lease:
                sizes.append(len(lease))
        assert sizes == [16, 64, 256, COUNT - 16 - 64 - 256]


def test_the_get_of_the_last_redelivered_item_reclaims_its_sub_queue():
    with make() as q:
        q.put_many(np.arange(COUNT))
        assert len(q.get_many(16)) == 16
        held = q.lease(64)
        while not q.empty():
            q.get_many(COUNT)
        held.give_back()
        for _ in range(63):
            q.get(timeout=10)
        before = q.stats().reserved_bytes
        q.get(timeout=10)
        assert q.stats().reserved_bytes < before


def test_what_was_given_back_in_every_sub_queue_comes_again_at_its_position():
    with make() as q:
        q.put_many(np.arange(COUNT))
        held, where = [], {}
        while not q.empty():
            lease = q.lease(30)
            where |= dict(zip(lease.positions.tolist(), lease.items.tolist(), strict=True))
            held.append(lease)
        assert sorted(where.values()) == list(range(COUNT))
        assert q.unreleased(range(COUNT + 10)) == sorted(where)
        for lease in held:
            lease.give_back()
        again = {}
        while q.unreleased(where):
            with q.lease(17, timeout=10) as lease:
                assert lease.is_redelivered
                again |= dict(zip(lease.positions.tolist(), lease.items.tolist(), strict=True))
        assert again == where
        assert q.stats().redelivered == COUNT


def test_a_sub_queue_in_which_something_is_held_is_not_given_back(queue_dir):
    with make(first_bytes=4096, steps=5) as q:
        empty = resident(queue_dir)
        q.put_many(np.arange(20_000))
        q.get_many(512)
        lease = q.lease(1)  # in the second
        while not q.empty():
            q.get_many(10_000)
        be_calm(q)
        assert q.stats().written_level == 0
        assert resident(queue_dir) > empty
        assert lease.items.tolist() == [512]
        assert q.unreleased(range(1000)) == lease.positions.tolist()
        lease.release()
        assert resident(queue_dir) == empty


def test_while_something_is_held_in_the_first_sub_queue_it_does_not_shrink(queue_dir):
    with make() as q:
        q.put_many(np.arange(COUNT))
        with q.lease(1) as lease:
            while not q.empty():
                q.get_many(1000)
            be_calm(q)
            assert q.stats().written_level == 3
            assert q.unreleased(range(COUNT)) == lease.positions.tolist() == [0]
        be_calm(q)
        assert q.stats().written_level == 0


def test_a_queue_that_would_grow_into_what_is_held_waits_for_the_release():
    with make() as q:
        q.put_many(np.arange(80))
        q.get_many(16)
        lease = q.lease(1)  # in the second
        q.get_many(100)
        be_calm(q)
        assert q.stats().written_level == 0
        put = q.put_many(np.arange(COUNT), block=False)
        assert put == 16
        putter = threading.Thread(target=q.put_many, args=(np.arange(put, COUNT),))
        putter.start()
        lease.release()
        putter.join(30)
        assert not putter.is_alive()
        assert [number for _, number in drained(q)] == list(range(COUNT))


@pytest.mark.parametrize("released", [0, 5])
def test_what_a_killed_holder_had_in_every_sub_queue_goes_to_the_next(queue_dir, released):
    with make() as q:
        empty = resident(queue_dir)
        q.put_many(np.arange(COUNT))
        child = os.fork()
        if child == 0:
            leases = []
            while not q.empty():
                leases.append(q.lease(100_000))
            for lease in leases:
                if released:
                    lease._holding.release(released)
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
        found = []
        while q.unreleased(range(COUNT + 4)):
            with q.lease(50, timeout=10) as lease:
                assert lease.is_redelivered
                found += lease.items.tolist()
        firsts = (0, 16, 16 + 64, 16 + 64 + 256)
        gone = {first + i for first in firsts for i in range(released)}
        assert sorted(found) == sorted(set(range(COUNT)) - gone)
        be_calm(q)
        assert resident(queue_dir) == empty
