"""Drainers are killed at random moments while others put: what is not kept is counted."""

import contextlib
import os
import random
import signal
import time

import numpy as np
import pytest

import queueduct
from queueduct.segments.kinds import KINDS
from tests.spark.rows import numbered
from tests.spark.spooling import Query


def drain_until_all_is_done(directory):
    """As a query does, batch by batch, until the queue was shut down and has nothing left."""
    with contextlib.closing(Query(directory)) as query:
        while True:
            is_over = query.queue.stats().is_shut_down
            before = query.spool.log.end
            query.drainer.drain(300)
            if is_over and query.queue.empty() and query.spool.log.end == before:
                os._exit(0)


def put_slowly(first, rows):
    """Where puts overwrite, they wait a moment for room, so that something is left for who reads."""
    with queueduct.open("jobs") as jobs:
        for start in range(first, first + rows, 50):
            batch, done = numbered(start, start + 50), 0
            if jobs.kind == "overwriting":
                with contextlib.suppress(queueduct.Full):
                    done = jobs.put_many(batch, timeout=0.002, overwrite=False)
            jobs.put_many(batch[done:])
    os._exit(0)


@pytest.fixture
def start():
    """Forks processes; those that nobody has waited for are killed at the end."""
    running = []

    def started(work, *arguments):
        child = os.fork()
        if child == 0:
            try:
                work(*arguments)
            finally:
                os._exit(1)
        running.append(child)
        return child

    yield started
    for child in running:
        with contextlib.suppress(ChildProcessError):  # it was waited for: its number may be another's
            if os.waitpid(child, os.WNOHANG) == (0, 0):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 5))])
def test_killed_at_random_moments_each_item_is_kept_once_or_counted(jobs, tmp_path, start, seed, is_long, capsys):
    """Two drainers share the queue, and are killed and started again while four producers put."""
    rows, kills = (20_000, 50) if is_long else (2000, 8)
    rng = random.Random(seed)
    folders = [tmp_path / "one", tmp_path / "two"]
    drainers = [start(drain_until_all_is_done, folder) for folder in folders]
    producers = [start(put_slowly, number * rows, rows) for number in range(4)]
    for _ in range(kills):
        time.sleep(rng.uniform(0, 0.05))
        victim = rng.randrange(2)
        os.kill(drainers[victim], signal.SIGKILL)
        os.waitpid(drainers[victim], 0)
        drainers[victim] = start(drain_until_all_is_done, folders[victim])
    for producer in producers:
        assert os.waitstatus_to_exitcode(os.waitpid(producer, 0)[1]) == 0
    jobs.shutdown()
    for child in drainers:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    queries = [Query(folder) for folder in folders]
    for query in queries:
        query.drainer.drain(1000)  # what the other one left when it had seen the end
    found = np.concatenate([query.numbers() for query in queries])
    positions = np.concatenate([query.positions() for query in queries])
    lost = KINDS[jobs.kind].count_lost(jobs)
    with capsys.disabled():
        print(f"\n  {jobs.kind}: {kills} kills, {len(found):,} kept, {lost:,} lost")
    assert len(np.unique(positions)) == len(positions)
    assert len(np.unique(found)) == len(found), "none twice"
    assert len(found) + lost == 4 * rows
    assert jobs.unreleased(positions.tolist()) == []
    for query in queries:
        query.close()
