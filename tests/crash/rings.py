"""Kills at random moments on rings: bounded and growing queues.

Allowed, and nothing else:
 - a number whose put returned was got by somebody, with one exception: a killed consumer takes along what its one
   call under way had already got and not yet noted, so at most one call's items for each killed consumer;
 - a number whose put did not return, since its producer was killed in it, was got once or not at all;
 - no number twice, no item torn;
 - no call of a living worker takes longer than LIMIT_SECONDS plus what the machine itself withholds, for a few turns;
 - at the end every slot is free and every line of the participant table can be taken again.
"""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

import numpy as np

from queueduct import BoundedQueue, GrowingQueue
from tests.crash.campaign import Campaign
from tests.crash.workers import of_bytes, of_records
from tests.support.raw import RawSegment

MAX_BYTES = 8 << 20
BOUNDED_LOADS = {
    "small items": of_bytes((8, 24, 40, 80, 200), capacity=64, slot_bytes=32),
    "large items": of_bytes((250_000, 8, 64_000, 900_000), capacity=64, slot_bytes=16384),
    "batches of records": of_records(16, 200, capacity=1024),
}
GROWING_LOADS = {
    "small items": of_bytes((8, 24, 40, 80, 200), first_bytes=256, slot_bytes=32, max_bytes=MAX_BYTES),
    "batches of records": of_records(16, 200, first_bytes=4096, max_bytes=MAX_BYTES),
}


class Rings(Campaign, ABC):
    """Producers and consumers."""

    def judge(self):
        got = np.sort(self.got())
        lost = self.count_lost(got)
        assert (np.diff(got) > 0).all(), "an item came twice"
        consumers = self.killed_of("consumer")
        assert lost <= consumers * self.load.batch, "an item whose put returned is gone"
        stats = self.q.stats()
        assert (stats.size, stats.participants) == (0, 1)
        return (
            f"{len(got):,} items; {stats.tombstones} slots abandoned, {stats.redelivered} items delivered again, "
            f"{lost} gone with {consumers} killed consumers"
        )


class Bounded(Rings):
    cls: ClassVar = BoundedQueue

    def check_that_all_is_free(self):
        """Every slot can be used, for two laps."""
        q, capacity = self.q, self.q.capacity
        items = [b"x"] * capacity if q.item is bytes else np.zeros(capacity, q.item)
        for _ in range(2):
            assert q.put_many(items, block=False) == capacity
            assert q.full()
            assert len(q.get_many(capacity)) == capacity
            assert q.empty()
        with RawSegment("q") as raw:
            assert raw.push_position == raw.pop_position
            expected = {p % capacity: p for p in range(raw.push_position, raw.push_position + capacity)}
            assert raw.generations() == [expected[i] for i in range(capacity)]


class Growing(Rings):
    cls: ClassVar = GrowingQueue

    def judge(self):
        said = super().judge()
        stats = self.q.stats()
        return f"{said}; grown {stats.grown}, shrunk {stats.shrunk}"

    def check_that_all_is_free(self):
        """A calm queue is as small as a new one."""
        item = b"x" if self.q.item is bytes else np.zeros((), self.q.item)
        for _ in range(6000):
            self.q.put(item)
            self.q.get()
        after = self.q.stats()
        assert (after.read_level, after.written_level) == (0, 0)
        assert after.resident_bytes <= after.reserved_bytes
