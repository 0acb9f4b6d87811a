"""Holders of leases are killed at random moments, give back, or release a part.

Allowed, and nothing else: every item is noted by some holder before it is released, an item that is noted twice is so
at the same position and was redelivered to all its holders but the first, and in the end no slot is left claimed.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import queueduct

NOTE = np.dtype([("position", "i8"), ("number", "i8"), ("again", "?")])
HOLDERS = 3


def hold_leases(seed: int) -> None:
    """Note what each lease has, then release all of it, a part, or nothing."""
    rng = random.Random(seed)
    with queueduct.open("jobs") as jobs, queueduct.open("notes") as notes:
        while True:
            try:
                lease = jobs.lease(rng.randrange(1, 200))
            except queueduct.ShutDown:
                os._exit(0)
            with lease:
                count = rng.choice([0, rng.randrange(len(lease) + 1), len(lease), len(lease), len(lease)])
                found = np.empty(count, NOTE)
                found["position"] = lease.positions[:count]
                found["number"] = lease.items[:count]
                found["again"] = lease.is_redelivered
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
    with queueduct.open("jobs") as jobs:
        for first in range(start, stop, 100):
            numbers = np.arange(first, min(first + 100, stop))
            done = 0
            if jobs.kind == "overwriting":  # it waits a moment for room, so that not all is lost
                with contextlib.suppress(queueduct.Full):
                    done = jobs.put_many(numbers, timeout=0.002, overwrite=False)
            jobs.put_many(numbers[done:])
    os._exit(0)


# Small enough that what is in them goes round, or up and down, many times.
MAKERS = {
    "bounded": lambda: queueduct.BoundedQueue.create("jobs", 1024, item="i8"),
    "growing": lambda: queueduct.GrowingQueue.create("jobs", item="i8", first_bytes=1024, steps=4),
    "slots": lambda: queueduct.SlotQueue.create("jobs", 1024, item="i8"),
}


GOT_UP_TO = {"bounded": "slots_popped", "growing": "position", "slots": "published"}


def taken(jobs: Any) -> range:
    """Every position that may be claimed and not released."""
    return range(getattr(jobs.stats(), GOT_UP_TO[jobs.kind]))


def count_redelivered(jobs: Any) -> int:
    return jobs.stats().redelivered


def noted_after_kills(jobs, seed: int, items: int, kills: int) -> np.ndarray:
    """What holders have noted and what was left in the end, after so many of them were killed."""
    rng = random.Random(seed)
    with queueduct.EventQueue.create("notes", item=NOTE) as notes:
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
                    again = [lease.is_redelivered] * len(lease)
                    left += zip(lease.positions.tolist(), lease.items.tolist(), again, strict=True)
        except queueduct.ShutDown:
            pass
        return np.concatenate([notes.read(notes.earliest, notes.end), np.array(left, NOTE)])


SEEDS = [1, pytest.param(2, marks=pytest.mark.long), pytest.param(3, marks=pytest.mark.long)]


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("seed", SEEDS)
def test_every_item_is_noted_and_none_at_two_positions(kind, seed, is_long, capsys):
    items, kills = (400_000, 300) if is_long else (60_000, 30)
    with MAKERS[kind]() as jobs:
        found = noted_after_kills(jobs, seed, items, kills)
        redelivered = count_redelivered(jobs)
        assert jobs.unreleased(taken(jobs)) == []
    by_position = np.unique(found[["position", "number"]])
    assert len(np.unique(by_position["position"])) == len(by_position), "a position has one item"
    assert np.array_equal(np.sort(by_position["number"]), np.arange(items)), "every item has one position"
    first = found["position"][~found["again"]]
    assert len(np.unique(first)) == len(first), "a second time is told to be so"
    with capsys.disabled():
        noted_before = len(found) - items
        print(f"\n  {kind}: {kills} kills, {redelivered} items delivered again, {noted_before} of them noted before")
    assert redelivered > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_of_a_queue_that_overwrites_every_item_is_noted_or_counted_as_lost(seed, is_long, capsys):
    """Noted at one position, and in all as many as were put and not lost: at most one with each kill."""
    items, kills = (1_000_000, 300) if is_long else (60_000, 30)
    with queueduct.OverwritingQueue.create("jobs", 512, item="i8") as jobs:
        found = noted_after_kills(jobs, seed, items, kills)
        stats = jobs.stats()
        assert jobs.unreleased(range(stats.puts)) == []
    by_position = np.unique(found[["position", "number"]])
    assert len(np.unique(by_position["position"])) == len(by_position), "a position has one item"
    assert len(np.unique(by_position["number"])) == len(by_position), "an item has one position"
    with capsys.disabled():
        print(
            f"\n  {kills} kills, {stats.overwritten:,} of {stats.puts:,} overwritten, {stats.lost_with_reader} lost "
            f"with holders, {stats.redelivered} delivered again, {len(found) - len(by_position)} of them noted before"
        )
    assert stats.puts == items
    assert len(by_position) + stats.overwritten + stats.lost_with_reader == items
    assert stats.lost_with_reader <= kills
    assert (stats.torn, stats.size, stats.gets) == (0, 0, len(by_position))
    assert stats.redelivered > 0
