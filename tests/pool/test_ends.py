"""How a pool ends: closed, interrupted, forgotten, broken; and what it refuses."""

from __future__ import annotations

import gc
import os
import signal

import pytest

import queueduct
from queueduct import QueueClosed, QueueNotFound, QueueNotShared, Workers, WorkersBroken
from tests.pool import jobs
from tests.support.deadline import until

PROGRAM = """
import os, sys, time
from queueduct import Workers
from tests.pool import jobs
if __name__ == "__main__":
    os.setpgid(0, 0)
    {}
"""


def leftovers(queue_dir):
    return sorted(path.name for path in queue_dir.iterdir() if path.name.startswith(".workers"))


def test_a_closed_pool_leaves_the_jobs_that_were_not_begun(workers, queue_dir):
    queue = queueduct.BoundedQueue.create("jobs", 64, item=object)
    queue.put_many(range(5))
    pool = workers(queue, jobs.wait_for_file, processes=1)
    until(lambda: jobs.recorded("begun"), "a job in work")
    pool.shutdown(wait=False, cancel_futures=True)
    jobs.record("go", 1)
    pool.close()
    pool.close()
    assert (queue.qsize(), queue.stats().leased) == (4, 0)
    assert leftovers(queue_dir) == []
    assert "closed" in repr(pool)
    assert pool.join()
    queue.close()


def test_a_pool_closed_with_a_timeout_kills_what_takes_longer(workers):
    queue = queueduct.BoundedQueue.create("jobs", 64, item=object)
    queue.put(1)
    pool = workers(queue, jobs.sleep_long, processes=1)
    until(lambda: jobs.recorded("begun"), "a job in work")
    pool.close(timeout=0.05)
    assert not jobs.is_alive(int(jobs.recorded("begun")[0]))
    assert queue.qsize() == 1
    queue.close()


def test_futures_that_were_not_begun_are_cancelled(workers, queue_dir):
    pool = workers(None, jobs.wait_for_file, processes=1)
    futures = [pool.submit(item) for item in range(3)]
    until(lambda: jobs.recorded("begun"), "a job in work")
    pool.shutdown(wait=False, cancel_futures=True)
    jobs.record("go", 1)
    pool.shutdown()
    assert futures[0].result(0) == 0
    assert all(future.cancelled() for future in futures[1:])
    with pytest.raises(QueueClosed, match="closed"):
        pool.submit(1)
    assert leftovers(queue_dir) == []


def test_an_exception_in_the_block_ends_the_workers_at_once(workers):
    pool = workers(None, jobs.sleep_long, processes=2)
    pool.submit(1)
    until(lambda: jobs.recorded("begun"), "a job in work")
    with pytest.raises(ZeroDivisionError), pool:
        raise ZeroDivisionError
    assert pool.processes() == []


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_ctrl_c_ends_the_program_and_its_workers_and_the_jobs_come_back(method, children):
    queue = queueduct.BoundedQueue.create("jobs", 64, item=object)
    queue.put_many(range(5))
    script = children.start(
        PROGRAM.format(
            f"with Workers('jobs', jobs.sleep_long, processes=2, context={method!r}) as pool:\n        pool.join()"
        )
    )
    until(lambda: len(jobs.recorded("begun")) == 2, "two jobs in work")
    os.killpg(script.pid, signal.SIGINT)
    _, err = script.communicate(timeout=30)
    assert script.returncode == -signal.SIGINT
    assert err.count("Traceback") == 1, err
    assert "KeyboardInterrupt" in err
    assert not any(jobs.is_alive(int(pid)) for pid in jobs.recorded("begun"))
    assert (queue.qsize(), queue.stats().leased) == (5, 0)
    queue.close()


def test_a_program_that_never_closes_its_pool_ends(children, queue_dir):
    script = PROGRAM.format("pool = Workers(None, jobs.sleep_long, processes=2)\n    pool.submit(1)")
    children.run(script)
    assert leftovers(queue_dir) == []


def test_a_forgotten_pool_ends_its_workers(workers):
    pool = workers(None, jobs.double, processes=1)
    (pid,) = pool.processes()
    del pool
    gc.collect()
    until(lambda: not jobs.is_alive(pid), "the end of the worker")


def test_what_a_killed_pool_left_is_removed_by_the_next_one(children, workers, queue_dir):
    script = children.start(
        PROGRAM.format("pool = Workers(None, jobs.double, processes=1)\n    print(1, flush=True); time.sleep(600)")
    )
    assert script.stdout.readline() == "1\n"
    script.kill()
    script.wait()
    assert len(leftovers(queue_dir)) == 1
    with workers(None, jobs.double, processes=1):
        assert len(leftovers(queue_dir)) == 1
    assert leftovers(queue_dir) == []


def test_workers_that_cannot_start_break_the_pool_and_say_why(workers, capfd):
    pool = workers(None, jobs.double, processes=2, initializer=jobs.start_badly, initargs=("no database",))
    future = pool.submit(1)
    with pytest.raises(WorkersBroken, match="no database"):
        future.result(60)
    with pytest.raises(WorkersBroken, match="no database"):
        pool.submit(2)
    with pytest.raises(WorkersBroken):
        pool.join()
    pool.close()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"processes": 0}, ValueError, "processes must be between 1 and 1024: processes=0"),
        ({"processes": -1}, ValueError, "processes=-1"),
        ({"processes": True}, TypeError, "processes must be an int: processes=True"),
        ({"processes": "8"}, TypeError, "processes='8'"),
        ({"processes": 1 << 40}, ValueError, "between 1 and 1024"),
        ({"retries": 0}, ValueError, "retries must be between"),
        ({"retry_delay": -1}, ValueError, "retry_delay must be a finite number"),
        ({"retry_delay": float("nan")}, ValueError, "retry_delay must be a finite number"),
        ({"task_timeout": 0}, ValueError, "task_timeout must be a finite number of at least 0.001"),
        ({"task_timeout": "1"}, TypeError, "task_timeout must be a number of seconds"),
        ({"max_tasks_per_child": 0}, ValueError, "max_tasks_per_child"),
        ({"max_batch": 0}, ValueError, "max_batch"),
        ({"context": "thread"}, ValueError, "context must be one of fork, spawn, forkserver"),
        ({"context": 3}, TypeError, "context must be"),
        ({"initializer": 3}, TypeError, "initializer must be callable"),
        ({"function": lambda item: item}, TypeError, "function must be picklable, as workers start by forkserver"),
        ({"function": None}, TypeError, "function must be callable"),
        ({"results": "x", "queue": None}, ValueError, "results needs a queue of jobs"),
        ({"results": 3}, TypeError, "results must be a named queue of objects"),
        ({"dead_letters": "jobs"}, TypeError, "dead_letters must be a named queue of objects"),
        ({"queue": "missing"}, QueueNotFound, "missing"),
        ({"queue": 3}, TypeError, "queue must be a BoundedQueue or a GrowingQueue"),
    ],
)
def test_bad_options_are_refused_before_anything_starts(options, error, message, queue_dir):
    queueduct.BoundedQueue.create("jobs", 4).close()
    arguments = {"queue": "jobs", "function": jobs.double, "processes": 1, **options}
    with pytest.raises(error) as found:
        Workers(arguments.pop("queue"), arguments.pop("function"), **arguments)
    assert message in str(found.value)
    assert leftovers(queue_dir) == []


def test_a_function_of_a_program_that_is_no_file_is_refused(children):
    code = "from queueduct import Workers\ndef job(item): pass\nWorkers(None, job, processes=1{})"
    script = children.start(code.format(""))
    _, err = script.communicate(timeout=60)
    assert "TypeError: function must be in a module that a new process can import" in err
    children.run(code.format(", context='fork'") + ".close()")


def test_queues_without_a_name_and_of_other_kinds_are_refused():
    with pytest.raises(ValueError, match=r"use BoundedQueue.create\(name"):
        Workers(queueduct.BoundedQueue(4), jobs.double, processes=1)
    with queueduct.EventQueue.create("log") as log, pytest.raises(TypeError, match="BoundedQueue or a GrowingQueue"):
        Workers(log, jobs.double, processes=1)


def test_submit_needs_a_queue_of_the_pools_own(workers):
    queue = queueduct.BoundedQueue.create("jobs", 4, item=object)
    with queue, workers(queue, jobs.double, processes=1) as pool:
        for call in (pool.submit, pool.map):
            with pytest.raises(ValueError, match="needs a queue of the pool's own"):
                call([1])


def test_a_forked_child_cannot_use_its_parents_pool(workers, children):
    with workers(None, jobs.double, processes=1) as pool:

        def work():
            with pytest.raises(QueueNotShared, match="start another one here"):
                pool.submit(1)

        assert children.wait(children.fork(work)) == 0
        assert pool.submit(2).result(30) == 4


def test_a_pool_cannot_be_pickled_and_an_unpicklable_item_puts_nothing(workers):
    with workers(None, jobs.double, processes=1) as pool:
        with pytest.raises(TypeError, match="a pool cannot be pickled"):
            pool.__reduce__()
        with pytest.raises((AttributeError, TypeError)):
            pool.submit(lambda: None)
        assert pool.join(10)
        with pytest.raises(TimeoutError):
            next(pool.map([1], timeout=0))
