"""What a pool survives beside the death of a worker: callbacks, full and small queues, stopped workers, bad moments."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections import Counter

import pytest

import queueduct
from queueduct import QueueClosed, Workers, WorkersBroken
from queueduct.pool import places, retry, supervisor
from queueduct.pool.results import Calls, FutureCall
from tests.pool import jobs
from tests.pool.test_ends import PROGRAM, leftovers
from tests.support.deadline import until


def test_join_and_progress_may_meet_the_end_of_the_pool(workers):
    queue = queueduct.BoundedQueue.create("jobs", 64, item=object)
    pool = workers(queue, jobs.double, processes=1)
    closed, go_on = threading.Event(), threading.Event()
    pool._supervisor.at_end(closed.set)
    pool._supervisor.at_end(lambda: go_on.wait(30))
    pool.shutdown(wait=False)
    assert closed.wait(30)  # its queues are closed, and its end is not over
    assert not pool.join(0.01)
    assert pool.progress().waiting == 0
    go_on.set()
    assert pool.join(30)
    queue.close()


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit, ValueError])
def test_a_callback_may_raise_anything(error, workers, caplog):
    def fail(future):
        raise error

    with workers(None, jobs.wait_for_file, processes=1) as pool:
        first, last = pool.submit(1), pool.submit(2)
        first.add_done_callback(fail)
        last.add_done_callback(fail)
        until(lambda: jobs.recorded("begun"), "a job in work")
        jobs.record("go", 1)
        assert first.result(30) == 1
        assert last.result(30) == 2
    assert caplog.text.count(error.__name__) >= 2


def test_futures_are_cancelled_even_if_their_callbacks_raise(workers):
    def fail(future):
        raise SystemExit

    pool = workers(None, jobs.sleep_long, processes=1)
    futures = [pool.submit(1) for _ in range(3)]
    for future in futures:
        future.add_done_callback(fail)
    pool.close(timeout=0)
    assert all(future.cancelled() for future in futures)


@pytest.mark.parametrize("call", ["join", "shutdown", "close"])
def test_a_callback_that_waits_for_its_own_pool_is_told_so(call, workers):
    told = []

    def wait_in_callback(future):
        try:
            getattr(pool, call)()
        except RuntimeError as error:
            told.append(str(error))

    pool = workers(None, jobs.wait_for_file, processes=1)
    future = pool.submit(1)
    future.add_done_callback(wait_in_callback)
    jobs.record("go", 1)
    assert future.result(30) == 1
    until(lambda: told, "the callback")
    assert told[0].startswith(f"{call} waits for the thread that calls back")
    pool.shutdown()


def test_results_without_room_at_the_end_of_a_pool_come_once_from_the_next_one(workers, queue_dir):
    queue = queueduct.BoundedQueue.create("jobs", 64, item=object)
    results = queueduct.BoundedQueue.create("results", 4, item=object)
    queue.put_many(range(40))
    found = []
    for _ in range(10):
        pool = workers(queue, jobs.double, processes=1, results=results)
        wanted = min(4, 40 - len(found))
        until(lambda wanted=wanted: results.qsize() == wanted, "as many results as fit")
        pool.close()
        found += results.get_many(4)
    assert Counter(result for _, result in found) == Counter(range(0, 80, 2))
    assert results.empty()
    with workers(queue, jobs.double, processes=1, results=results):
        pass  # the last pool that has nothing to do removes the directory
    assert leftovers(queue_dir) == []
    queue.close()
    results.close()


def test_a_result_that_came_before_its_worker_was_killed_does_not_come_again_from_the_next_pool(workers, queue_dir):
    queue = queueduct.BoundedQueue.create("jobs", 64, item=object)
    results = queueduct.GrowingQueue.create("results", item=object)
    queue.put(4)
    pool = workers(queue, jobs.slow_record, processes=1, results=results, initializer=jobs.release_nothing)
    assert results.get(timeout=30) == (0, 8)
    pool.close(timeout=0)
    assert queue.qsize() == 1
    with workers(queue, jobs.slow_record, processes=1, results=results) as pool:
        assert pool.join(30)
    assert results.empty()
    assert jobs.recorded("effects") == ["4", "4"]
    assert leftovers(queue_dir) == []
    queue.close()
    results.close()


def test_a_result_that_is_too_long_for_its_queue_fails_its_job(workers, drained):
    queue = queueduct.BoundedQueue.create("jobs", 64, item=object)
    results = queueduct.BoundedQueue.create("results", 4, item=object, slot_bytes=64)
    queue.put_many([1, b"x" * 1000, 2])
    with workers(queue, jobs.double, processes=1, retries=1, results=results) as pool:
        assert pool.join(30)
    assert [result for _, result in drained("results")] == [2, 4]
    (letter,) = drained("jobs.dead")
    assert "a result must have at most 256 bytes when pickled" in letter.message
    queue.close()
    results.close()


def test_a_dead_letter_that_is_too_long_loses_its_text_and_not_its_item(workers):
    queue = queueduct.BoundedQueue.create("jobs", 64, item=object)
    dead = queueduct.BoundedQueue.create("dead", 16, item=object, slot_bytes=128)
    queue.put(100_000)
    with workers(queue, jobs.raise_long, processes=1, retries=1, dead_letters=dead) as pool:
        assert pool.join(30)
    letter = dead.get(timeout=0)
    assert (letter.item, letter.message) == (100_000, "x" * 200)
    queue.close()
    dead.close()


def test_a_dead_letter_that_can_never_fit_ends_the_pool_and_the_remedy_works(workers):
    queue = queueduct.BoundedQueue.create("jobs", 64, item=object)
    queue.put(10)
    with queueduct.BoundedQueue.create("dead", 1, item=object, slot_bytes=8) as small:
        pool = workers(queue, jobs.raise_long, processes=1, retries=1, dead_letters=small)
        with pytest.raises(WorkersBroken, match=r"can never fit into 'dead'.*create the queue with a larger capacity"):
            pool.join(30)
        pool.close()
        small.unlink()
    with (
        queueduct.GrowingQueue.create("dead", item=object) as larger,
        workers(queue, jobs.raise_long, processes=1, retries=1, dead_letters=larger) as pool,
    ):
        assert pool.join(30)
        assert larger.get(timeout=0).item == 10
    queue.close()


def test_a_very_long_error_becomes_a_short_text(workers):
    with workers(None, jobs.raise_long, processes=1, retries=1, dead_letters="dead") as pool:
        assert isinstance(pool.submit(40 << 20).exception(60), queueduct.JobFailed)
    with queueduct.open("dead") as dead:
        letter = dead.get(timeout=0)
    assert len(letter.message) < len(letter.traceback) + 100 < 2 << 20


def test_a_pool_that_a_job_has_left_open_ends_with_its_worker(workers, queue_dir):
    pool = workers(None, jobs.leave_a_pool_open, processes=1)
    assert pool.submit(3).result(60) == 6
    pool.shutdown(wait=False)
    assert pool._supervisor.ended.wait(30)
    assert leftovers(queue_dir) == []


def test_a_stopped_worker_without_a_job_does_not_hold_up_the_end(workers):
    pool = workers(None, jobs.double, processes=2)
    assert pool.submit(1).result(30) == 2
    os.kill(pool.processes()[0], signal.SIGSTOP)
    pool.shutdown(wait=False)
    assert pool._supervisor.ended.wait(30)


def test_a_stopped_worker_without_a_job_is_replaced_after_the_task_timeout(workers):
    with workers(None, jobs.double, processes=1, task_timeout=0.2) as pool:
        assert pool.submit(1).result(30) == 2
        (stopped,) = pool.processes()
        os.kill(stopped, signal.SIGSTOP)
        assert pool.submit(2).result(30) == 4
        assert pool.progress().failed == 0
        assert stopped not in pool.processes()


def test_jobs_that_fail_one_by_one_and_wait_long_keep_no_other_failure_waiting(workers, monkeypatch):
    monkeypatch.setattr(retry, "HELD_LIMIT", 4)
    with workers(None, jobs.fail_twice, processes=1, retry_delay=600, max_retry_delay=600) as pool:
        for count in range(1, 21):
            pool.submit(count)
            until(lambda count=count: pool.progress().failed == count, "the next failure")
        assert pool.progress().waiting == 20
        pool.close()


def test_every_failed_job_has_all_its_tries_however_few_leases_there_are(workers, monkeypatch):
    monkeypatch.setattr(retry, "HELD_LIMIT", 2)
    monkeypatch.setattr(retry, "LEASE_ITEMS", 16)
    with workers(None, jobs.fail_twice, processes=2, retry_delay=0.05) as pool:
        assert list(pool.map(range(40), timeout=60)) == list(range(40))
        progress = pool.progress()
    assert all(len(jobs.recorded(f"tried-{item}")) == 3 for item in range(40))
    assert (progress.failed, progress.retried, progress.dead_letters) == (80, 80, 0)


def test_a_worker_that_cannot_be_replaced_just_now_is_replaced_later(workers, monkeypatch):
    with workers(None, jobs.double, processes=1, context="fork") as pool:
        assert pool.submit(1).result(30) == 2
        fork, refusals = os.fork, iter(range(3))

        def refuse():
            if next(refusals, None) is not None:
                raise BlockingIOError(11, "Resource temporarily unavailable")
            return fork()

        monkeypatch.setattr(os, "fork", refuse)
        os.kill(pool.processes()[0], signal.SIGKILL)
        assert pool.submit(2).result(30) == 4
        assert next(refusals, None) is None


def test_workers_that_cannot_lease_pause_and_then_end_the_pool_and_say_why(workers, capfd):
    with queueduct.BoundedQueue.create("jobs", 64, item=object, participants=1) as queue:
        queue.put(1)  # by this thread, the only participant
        pool = workers(queue, jobs.double, processes=1)
        with pytest.raises(WorkersBroken, match="create the queue with a larger participants="):
            pool.join(60)
        assert pool.progress().restarts < 10
        pool.close()


def test_a_pool_whose_queue_was_replaced_ends_when_no_worker_is_left_and_says_why(workers, capfd):
    queue = queueduct.BoundedQueue.create("jobs", 64, item=object)
    pool = workers("jobs", jobs.double, processes=1)
    other = queueduct.BoundedQueue.create("jobs", 64, item=object, replace=True)
    os.kill(pool.processes()[0], signal.SIGKILL)
    queue.put(1)
    with pytest.raises(WorkersBroken, match="it was recreated"):
        pool.join(60)
    pool.close()
    assert queue.qsize() == 1
    queue.close()
    other.close()


def test_a_job_that_is_submitted_while_the_pool_ends_is_refused():
    calls = Calls()
    calls.end(None)
    with pytest.raises(QueueClosed, match="start another one"):
        calls.number(FutureCall(None), 1)


@pytest.mark.parametrize("queue", [None, "jobs"])
def test_an_interrupt_during_the_start_leaves_nothing_behind(queue, queue_dir, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    queueduct.BoundedQueue.create("jobs", 64, item=object).close()
    with monkeypatch.context() as patch:
        patch.setattr(supervisor.Supervisor, "__init__", interrupt)
        with pytest.raises(KeyboardInterrupt):
            Workers(queue, jobs.double, processes=1)
        assert leftovers(queue_dir) == []
    monkeypatch.setattr(places, "Lines", interrupt)
    with pytest.raises(KeyboardInterrupt):
        Workers(queue, jobs.double, processes=1)
    assert leftovers(queue_dir) == []


def test_a_pool_removes_no_directory_that_was_made_after_its_own(queue_dir):
    path = queue_dir / ".workers-1"
    old = places.prepare(path, "jobs")
    shutil.rmtree(path)
    new = places.prepare(path, "jobs")
    places.remove(path, old, if_empty=False)
    assert path.exists()
    places.remove(path, new, if_empty=False)
    assert leftovers(queue_dir) == []
    old.close()
    new.close()


def test_ctrl_c_while_workers_start_prints_one_traceback(children):
    script = children.start(
        PROGRAM.format(
            "pool = Workers(None, jobs.double, processes=2, context='spawn', initializer=print, "
            "initargs=(jobs.ArrivesWithCtrlC(),))\n    time.sleep(600)"
        )
    )
    until(lambda: len(jobs.recorded("arriving")) == 2, "two workers on their way")
    os.killpg(script.pid, signal.SIGINT)
    _, err = script.communicate(timeout=30)
    assert err.count("Traceback") == 1, err
    assert not any(jobs.is_alive(int(pid)) for pid in jobs.recorded("arriving"))


def test_a_worker_does_not_lease_many_long_items_at_once(workers, drained):
    queue = queueduct.GrowingQueue.create("jobs")
    for _ in range(24):
        queue.put(bytes(8 << 20))
    with workers(queue, jobs.count_leased, processes=1, results="results") as pool:
        assert pool.join(60)
    assert max(found for _, found in drained("results")) <= 2  # 16 MB; a busy machine takes one at a time
    queue.close()
