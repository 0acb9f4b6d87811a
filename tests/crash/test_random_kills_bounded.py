"""SIGKILL at random moments under load. What must hold afterwards is the promise of crash safety, word by word.

Allowed, and nothing else:
 - a number whose put returned was got by somebody, with one exception: a killed consumer takes along what its one
   call under way had already got and not yet noted, so at most one call's items for each killed consumer;
 - a number whose put did not return, since its producer was killed in it, was got once or not at all;
 - no number twice, no item torn;
 - no call of a living worker takes longer than LIMIT_SECONDS plus what the machine itself withholds, for a few turns;
 - at the end every slot is free and every line of the participant table can be taken again.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

import queueduct
from queueduct import BoundedQueue
from tests.crash.campaign import KILLS, LONG_KILLS, Campaign
from tests.crash.workers import WORKER_SHIFT, Log, consume, of_bytes, of_records, produce
from tests.support.raw import RawSegment

PARTICIPANTS = 16

LOADS = {
    "small items": of_bytes((8, 24, 40, 80, 200), capacity=64, slot_bytes=32),
    "large items": of_bytes((250_000, 8, 64_000, 900_000), capacity=64, slot_bytes=16384),
    "batches of records": of_records(16, 200, capacity=1024),
}


class Bounded(Campaign):
    """Producers and consumers of one ring."""

    putting: ClassVar = {"producer": 3}
    getting: ClassVar = {"consumer": 3}

    def __init__(self, load, children, folder, seed):
        super().__init__(load, children, folder, seed)
        self.q = BoundedQueue.create("q", participants=PARTICIPANTS, **load.create)

    def work(self, worker, role, seat):
        log = Log(self.log_path(worker))
        if role == "producer":
            produce(self.q, self.load, log, worker, self.stop)
        else:
            consume(self.q, self.load, log, self.stop_getting)

    def drained(self):
        """What the dead still owed when everybody else had gone."""
        rest = []
        try:
            while True:
                rest += self.load.get(self.q, 0.5)
        except queueduct.Empty:
            return rest


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", list(LOADS))
def test_nothing_is_lost_doubled_torn_or_stuck_by_kills_at_random_moments(children, queue_dir, is_long, name, capsys):
    load = LOADS[name]
    campaign = Bounded(load, children, queue_dir, seed=f"{name} {is_long}")
    kills = LONG_KILLS if is_long else KILLS
    scheduler_seconds = campaign.run(kills)

    drained = np.array(campaign.drained(), "<u8")
    consumers_killed = sum(campaign.roles[n][0] == "consumer" for n in campaign.killed)
    consumer_logs = [log for _, log in campaign.logs("consumer")]
    producer_logs = dict(campaign.logs("producer"))
    got = np.sort(np.concatenate([drained, *(log.numbers() for log in consumer_logs)]))
    lost = known = 0
    for number, log in producer_logs.items():
        mine = got[got >> WORKER_SHIFT == number] & ((1 << WORKER_SHIFT) - 1)
        done, trying = log.words[Log.DONE], log.words[Log.TRYING]
        assert (mine < (trying if number in campaign.killed else done)).all(), "an item came that nobody put"
        lost += done - int((mine < done).sum())
        known += len(mine)
    stats = campaign.q.stats()
    with capsys.disabled():
        print(
            f"\n  {name}: {kills} kills, {len(got):,} items; {stats.tombstones} slots buried, "
            f"{stats.redelivered} items adopted, {lost} gone with {consumers_killed} killed consumers; "
            f"longest call {campaign.longest_seconds() * 1e3:.0f} ms, "
            f"the machine's own {scheduler_seconds * 1e3:.0f} ms"
        )
    assert known == len(got), "an item came of nobody"
    assert (np.diff(got) > 0).all(), "an item came twice"
    assert lost <= consumers_killed * load.batch, "an item whose put returned is gone"
    campaign.check_stalls(scheduler_seconds, is_long)

    assert stats.size == 0
    assert stats.participants == 1
    check_that_all_is_free(campaign)


def check_that_all_is_free(campaign):
    """Every slot can be used, for two laps; every line can be taken."""
    q, capacity = campaign.q, campaign.q.capacity
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
    handles = [BoundedQueue.open("q") for _ in range(PARTICIPANTS - 1)]
    for handle in handles:
        assert handle.try_get() is None
    assert q.stats().participants == PARTICIPANTS
    for handle in handles:
        handle.close()
