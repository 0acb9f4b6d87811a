"""Kills of the holders of leases at random moments; the living give back, or release a part.

Allowed, and nothing else: every item is noted by some holder before it is released, an item that is noted twice is so
at the same position and was redelivered to all its holders but the first, and in the end no slot is left claimed.
Of an overwriting queue every item is noted or counted as lost, at most one with each kill.
"""

from __future__ import annotations

import contextlib
import random
from typing import Any, ClassVar

import numpy as np

import queueduct
from queueduct import BoundedQueue, EventQueue, GrowingQueue, OverwritingQueue, SlotQueue
from tests.crash.campaign import Campaign
from tests.crash.workers import Load

NOTE = np.dtype([("position", "i8"), ("number", "i8"), ("again", "?")])


class Leases(Campaign):
    """Producers that put so many items, and holders that note what their leases have. `notes` has what they noted."""

    putting: ClassVar = {"producer": 2}
    getting: ClassVar = {"holder": 3}
    spared: ClassVar = frozenset({"producer"})
    sizes: ClassVar[dict[str, Any]]
    """Small enough that what is in it goes round, or up and down, many times."""
    got_up_to: ClassVar[str]
    """Of stats(): every position below may have been claimed."""
    long_items: ClassVar = 400_000

    def __init__(self, children, folder, seed, items):
        load = Load({"item": "i8", **self.sizes}, 100, np.array, lambda q, numbers: q.put_many(numbers), list)
        super().__init__(load, children, folder, seed)
        self.seed, self.items = seed, items
        self.notes = EventQueue.create("notes", item=NOTE)
        self.notes.subscribe("keeper", start="earliest").close()

    def work(self, worker, role, seat):
        if role == "producer":
            half = self.items // 2
            for first in range(seat * half, (seat + 1) * half, self.load.batch):
                self.put(np.arange(first, min(first + self.load.batch, (seat + 1) * half)))
        else:
            self.hold(random.Random(f"{self.seed} {worker}"))

    def put(self, numbers):
        self.q.put_many(numbers)

    def hold(self, rng):
        """Note what each lease has, then release all of it, a part, or nothing."""
        while True:
            try:
                lease = self.q.lease(rng.randrange(1, 200))
            except queueduct.ShutDown:
                return
            with lease:
                count = rng.choice([0, rng.randrange(len(lease) + 1), len(lease), len(lease), len(lease)])
                self.notes.put_many(noted(lease, count))
                lease.release(count)

    def let_everybody_go_on(self):
        """They have no logs; that everything is noted shows that they went on."""

    def finish(self):
        for worker in [n for n in self.alive if self.roles[n][0] == "producer"]:
            assert self.children.wait(self.alive.pop(worker)) == 0
        self.stop[0] = 1
        self.q.shutdown()
        for worker in list(self.alive):
            assert self.children.wait(self.alive.pop(worker)) == 0

    def found(self):
        """What holders have noted, and what one gave back after the others had seen the end."""
        left = []
        with contextlib.suppress(queueduct.ShutDown):
            while True:
                with self.q.lease(1000) as lease:
                    left.append(noted(lease, len(lease)))
        return np.concatenate([self.notes.read(self.notes.earliest, self.notes.end), *left])

    def judge(self):
        found = self.found()
        by_position = np.unique(found[["position", "number"]])
        assert len(np.unique(by_position["position"])) == len(by_position), "a position has one item"
        assert len(np.unique(by_position["number"])) == len(by_position), "an item has one position"
        first = found["position"][~found["again"]]
        assert len(np.unique(first)) == len(first), "a second time is told to be so"
        stats = self.q.stats()
        assert stats.redelivered > 0
        self.check_losses(len(by_position), stats)
        return f"{stats.redelivered} items delivered again, {len(found) - len(by_position)} of them noted before"

    def check_losses(self, count, stats):
        assert count == self.items, "an item was not noted"

    def check_that_all_is_free(self):
        assert self.q.unreleased(range(getattr(self.q.stats(), self.got_up_to))) == []


def noted(lease, count):
    found = np.empty(count, NOTE)
    found["position"], found["number"] = lease.positions[:count], lease.items[:count]
    found["again"] = lease.is_redelivered
    return found


class BoundedLeases(Leases):
    cls: ClassVar = BoundedQueue
    sizes: ClassVar = {"capacity": 1024}
    got_up_to: ClassVar = "pop_position"


class GrowingLeases(Leases):
    cls: ClassVar = GrowingQueue
    sizes: ClassVar = {"first_bytes": 1024, "steps": 4}
    got_up_to: ClassVar = "push_position"


class SlotLeases(Leases):
    cls: ClassVar = SlotQueue
    sizes: ClassVar = {"capacity": 1024}
    got_up_to: ClassVar = "puts"


class OverwritingLeases(Leases):
    cls: ClassVar = OverwritingQueue
    sizes: ClassVar = {"capacity": 512}
    got_up_to: ClassVar = "puts"
    long_items: ClassVar = 1_000_000

    def put(self, numbers):
        done = 0
        with contextlib.suppress(queueduct.Full):  # it waits a moment for room, so that not all is lost
            done = self.q.put_many(numbers, timeout=0.002, overwrite=False)
        self.q.put_many(numbers[done:])

    def check_losses(self, count, stats):
        assert stats.puts == self.items
        assert count + stats.overwritten + stats.lost_with_consumer == self.items
        assert stats.lost_with_consumer <= len(self.killed)
        assert (stats.torn, stats.size, stats.gets) == (0, 0, count)
