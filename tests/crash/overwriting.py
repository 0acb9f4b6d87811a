"""Kills at random moments, while producers lap the consumers of an overwriting queue.

Allowed, and nothing else:
 - what is got was put, is whole, comes once, and to each reader in each writer's order;
 - every message that nobody got is counted: overwritten, torn with its writer, or lost with its reader, and the sum is
   that of all puts, to the unit;
 - at most one message is torn for each killed writer, and lost for each killed reader;
 - no call of a living worker takes longer than LIMIT_SECONDS plus what the machine itself withholds, for a few turns;
 - at the end every message has its place and every line of the participant table can be taken again.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from queueduct import OverwritingQueue
from tests.crash.campaign import Campaign
from tests.crash.workers import WORKER_SHIFT, Log, of_bytes, of_records

LOADS = {
    "a few small messages": of_bytes((64,), capacity=16, message_bytes=64),
    "a single message": of_bytes((64,), capacity=1, message_bytes=64),
    "large messages": of_bytes((200_000,), capacity=8, message_bytes=200_000),
    "batches of records": of_records(16, 20, capacity=256),
}


class Overwriting(Campaign):
    """Producers and consumers of one queue."""

    cls: ClassVar = OverwritingQueue

    def drained(self):
        return []  # nothing is left, and this process has not joined: the table shows who is still there

    def judge(self):
        stats = self.q.stats()
        got = np.sort(self.got())
        producers, consumers = self.killed_of("producer"), self.killed_of("consumer")
        assert stats.puts == stats.gets + stats.overwritten + stats.torn + stats.lost_with_consumer + stats.size
        assert (np.diff(got) > 0).all(), "a message came twice"
        self.check_what_came(got)
        for _, log in self.logs("consumer"):
            numbers = log.numbers()
            for producer in np.unique(numbers >> WORKER_SHIFT):
                mine = numbers[numbers >> WORKER_SHIFT == producer].astype("<i8")
                assert (np.diff(mine) > 0).all(), "out of order"
        done, tried = (sum(log.words[word] for _, log in self.logs("producer")) for word in (Log.DONE, Log.TRYING))
        assert done <= stats.puts <= tried, "puts are miscounted"
        assert 0 <= stats.gets - len(got) <= consumers * self.load.batch, "more was got than was noted"
        assert stats.torn <= producers
        assert stats.lost_with_consumer <= consumers
        assert (stats.size, stats.participants) == (0, 0), "somebody is still there"
        return (
            f"{stats.puts:,} puts, {len(got):,} got, {stats.overwritten:,} overwritten, {stats.torn} torn with "
            f"{producers} producers, {stats.lost_with_consumer} lost with {consumers} consumers"
        )

    def check_what_came(self, got):
        known = 0
        for worker, log in self.logs("producer"):
            mine = got[got >> WORKER_SHIFT == worker] & ((1 << WORKER_SHIFT) - 1)
            assert (mine < log.words[Log.TRYING]).all(), "a message came that nobody put"
            known += len(mine)
        assert known == len(got), "a message came of nobody"

    def check_that_all_is_free(self):
        q = self.q
        items = [bytes(q.message_bytes)] * q.capacity if q.item is bytes else np.zeros(q.capacity, q.item)
        for _ in range(2):
            assert q.put_many(items, block=False, overwrite=False) == q.capacity
            assert q.full()
            assert len(q.get_many(q.capacity)) == q.capacity
            assert q.empty()

    def join(self, handle):
        handle.put(bytes(handle.message_bytes) if handle.item is bytes else np.zeros((), handle.item))
