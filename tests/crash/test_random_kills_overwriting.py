"""SIGKILL at random moments, while writers lap the readers of an overwriting queue.

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
import pytest

from queueduct import OverwritingQueue
from tests.crash.campaign import KILLS, LONG_KILLS, Campaign
from tests.crash.workers import WORKER_SHIFT, Log, consume, of_bytes, of_records, produce

PARTICIPANTS = 16

LOADS = {
    "a few small messages": of_bytes((64,), capacity=16, message_bytes=64),
    "a single message": of_bytes((64,), capacity=1, message_bytes=64),
    "large messages": of_bytes((200_000,), capacity=8, message_bytes=200_000),
    "batches of records": of_records(16, 20, capacity=256),
}


class Overwriting(Campaign):
    """Writers and readers of one queue."""

    putting: ClassVar = {"writer": 3}
    getting: ClassVar = {"reader": 3}

    def __init__(self, load, children, folder, seed):
        super().__init__(load, children, folder, seed)
        self.q = OverwritingQueue.create("q", participants=PARTICIPANTS, **load.create)

    def work(self, worker, role, seat):
        log = Log(self.log_path(worker))
        if role == "writer":
            produce(self.q, self.load, log, worker, self.stop)
        else:
            consume(self.q, self.load, log, self.stop_getting)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", list(LOADS))
def test_every_loss_is_counted_after_kills_at_random_moments(children, queue_dir, is_long, name, capsys):
    load = LOADS[name]
    campaign = Overwriting(load, children, queue_dir, seed=f"{name} {is_long}")
    kills = LONG_KILLS if is_long else KILLS
    scheduler_seconds = campaign.run(kills)

    stats = campaign.q.stats()
    killed = {role: sum(campaign.roles[n][0] == role for n in campaign.killed) for role in ("writer", "reader")}
    readers = [log.numbers() for _, log in campaign.logs("reader")]
    got = np.sort(np.concatenate(readers))
    with capsys.disabled():
        print(
            f"\n  {name}: {kills} kills, {stats.puts:,} puts, {len(got):,} got, {stats.overwritten:,} overwritten, "
            f"{stats.torn} torn with {killed['writer']} writers, {stats.lost_with_reader} lost with "
            f"{killed['reader']} readers; longest call {campaign.longest_seconds() * 1e3:.0f} ms, "
            f"the machine's own {scheduler_seconds * 1e3:.0f} ms"
        )
    assert stats.puts == stats.gets + stats.overwritten + stats.torn + stats.lost_with_reader + stats.size
    assert (np.diff(got) > 0).all(), "a message came twice"
    check_what_came(campaign, got)
    for numbers in readers:
        for writer in np.unique(numbers >> WORKER_SHIFT):
            assert (np.diff(numbers[numbers >> WORKER_SHIFT == writer].astype("<i8")) > 0).all(), "out of order"
    done, tried = (sum(log.words[word] for _, log in campaign.logs("writer")) for word in (Log.DONE, Log.TRYING))
    assert done <= stats.puts <= tried, "puts are miscounted"
    assert 0 <= stats.gets - len(got) <= killed["reader"] * load.batch, "more was got than was noted"
    assert stats.torn <= killed["writer"]
    assert stats.lost_with_reader <= killed["reader"]
    assert (stats.size, stats.participants) == (0, 0), "somebody is still there"
    campaign.check_stalls(scheduler_seconds, is_long)
    check_that_all_is_free(campaign.q)


def check_what_came(campaign, got):
    known = 0
    for worker, log in campaign.logs("writer"):
        mine = got[got >> WORKER_SHIFT == worker] & ((1 << WORKER_SHIFT) - 1)
        assert (mine < log.words[Log.TRYING]).all(), "a message came that nobody put"
        known += len(mine)
    assert known == len(got), "a message came of nobody"


def check_that_all_is_free(q):
    items = [bytes(q.message_bytes)] * q.capacity if q.item is bytes else np.zeros(q.capacity, q.item)
    for _ in range(2):
        assert q.put_many(items, block=False, overwrite=False) == q.capacity
        assert q.full()
        assert len(q.get_many(q.capacity)) == q.capacity
        assert q.empty()
    handles = [OverwritingQueue.open("q") for _ in range(PARTICIPANTS - 1)]
    for handle in handles:
        handle.put(items[0])
    assert q.stats().participants == PARTICIPANTS
    for handle in handles:
        handle.close()
