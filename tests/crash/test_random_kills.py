"""SIGKILL at random moments under load. What must hold afterwards is the promise of crash safety, word by word.

The workers fork, work, and are killed and replaced, one after the other, at moments drawn from a seeded generator.
Allowed, and nothing else:
 - a number whose put returned was got by somebody, with one exception: a killed consumer takes along what its one
   call under way had already got and not yet noted, so at most one call's items for each killed consumer;
 - a number whose put did not return, since its producer was killed in it, was got once or not at all;
 - no number twice, no item torn;
 - no call of a living worker takes longer than LIMIT_SECONDS plus what the machine itself withholds: a control process
   that does nothing with the queue measures that at the same time, and a call may have to wait for a few such turns;
 - at the end every slot is free and every line of the participant table can be taken again.
"""

from __future__ import annotations

import mmap
import os
import random
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from workers import WORKER_SHIFT, Log, consume, idle_along, of_bytes, of_records, produce

import penstock
from deadline import until
from penstock import BoundedQueue
from raw import RawSegment

PRODUCERS, CONSUMERS, PARTICIPANTS = 3, 3, 16
LIMIT_SECONDS = 0.25
TURNS, TURNS_OF_A_BATCH = (
    4,
    10,
)  # of the scheduler, that a call may have to wait for: its own, and others' for each part
KILLS, LONG_KILLS = 35, 340

LOADS = {
    "small items": of_bytes((8, 24, 40, 80, 200), capacity=64, slot_bytes=32),
    "large items": of_bytes((250_000, 8, 64_000, 900_000), capacity=64, slot_bytes=16384),
    "batches of records": of_records(16, 200, capacity=1024),
}


class Campaign:
    """One queue, its workers, and everything that was ever logged."""

    def __init__(self, load, children, folder, seed):
        self.load, self.children, self.folder = load, children, folder
        self.rng = random.Random(seed)
        self.q = BoundedQueue.create("q", participants=PARTICIPANTS, **load.create)
        self.stop = memoryview(mmap.mmap(-1, 4096))  # shared with the forks
        self.stop_consuming = memoryview(mmap.mmap(-1, 4096))
        self.roles = {}  # number -> "producer" or "consumer"
        self.alive = {}  # number -> pid
        self.killed = set()

    def start(self, role):
        number = len(self.roles)
        self.roles[number] = role

        def work():
            log = Log(self.folder / f"log{number}")
            if role == "producer":
                produce(self.q, self.load, log, number, self.stop)
            else:
                consume(self.q, self.load, log, number, self.stop_consuming)

        self.alive[number] = self.children.fork(work)

    def kill_one(self):
        number = self.rng.choice(self.at_work() or sorted(self.alive))
        pid = self.alive.pop(number)
        os.kill(pid, signal.SIGKILL)
        assert self.children.wait(pid) == -signal.SIGKILL, "it had died before, of something else"
        self.killed.add(number)
        self.start(self.roles[number])

    def at_work(self):
        """Most of the time, those who run at this moment: who sleeps waits, and has claimed nothing."""
        if self.rng.random() < 0.2:
            return []
        return [number for number, pid in sorted(self.alive.items()) if state_of(pid) == "R"]

    def run(self, kills):
        control_log = Log(self.folder / "control")
        control = self.children.fork(lambda: idle_along(Log(self.folder / "control"), self.stop))
        for role, count in (("producer", PRODUCERS), ("consumer", CONSUMERS)):
            for _ in range(count):
                self.start(role)
        for _ in range(kills):
            time.sleep(self.rng.uniform(0.002, 0.04))
            self.kill_one()
        self.let_everybody_go_on()
        self.finish()
        assert self.children.wait(control) == 0
        return control_log.longest_seconds

    def let_everybody_go_on(self):
        """After the last kill: each of the living does something more, or shows that it cannot."""

        def progress(number):
            path = self.folder / f"log{number}"
            if not path.exists() or path.stat().st_size == 0:
                return 0
            log = Log(path)
            try:
                return log.words[Log.DONE] + log.words[Log.COUNT]
            finally:
                log.close()

        before = {number: progress(number) for number in self.alive}
        for number in self.alive:
            until(lambda number=number: progress(number) > before[number], f"progress of worker {number}")

    def finish(self):
        """Producers end first, then consumers, once nothing is left."""
        self.stop[0] = 1
        for number in [n for n in self.alive if self.roles[n] == "producer"]:
            assert self.children.wait(self.alive.pop(number)) == 0
        self.stop_consuming[0] = 1
        for number in list(self.alive):
            assert self.children.wait(self.alive.pop(number)) == 0

    def drained(self):
        """What the dead still owed when everybody else had gone."""
        rest = []
        try:
            while True:
                rest += self.load.get(self.q, 0.5)
        except penstock.Empty:
            return rest

    def logs(self, role):
        for number in self.roles:
            if self.roles[number] == role and (self.folder / f"log{number}").exists():
                yield number, Log(self.folder / f"log{number}")


def state_of(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", list(LOADS))
def test_nothing_is_lost_doubled_torn_or_stuck_by_kills_at_random_moments(children, queue_dir, is_long, name, capsys):
    load = LOADS[name]
    campaign = Campaign(load, children, queue_dir, seed=f"{name} {is_long}")
    kills = LONG_KILLS if is_long else KILLS
    scheduler_seconds = campaign.run(kills)

    drained = np.array(campaign.drained(), "<u8")
    consumers_killed = sum(campaign.roles[n] == "consumer" for n in campaign.killed)
    consumer_logs = [log for _, log in campaign.logs("consumer")]
    producer_logs = dict(campaign.logs("producer"))
    longest_seconds = max(log.longest_seconds for log in consumer_logs + list(producer_logs.values()))
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
            f"{stats.adopted} items adopted, {lost} gone with {consumers_killed} killed consumers; "
            f"longest call {longest_seconds * 1e3:.0f} ms, "
            f"the machine's own {scheduler_seconds * 1e3:.0f} ms"
        )
    assert known == len(got), "an item came of nobody"
    assert (np.diff(got) > 0).all(), "an item came twice"
    assert lost <= consumers_killed * load.batch, "an item whose put returned is gone"
    turns = TURNS if load.batch == 1 else TURNS_OF_A_BATCH
    assert longest_seconds < LIMIT_SECONDS + turns * scheduler_seconds, "somebody living was kept waiting"

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
