"""Drainers and named producers are killed at random moments, without Spark in between.

Allowed, and nothing else: whoever is killed is started again and knows nothing, the drainers have spools of their own,
and in the end the spools together hold each item once.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable

import numpy as np
import pytest
from rows import TICK, check_each_once, numbered
from test_spool import Query

import penstock

PRODUCERS, DRAINERS, BATCH = 2, 2, 50


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
        with penstock.open("jobs") as jobs:
            for sequence in range(self.rows // BATCH):
                start = number * self.rows + sequence * BATCH
                jobs.put_once(numbered(start, start + BATCH), f"producer {number}", sequence)

    def drain(self, number):
        query = Query(self.folder / f"drainer {number}")
        positions = range(PRODUCERS * self.rows)
        while not (query.queue.stats().is_shut_down and query.queue.empty() and not query.queue.unreleased(positions)):
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


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3, 4))])
@pytest.mark.parametrize("kind", [pytest.param(penstock.BoundedQueue, marks=pytest.mark.long), penstock.SlotQueue])
def test_each_item_is_kept_once_though_producers_and_drainers_are_killed(kind, seed, tmp_path, is_long):
    rows, kills = (100_000, 400) if is_long else (10_000, 25)
    rng = random.Random(seed)
    with kind.create("jobs", 256, item=TICK) as jobs:
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
        check_each_once(np.concatenate([query.numbers() for query in queries]), PRODUCERS * rows)
        for query in queries:
            query.close()
