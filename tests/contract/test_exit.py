"""The end of a process: whatever waits or is left open, nothing is written to stderr and nothing is left behind."""

from __future__ import annotations

import pytest

WAITING = """
import os, sys, threading, queueduct
from tests.support.deadline import until_parked
named, how = sys.argv[1] == "named", sys.argv[2]
def make(name):
    return queueduct.BoundedQueue.create(f"{name}{os.getpid()}", 2) if named else queueduct.BoundedQueue(2)
full, empty = make("full"), make("empty")
full.put_many([b"1", b"2"])
calls = [
    empty.get,
    lambda: empty.get_many(3),
    lambda: list(empty),
    lambda: empty.get(timeout=1000),
    lambda: full.put(b"3"),
    lambda: full.put_many([b"3"]),
]
threads = [threading.Thread(target=call, daemon=True) for call in calls for _ in range(3)]
for thread in threads:
    thread.start()
until_parked(*threads)
print("waiting", flush=True)
if how == "exception":
    sys.excepthook = lambda *_: None
    raise RuntimeError
if how == "exit":
    sys.exit(0)
"""


@pytest.mark.parametrize("named", ["named", "local"])
@pytest.mark.parametrize("how", ["end", "exit", "exception"])
def test_daemon_threads_that_wait_do_not_disturb_the_end(children, named, how):
    running = [children.start(WAITING, named, how, options=("-W", "error", "-X", "dev")) for _ in range(2)]
    for child in running:
        out, err = child.communicate(timeout=60)
        assert (out, err) == ("waiting\n", "")
        assert child.returncode == (1 if how == "exception" else 0)


def test_daemon_threads_in_full_swing_do_not_disturb_the_end(children):
    for _ in range(3):
        children.run(
            """
import threading, queueduct
from tests.support.deadline import until
queues = [queueduct.BoundedQueue.create("q", 8, item=object, exist_ok=True), queueduct.BoundedQueue(8)]
counts = [0]
def produce(q):
    while True:
        q.put({"a": 1})
def consume(q):
    for _ in q:
        counts[0] += 1
for q in queues:
    for work in (produce, consume):
        threading.Thread(target=work, args=(q,), daemon=True).start()
until(lambda: counts[0] > 1000)
"""
        )


def test_an_event_loop_that_is_left_waiting_does_not_disturb_the_end(children):
    children.run(
        """
import asyncio, threading, queueduct
q = queueduct.BoundedQueue.create("q", 2)
async def main():
    task = asyncio.create_task(q.aget())
    while not any(thread.name == "queueduct-aio" for thread in threading.enumerate()):
        await asyncio.sleep(0)
asyncio.run(main())
"""
    )


def test_open_handles_and_full_queues_are_left_without_a_word(children, queue_dir):
    children.run(
        """
import queueduct
named = queueduct.BoundedQueue.create("q", 4)
named.put(b"1")
local = queueduct.BoundedQueue(4)
local.put(local)
cycle = [named, local]
cycle.append(cycle)
""",
        options=("-W", "error", "-X", "dev"),
    )
    assert [entry.name for entry in queue_dir.iterdir()] == ["q"]  # the queue stays: it has a name


def test_multiprocessing_s_resource_tracker_knows_nothing_of_our_segments(children, queue_dir):
    """It unlinks what it knows when a process ends, also what others still use."""
    children.run(
        """
import multiprocessing, queueduct
def work(q):
    q.put(b"1")
if __name__ == "__main__":
    q = queueduct.BoundedQueue.create("q", 4)
    context = multiprocessing.get_context("spawn")
    from multiprocessing import resource_tracker
    resource_tracker.ensure_running()
    q.put(b"1")
"""
    )
    assert (queue_dir / "q").exists()
    assert children.run("import queueduct; print(queueduct.open('q').get())") == "b'1'\n"


def test_an_item_s_finalizer_may_use_the_queue_at_the_very_end(children):
    children.run(
        """
import queueduct
q = queueduct.BoundedQueue(4)
class Late:
    def __del__(self):
        try:
            q.qsize()
        except Exception:
            pass
q.put(Late())
q.put(q)
"""
    )


def test_a_queue_that_is_created_and_opened_at_exit_works(children):
    out = children.run(
        """
import atexit, queueduct
def at_exit():
    with queueduct.BoundedQueue.create("late", 4) as q:
        q.put(b"1")
        print(q.get())
atexit.register(at_exit)
"""
    )
    assert out == "b'1'\n"
