"""Drainers and named producers are killed at random moments, without Spark in between.

Allowed, and nothing else: whoever is killed is started again, the drainers have spools of their own, and in the end the
spools together hold each item once; of a queue that overwrites at most once, and what is missing is counted.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable

import numpy as np
import pytest

import queueduct
from tests.spark import producer
from tests.spark.driver import is_empty
from tests.spark.rows import TICK, check_each_once, check_none_twice_and_losses_counted
from tests.spark.spooling import Query

PRODUCERS, DRAINERS = 2, 2


class Campaign:
    """Processes that are started again when they were killed."""

    def __init__(self, folder, rows):
        self.folder, self.rows = folder, rows
        works: list[Callable[[], None]] = [lambda n=n: self.produce(n) for n in range(PRODUCERS)]
        works += [lambda n=n: self.drain(n) for n in range(DRAINERS)]
        self.works = works
        self.pids = [self.start(number) for number in range(len(works))]

    def start(self, number):
        pid = os.fork()
        if pid == 0:
            try:
                self.works[number]()
                os._exit(0)
            finally:
                os._exit(1)
        return pid

    def produce(self, number):
        producer.main("jobs", number, self.rows, self.folder)

    def drain(self, number):
        query = Query(self.folder / f"drainer {number}")
        while not (query.queue.stats().is_shut_down and is_empty(query.queue)):
            query.drainer.drain(100)
            time.sleep(0.0005)
        query.close()

    def kill(self, number):
        os.kill(self.pids[number], signal.SIGKILL)
        os.waitpid(self.pids[number], 0)
        self.pids[number] = self.start(number)

    def wait(self, numbers):
        for number in numbers:
            assert os.waitstatus_to_exitcode(os.waitpid(self.pids[number], 0)[1]) == 0
            self.pids[number] = 0

    def end(self):
        for pid in filter(None, self.pids):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


# Small ones, so that somebody always waits; the growing one opens and closes its sub-queues all the time.
MAKERS = {
    "bounded": lambda: queueduct.BoundedQueue.create("jobs", 256, item=TICK),
    "growing": lambda: queueduct.GrowingQueue.create("jobs", item=TICK, first_bytes=1024, steps=4),
    "slots": lambda: queueduct.SlotQueue.create("jobs", 256, item=TICK),
    "overwriting": lambda: queueduct.OverwritingQueue.create("jobs", 256, item=TICK),
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3, 4))])
@pytest.mark.parametrize("kind", MAKERS)
def test_each_item_is_kept_once_though_producers_and_drainers_are_killed(kind, seed, tmp_path, is_long, capsys):
    rows, kills = (100_000, 400) if is_long else (10_000, 25)
    rng = random.Random(seed)
    with MAKERS[kind]() as jobs:
        campaign = Campaign(tmp_path, rows)
        try:
            for _ in range(kills):
                time.sleep(rng.uniform(0, 0.03))
                campaign.kill(rng.randrange(PRODUCERS + DRAINERS))
            campaign.wait(range(PRODUCERS))
            jobs.shutdown()
            campaign.wait(range(PRODUCERS, PRODUCERS + DRAINERS))
        finally:
            campaign.end()
        queries = [Query(tmp_path / f"drainer {number}") for number in range(DRAINERS)]
        found = np.concatenate([query.numbers() for query in queries])
        positions = np.concatenate([query.positions() for query in queries])
        with capsys.disabled():
            print(f"\n  {kind}: {kills} kills, {len(found):,} kept")
        assert len(np.unique(positions)) == len(positions)
        if kind == "overwriting":
            check_none_twice_and_losses_counted(found, jobs.stats(), PRODUCERS * rows)
        else:
            check_each_once(found, PRODUCERS * rows)
        for query in queries:
            query.close()
