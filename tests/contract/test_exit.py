"""The end of a process: whatever waits or is left open, nothing is written to stderr and nothing is left behind."""

from __future__ import annotations

import pytest

import queueduct
from tests.support.cases import CASES, PLAIN, PLAIN_NAMED

WAITING = """
import sys, threading
from tests.support.cases import CASES
from tests.support.deadline import until_parked
case, how = CASES[sys.argv[1]], sys.argv[2]
full, empty = case.make(2, "full"), case.make(2, "empty")
behind = case.consumer(full)
case.fill(full)
calls = []
for _ in range(3):
    readers = [case.consumer(empty) for _ in range(4)]
    calls += [readers[0].get, lambda r=readers[1]: r.get_many(3), lambda r=readers[2]: list(r)]
    calls += [lambda r=readers[3]: r.get(timeout=1000)]
    calls += [lambda: full.put(case.item(3)), lambda: full.put_many(case.items(3))]
threads = [threading.Thread(target=call, daemon=True) for call in calls]
for thread in threads:
    thread.start()
until_parked(*threads)
cycle = [full, behind]
cycle.append(cycle)
print("waiting", flush=True)
if how == "exception":
    sys.excepthook = lambda *_: None
    raise RuntimeError
if how == "exit":
    sys.exit(0)
"""


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("how", ["end", "exit", "exception"])
def test_daemon_threads_that_wait_do_not_disturb_the_end(children, name, how):
    child = children.start(WAITING, name, how, options=("-W", "error", "-X", "dev"))
    out, err = child.communicate(timeout=60)
    assert (out, err) == ("waiting\n", "")
    assert child.returncode == (1 if how == "exception" else 0)


SWING = """
import sys, threading
from tests.support.cases import CASES
from tests.support.deadline import until
case = CASES[sys.argv[1]]
q = case.make(8)
counts = [0]
def produce():
    while True:
        q.put(case.item(1))
def consume(reader):
    for _ in reader:
        counts[0] += 1
threading.Thread(target=produce, daemon=True).start()
threading.Thread(target=consume, args=(case.consumer(q),), daemon=True).start()
until(lambda: counts[0] > 1000)
"""


SEARCHING = """
import sys, threading
from tests.support.cases import CASES
from tests.support.deadline import until
case = CASES[sys.argv[1]]
full, empty = case.make(2, "full"), case.make(2, "empty")
behind = case.consumer(full)
case.fill(full)
readers = [case.consumer(empty) for _ in range(2)]
counts = [0] * 4
def again(i, call):
    while True:
        call()
        counts[i] += 1
calls = [readers[0].try_get, readers[1].try_get] + [lambda: full.try_put(case.item(3))] * 2
for i, call in enumerate(calls):
    threading.Thread(target=again, args=(i, call), daemon=True).start()
until(lambda: min(counts) > 100)
"""


@pytest.mark.parametrize("name", PLAIN_NAMED)
def test_daemon_threads_that_look_for_the_dead_do_not_disturb_the_end(children, name):
    """A call that finds nothing now and then asks who has died, without the GIL, and then wants it back."""
    for _ in range(4):
        children.run(SEARCHING, name)
        queueduct.unlink("full")
        queueduct.unlink("empty")


@pytest.mark.parametrize("name", [name for name in CASES if "objects" in name])
def test_daemon_threads_in_full_swing_do_not_disturb_the_end(children, name):
    for _ in range(2):
        children.run(SWING, name)
        if CASES[name].make(2, "other").name:
            queueduct.unlink("other")
            queueduct.unlink("q")


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


@pytest.mark.parametrize("name", PLAIN_NAMED)
def test_multiprocessing_s_resource_tracker_knows_nothing_of_our_segments(children, queue_dir, name):
    """It unlinks what it knows when a process ends, also what others still use."""
    children.run(
        """
import sys
from multiprocessing import resource_tracker
from tests.support.cases import CASES
case = CASES[sys.argv[1]]
resource_tracker.ensure_running()
case.make(4).put(case.item(1))
""",
        name,
    )
    assert (queue_dir / "q").exists()
    with queueduct.open("q") as q:
        assert CASES[name].number(CASES[name].consumer(q).get()) == 1


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
