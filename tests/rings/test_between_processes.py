"""Many producers and many consumers in processes of their own.

Allowed: each item exactly once, and what a consumer gets of one producer in that producer's order.
Nothing is random here; the schedule is the machine's.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest

from queueduct import BoundedQueue
from tests.support import traffic

PRODUCERS = CONSUMERS = 4


def run(children, folder, form, count, capacity, threads=1):
    """Through one queue, with so many threads in each process."""
    q = BoundedQueue.create("q", capacity, **form.create)

    def produce(process):
        def work(producer):
            form.put(q, producer, count)

        in_threads(work, range(process * threads, (process + 1) * threads))

    def consume(process):
        def work(consumer):
            np.save(folder / f"got{consumer}.npy", traffic.received(form, q))

        in_threads(work, range(process * threads, (process + 1) * threads))

    consumers = [children.fork(lambda n=n: consume(n)) for n in range(CONSUMERS)]
    producers = [children.fork(lambda n=n: produce(n)) for n in range(PRODUCERS)]
    assert [children.wait(pid) for pid in producers] == [0] * PRODUCERS
    q.shutdown()
    assert [children.wait(pid) for pid in consumers] == [0] * CONSUMERS
    got = [np.load(folder / f"got{n}.npy") for n in range(CONSUMERS * threads)]
    traffic.check(got, PRODUCERS * threads, count)
    stats = q.stats()
    assert (stats.size, stats.tombstones, stats.redelivered) == (0, 0, 0)


def in_threads(work, numbers):
    """Each in a thread of its own; alone, without one."""
    if len(numbers) == 1:
        work(numbers[0])
        return
    threads = [threading.Thread(target=work, args=(n,)) for n in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("name", ["bytes, one at a time", "bytes, in batches", "records, in batches"])
def test_a_million_items_come_exactly_once_and_in_order(children, queue_dir, name):
    run(children, queue_dir, traffic.FORMS[name], 250_000, 1024)


@pytest.mark.parametrize("name", list(traffic.FORMS))
def test_a_small_ring_keeps_everybody_waiting_and_nobody_out(children, queue_dir, name):
    """Eight workers on a ring of eight slots: every claim contends, every wait matters."""
    run(children, queue_dir, traffic.FORMS[name], 5_000, 8)


@pytest.mark.parametrize("name", ["bytes, one at a time", "records, in batches"])
def test_threads_and_processes_mix(children, queue_dir, name):
    run(children, queue_dir, traffic.FORMS[name], 10_000, 64, threads=3)
