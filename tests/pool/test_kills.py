"""Workers die, and nothing is lost, doubled or tried too often."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from contextlib import suppress

import pytest

import queueduct
from queueduct import Workers
from tests.pool import jobs
from tests.support.deadline import until

JOBS = 10_000
KILL_SECONDS = 0.2
POISON = -1


class Killer:
    """Kills a random worker at intervals until it is stopped."""

    def __init__(self, pool: Workers, seed: int) -> None:
        self.kills = 0
        self._pool = pool
        self._random = random.Random(seed)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._over.wait(KILL_SECONDS):
            if pids := self._pool.processes():
                with suppress(ProcessLookupError):
                    os.kill(self._random.choice(pids), signal.SIGKILL)
                    self.kills += 1

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()


def test_killed_workers_lose_no_job_and_double_no_result(workers, drained):
    """The queue, 8 workers, a random one killed every 200 ms, and a job that kills its worker in each try."""
    queue = queueduct.BoundedQueue.create("jobs", 16384, item=object)
    items = list(range(JOBS))
    items.insert(JOBS // 2, POISON)
    queue.put_many(items)
    with workers(queue, jobs.slow_record, processes=8, retries=4, results="results", retry_delay=0.05) as pool:
        with Killer(pool, seed=1) as killer:
            assert pool.join(90)
        progress = pool.progress()
    assert killer.kills >= 5
    assert progress.restarts >= killer.kills
    effects = Counter(map(int, jobs.recorded("effects")))
    assert set(effects) == set(items)
    pairs = drained("results")
    assert sorted(result for _, result in pairs) == [2 * item for item in range(JOBS)]
    assert len({position for position, _ in pairs}) == JOBS
    (letter,) = drained("jobs.dead")
    assert (letter.item, letter.tries, letter.message) == (POISON, 4, "worker died (signal 9)")
    assert effects[POISON] == 4
    assert (queue.qsize(), queue.stats().leased) == (0, 0)
    queue.close()


def test_killed_workers_double_no_future(workers):
    with workers(None, jobs.slow_record, processes=4, retries=5, retry_delay=0.02) as pool:
        with Killer(pool, seed=2) as killer:
            assert list(pool.map(range(2000), timeout=60)) == [2 * item for item in range(2000)]
        progress = pool.progress()
    assert killer.kills >= 1
    assert (progress.done, progress.dead_letters) == (2000, 0)


def test_a_job_that_kills_its_worker_costs_its_neighbours_no_try(workers, drained):
    queue = queueduct.BoundedQueue.create("jobs", 256, item=object)
    queue.put_many(range(100))
    with workers(queue, jobs.fail_once_in_a_batch, processes=1, retries=3, retry_delay=0.01, results="results") as pool:
        assert pool.join(60)
        progress = pool.progress()
    (letter,) = drained("jobs.dead")
    assert (letter.item, letter.tries, letter.message) == (50, 3, "worker died (exit code 1)")
    assert sorted(result for _, result in drained("results")) == [item for item in range(100) if item != 50]
    assert Counter(jobs.recorded("quick"))["50"] == 3
    assert (progress.failed, progress.retried, progress.dead_letters) == (3, 2, 1)
    queue.close()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_end_with_the_process_of_their_pool_and_another_pool_goes_on(method, children, workers, drained):
    queue = queueduct.BoundedQueue.create("jobs", 64, item=object)
    queue.put_many(range(8))
    script = children.start(
        "import sys, time\n"
        "from queueduct import Workers\n"
        "from tests.pool import jobs\n"
        "if __name__ == '__main__':\n"
        "    pool = Workers('jobs', jobs.sleep_long, processes=2, context=sys.argv[1])\n"
        "    print('started', flush=True)\n"
        "    time.sleep(600)\n",
        method,
    )
    assert script.stdout.readline() == "started\n", script.stderr.read()
    until(lambda: len(jobs.recorded("begun")) >= 2, "two jobs in work")
    script.kill()
    script.wait()
    pids = set(map(int, jobs.recorded("begun")))
    until(lambda: not any(map(jobs.is_alive, pids)), "the end of the workers", 5)
    with workers(queue, jobs.double, processes=2, results="results", retry_delay=0.01) as pool:
        assert pool.join(60)
    assert sorted(result for _, result in drained("results")) == [2 * item for item in range(8)]
    queue.close()
