"""Holders of leases are killed at random moments, give back, or release a part.

Allowed, and nothing else: every item is noted by some holder before it is released, an item that is noted twice is so
at the same position, and in the end no slot is left claimed.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import penstock

NOTE = np.dtype([("position", "i8"), ("number", "i8")])
HOLDERS = 3


def hold_leases(seed: int) -> None:
    """Note what each lease has, then release all of it, a part, or nothing."""
    rng = random.Random(seed)
    with penstock.open("jobs") as jobs, penstock.open("notes") as notes:
        while True:
            try:
                lease = jobs.lease(rng.randrange(1, 200))
            except penstock.ShutDown:
                os._exit(0)
            with lease:
                count = rng.choice([0, rng.randrange(len(lease) + 1), len(lease), len(lease), len(lease)])
                found = np.empty(count, NOTE)
                found["position"] = lease.positions[:count]
                found["number"] = lease.items[:count]
                notes.put_many(found)
                lease.release(count)


def started(work, *arguments) -> int:
    child = os.fork()
    if child == 0:
        try:
            work(*arguments)
        finally:
            os._exit(1)
    return child


@pytest.fixture(autouse=True)
def nobody_is_left() -> Iterator[None]:
    """A test that fails must not leave its processes behind."""
    yield
    for child in Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split():
        os.kill(int(child), signal.SIGKILL)


def put_numbers(start: int, stop: int) -> None:
    with penstock.open("jobs") as jobs:
        for first in range(start, stop, 100):
            jobs.put_many(np.arange(first, min(first + 100, stop)))
    os._exit(0)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long), pytest.param(3, marks=pytest.mark.long)])
def test_every_item_is_noted_and_none_at_two_positions(seed, is_long, capsys):
    items, kills = (400_000, 300) if is_long else (60_000, 30)
    rng = random.Random(seed)
    with (
        penstock.BoundedQueue.create("jobs", 1024, item="i8") as jobs,
        penstock.EventQueue.create("notes", item=NOTE) as notes,
    ):
        notes.subscribe("keeper", start="earliest").close()
        producers = [started(put_numbers, half * items // 2, (half + 1) * items // 2) for half in range(2)]
        holders = [started(hold_leases, seed * 1000 + number) for number in range(HOLDERS)]
        for kill in range(kills):
            time.sleep(rng.uniform(0, 0.02))
            victim = rng.randrange(HOLDERS)
            os.kill(holders[victim], signal.SIGKILL)
            os.waitpid(holders[victim], 0)
            holders[victim] = started(hold_leases, seed * 1000 + HOLDERS + kill)
        for producer in producers:
            assert os.waitstatus_to_exitcode(os.waitpid(producer, 0)[1]) == 0
        jobs.shutdown()
        for holder in holders:
            assert os.waitstatus_to_exitcode(os.waitpid(holder, 0)[1]) == 0
        left = []
        try:
            while True:  # what somebody gave back after the others had seen the end
                with jobs.lease(1000) as lease:
                    left += zip(lease.positions.tolist(), lease.items.tolist(), strict=True)
        except penstock.ShutDown:
            pass
        found = np.concatenate([notes.read(notes.earliest, notes.end), np.array(left, NOTE)])
        adopted, stats = jobs.stats().adopted, jobs.stats()
        assert jobs.unreleased(range(stats.slots_popped - stats.capacity, stats.slots_popped)) == []
    by_position = np.unique(found)
    assert len(np.unique(by_position["position"])) == len(by_position), "a position has one item"
    assert np.array_equal(np.sort(by_position["number"]), np.arange(items)), "every item has one position"
    with capsys.disabled():
        print(f"\n  {kills} kills, {adopted} items delivered again, {len(found) - items} of them noted before")
    assert adopted > 0
