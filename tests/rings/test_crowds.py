"""Puts that wait briefly or not at all, while others make the queue grow: full only at its budget.

And what rests is given back.
"""

from __future__ import annotations

import threading
import time

import pytest

from queueduct import GrowingQueue
from tests.support.deadline import until

PUT = """
import sys, queueduct
q = queueduct.open("q")
briefly = {"timeout": float(sys.argv[2])}
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[1])):
    name = sys.stdin.readline().strip()
    q = queueduct.open(name)
    full = 0
    for k in range(3000):
        try:
            if k % 3 == 0:
                full += q.put_many([b"x" * 200] * 3, **briefly) < 3
            else:
                q.put(b"x" * 200, **briefly)
        except queueduct.Full:
            full += 1
    q.close()
    print(full, flush=True)
"""


@pytest.mark.parametrize("timeout", [0, 0.0001])
@pytest.mark.parametrize("has_consumer", [False, True])
def test_a_brief_put_is_not_full_because_others_grow_the_queue(children, is_long, has_consumer, timeout):
    rounds = 200 if is_long else 12
    with GrowingQueue.create("q"):
        crowd = [children.start(PUT, rounds, timeout) for _ in range(4)]
        for one in crowd:
            assert one.stdout.readline() == "ready\n"
            print(file=one.stdin, flush=True)
        for i in range(rounds):
            with GrowingQueue.create(f"fresh-{i}", slot_bytes=256, max_bytes=64 << 20) as fresh:
                for one in crowd:
                    print(fresh.name, file=one.stdin, flush=True)
                is_over = threading.Event()
                got = []
                consumer = threading.Thread(target=drain, args=(fresh, is_over, got))
                if has_consumer:
                    consumer.start()
                assert [one.stdout.readline() for one in crowd] == ["0\n"] * 4
                is_over.set()
                if has_consumer:
                    consumer.join()
                assert sum(got) + fresh.qsize() == 4 * 5000
                fresh.unlink()


def drain(q, is_over, got):
    while not is_over.is_set():
        if q.try_get() is not None:
            got.append(1)


def test_at_its_budget_a_put_that_does_not_wait_is_told_full_at_once():
    with GrowingQueue.create("q", slot_bytes=256, max_bytes=1 << 20) as q:
        while q.try_put(b"x" * 200):
            pass
        stats = q.stats()
        assert stats.resident_bytes * 2 > stats.max_bytes
        start = time.monotonic()
        for _ in range(20):
            assert not q.try_put(b"x" * 200)
        assert time.monotonic() - start < 5


def grown(q, items):
    for n in range(items):
        q.put(b"%d" % n * 100)
    while q.qsize():
        q.get_many(4096)


def test_a_drained_queue_that_is_only_polled_gives_its_memory_back():
    with GrowingQueue.create("q", slot_bytes=1024) as q:
        least = q.stats().resident_bytes
        grown(q, 8000)
        assert q.stats().resident_bytes > 2_000_000
        until(lambda: q.try_get() is None and q.stats().resident_bytes <= least, "nothing more is resident")


def test_a_drained_queue_that_somebody_else_polls_gives_its_memory_back(children):
    """Who polls has seen nothing of the growth."""
    with GrowingQueue.create("q", slot_bytes=1024) as q:
        least = q.stats().resident_bytes
        grown(q, 8000)
        with GrowingQueue.open("q") as other:
            until(lambda: other.try_get() is None and q.stats().resident_bytes <= least, "nothing more is resident")


@pytest.mark.parametrize("call", ["get", "lease"])
def test_who_waits_at_a_drained_queue_gives_its_memory_back(call):
    with GrowingQueue.create("q", slot_bytes=1024) as q:
        least = q.stats().resident_bytes
        grown(q, 8000)
        waiting = threading.Thread(target=lambda: getattr(q, call)(*([1] if call == "lease" else [])))
        waiting.start()
        until(lambda: q.stats().resident_bytes <= least + 4096, "nothing more is resident")
        q.put(b"1")
        waiting.join()


def test_a_drained_queue_within_a_process_that_is_polled_shrinks():
    q = GrowingQueue()
    for n in range(5000):
        q.put(n)
    for n in range(5000):
        assert q.get() == n
    until(lambda: q.try_get() is None and q.stats().written_level == 0, "it has shrunk")
