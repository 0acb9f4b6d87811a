"""SIGKILL at random moments on a growing queue. The promise is that of test_random_kills.py, and memory comes back."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

import queueduct
from queueduct import GrowingQueue
from tests.crash.campaign import KILLS, LONG_KILLS, Campaign
from tests.crash.workers import WORKER_SHIFT, Log, consume, of_bytes, of_records, produce

PARTICIPANTS = 16
MAX_BYTES = 8 << 20

LOADS = {
    "small items": of_bytes((8, 24, 40, 80, 200), first_bytes=256, slot_bytes=32, max_bytes=MAX_BYTES),
    "batches of records": of_records(16, 200, first_bytes=4096, max_bytes=MAX_BYTES),
}


class Growing(Campaign):
    """Producers and consumers of one growing queue."""

    putting: ClassVar = {"producer": 3}
    getting: ClassVar = {"consumer": 3}

    def __init__(self, load, children, folder, seed):
        super().__init__(load, children, folder, seed)
        self.q = GrowingQueue.create("q", participants=PARTICIPANTS, **load.create)

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
    campaign = Growing(load, children, queue_dir, seed=f"growing {name} {is_long}")
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
            f"\n  growing, {name}: {kills} kills, {len(got):,} items; grown {stats.grown}, shrunk {stats.shrunk}; "
            f"{stats.tombstones} slots buried, {stats.redelivered} items adopted, "
            f"{lost} gone with {consumers_killed} killed consumers; "
            f"longest call {campaign.longest_seconds() * 1e3:.0f} ms, "
            f"the machine's own {scheduler_seconds * 1e3:.0f} ms"
        )
    assert known == len(got), "an item came of nobody"
    assert (np.diff(got) > 0).all(), "an item came twice"
    assert lost <= consumers_killed * load.batch, "an item whose put returned is gone"
    campaign.check_stalls(scheduler_seconds, is_long)
    assert stats.size == 0
    assert stats.participants == 1
    check_that_all_is_free(campaign, stats)


def check_that_all_is_free(campaign, stats):
    """A calm queue is as small as a new one; every line can be taken."""
    q = campaign.q
    item = b"x" if q.item is bytes else np.zeros((), q.item)
    for _ in range(6000):
        q.put(item)
        q.get()
    after = q.stats()
    assert (after.read_level, after.written_level) == (0, 0)
    assert after.resident_bytes <= after.reserved_bytes
    handles = [GrowingQueue.open("q") for _ in range(PARTICIPANTS - 1)]
    for handle in handles:
        assert handle.try_get() is None
    assert q.stats().participants == PARTICIPANTS
    for handle in handles:
        handle.close()
