"""What becomes of a job: its result, its tries, its dead letter."""

from __future__ import annotations

import os
import threading
from collections import Counter
from concurrent.futures import as_completed

import numpy as np
import pytest

import queueduct
from queueduct import JobFailed
from tests.pool import jobs
from tests.support.deadline import until

HOSTILE = {
    "raise": ("ValueError", "no good"),
    "base": ("BaseExceptionGroup", "all (1 sub-exception)"),
    "exit": ("SystemExit", "3"),
    "os._exit": ("WorkerDied", "worker died (exit code 4)"),
    "kill": ("WorkerDied", "worker died (signal 9)"),
    "segfault": ("WorkerDied", "worker died (signal 11)"),
    "hang": ("WorkerDied", "worker killed: task_timeout has passed"),
    "stop": ("WorkerDied", "worker killed: task_timeout has passed"),
    "unpicklable": (None, "pickle"),
    "poison result": ("RuntimeError", "cannot be unpickled"),
    "deadly result": ("WorkerDied", "worker died (exit code 5)"),
}


def test_results_come_as_futures_and_in_the_order_of_a_map(workers):
    with workers(None, jobs.double, processes=2) as pool:
        futures = {pool.submit(item): item for item in (1, "a", [2])}
        assert {repr(done.result()): futures[done] for done in as_completed(futures, timeout=30)} == {
            "2": 1,
            "'aa'": "a",
            "[2, 2]": [2],
        }
        assert list(pool.map(range(5000))) == list(range(0, 10000, 2))
        assert list(pool.map([])) == []
        assert len(pool.submit(b"x" * (16 << 20)).result(30)) == 32 << 20
        progress = pool.progress()
    assert (progress.put, progress.done, progress.waiting, progress.running) == (5004, 5004, 0, 0)


def test_every_hostile_job_is_tried_as_often_as_said_and_ends_in_the_dead_letters(workers, drained):
    with workers(
        None, jobs.misbehave, processes=3, retries=2, retry_delay=0.01, task_timeout=0.5, dead_letters="dead"
    ) as pool:
        failing = {how: pool.submit(how) for how in HOSTILE}
        fine = pool.submit("array"), pool.submit("fork"), pool.submit(7)
        for how, future in failing.items():
            error = future.exception(60)
            assert isinstance(error, ValueError if how == "raise" else Exception), how
            if HOSTILE[how][0] == "WorkerDied":
                assert isinstance(error, JobFailed)
                assert HOSTILE[how][1] in str(error)
        assert np.array_equal(fine[0].result(30), np.arange(1000))
        assert (fine[1].result(30), fine[2].result(30)) == ("fork", 7)
        progress = pool.progress()
    letters = {letter.item: letter for letter in drained("dead")}
    assert set(letters) == set(HOSTILE)
    for how, (error_type, message) in HOSTILE.items():
        assert letters[how].tries == 2, how
        assert letters[how].error_type == (error_type or letters[how].error_type), how
        assert message in letters[how].message, how
    assert "in misbehave" in letters["raise"].traceback
    tries = Counter(jobs.recorded("tries"))
    assert {how: tries[how] for how in HOSTILE} == dict.fromkeys(HOSTILE, 2)
    assert (progress.failed, progress.retried, progress.dead_letters) == (22, 11, 11)


@pytest.mark.parametrize("kind", [jobs.RaisesWhenUnpickled, jobs.EndsWhoUnpickles])
def test_an_item_that_cannot_be_unpickled_harms_nobody(kind, workers, drained):
    queue = queueduct.GrowingQueue.create("jobs", item=object)
    queue.put_many([1, kind(), 2])
    with workers(queue, jobs.double, processes=2, retries=2, retry_delay=0.01, results="results") as pool:
        assert pool.join(60)
    assert sorted(result for _, result in drained("results")) == [2, 4]
    (letter,) = drained("jobs.dead")
    assert letter.tries == 2
    assert b"explode" in letter.data or b"_exit" in letter.data
    queue.close()


def test_a_failed_job_waits_longer_each_time_and_holds_up_no_other(workers):
    with workers(None, jobs.fail_twice, processes=1, retry_delay=0.2) as pool:
        assert list(pool.map(["a", "b"], timeout=60)) == ["a", "b"]
    times = {item: [float(line) for line in jobs.recorded(f"tried-{item}")] for item in "ab"}
    for first, second, third in times.values():
        assert second - first >= 0.19
        assert third - second >= 0.39
    assert times["b"][0] < times["a"][1]


def test_an_exception_that_cannot_travel_is_told_in_words(workers):
    with (
        workers(None, jobs.raise_odd, processes=1, retries=1) as pool,
        pytest.raises(JobFailed, match=r"failed 1 times, at last with OddError: 1"),
    ):
        pool.submit(1).result(30)


def test_items_are_what_a_get_returns(workers, drained):
    tick = np.dtype([("symbol", "S8"), ("price", "f8")])
    with queueduct.BoundedQueue.create("ticks", 64, item=tick) as queue:
        queue.put_many([(b"A", 1.5), (b"B", 2.5)])
        with workers("ticks", jobs.price, processes=1, results="prices") as pool:
            assert pool.join(30)
    assert drained("prices") == [(0, 1.5), (1, 2.5)]
    with queueduct.BoundedQueue.create("lines", 64) as queue:
        queue.put(b"ab")
        with workers("lines", jobs.double, processes=1, results="doubled") as pool:
            assert pool.join(30)
    assert drained("doubled") == [(0, b"abab")]


def test_a_full_queue_of_results_or_dead_letters_delays_and_loses_nothing(workers):
    queue = queueduct.BoundedQueue.create("jobs", 1024, item=object)
    results = queueduct.BoundedQueue.create("results", 4, item=object)
    dead = queueduct.BoundedQueue.create("dead", 2, item=object)
    queue.put_many([1] * 40 + ["raise"] * 6)
    with workers(queue, jobs.misbehave, processes=2, retries=1, results=results, dead_letters=dead) as pool:
        assert not pool.join(0.5)
        until(lambda: results.full() and dead.full(), "two full queues")
        assert [results.get(timeout=30)[1] for _ in range(40)] == [1] * 40
        assert [dead.get(timeout=30).item for _ in range(6)] == ["raise"] * 6
        assert pool.join(30)
    assert (results.qsize(), dead.qsize()) == (0, 0)
    for each in (queue, results, dead):
        each.close()


def test_two_pools_on_one_queue_share_its_jobs_and_deliver_each_result_once(workers, drained):
    queue = queueduct.BoundedQueue.create("jobs", 4096, item=object)
    with (
        workers(queue, jobs.double, processes=2, results="results") as one,
        workers("jobs", jobs.double, processes=2, results="results") as two,
    ):
        queue.put_many(range(3000))
        assert one.join(60)
        assert two.join(60)
    assert sorted(result for _, result in drained("results")) == [2 * item for item in range(3000)]
    queue.close()


def test_a_worker_is_replaced_after_its_share_of_jobs(workers):
    with workers(None, jobs.record_pid, processes=1, max_tasks_per_child=10) as pool:
        list(pool.map(range(35)))
        until(lambda: pool.progress().restarts >= 3, "the fourth worker")
    assert max(Counter(jobs.recorded("pids")).values()) == 10


def test_a_pool_outlives_the_thread_that_started_it(workers):
    found = []
    thread = threading.Thread(target=lambda: found.append(workers(None, jobs.double, processes=1)))
    thread.start()
    thread.join()
    with found[0] as pool:
        assert pool.submit(4).result(30) == 8
        assert pool.progress().restarts == 0


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_every_start_method_works(method, workers):
    with workers(None, jobs.record_pid, processes=1, context=method) as pool:
        assert pool.submit(1).result(60) != os.getpid()


def test_a_queue_that_is_shut_down_is_worked_off(workers, drained):
    queue = queueduct.GrowingQueue.create("jobs", item=object)
    queue.put_many(["a", "b"])
    queue.shutdown()
    with workers(queue, jobs.fail_twice, processes=2, retry_delay=0.01, results="results") as pool:
        assert pool.join(30)
    assert sorted(drained("results")) == [(0, "a"), (1, "b")]
    queue.close()
