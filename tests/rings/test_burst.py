"""A burst: how long single puts take in it, how long they wait, and what is left of it afterwards."""

from __future__ import annotations

import os
import resource
import time

import numpy as np
import pytest

from queueduct import GrowingQueue

PRODUCERS = 2
ITEM_BYTES = 1024
CALM_ITEMS = 100_000
EDGES_US = np.array([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000])
LIMIT_NS = 5_000_000


def put_all(queue, count, path):
    """Of every put: its time on the clock, its processor time, and whether it slept on the way."""
    put, clock, own_clock, usage = queue.put, time.perf_counter_ns, time.thread_time_ns, resource.getrusage
    item, figures = b"x" * ITEM_BYTES, np.zeros((count, 3), np.int64)
    for i in range(count):
        slept, own, start = usage(resource.RUSAGE_THREAD).ru_nvcsw, own_clock(), clock()
        put(item)
        taken = clock() - start
        figures[i] = taken, own_clock() - own, usage(resource.RUSAGE_THREAD).ru_nvcsw - slept
    np.save(path, figures)


def histogram(durations_ns):
    counts = np.bincount(np.searchsorted(EDGES_US * 1000, durations_ns, side="right"), minlength=len(EDGES_US) + 1)
    names = [f"< {edge} us" for edge in EDGES_US] + [f">= {EDGES_US[-1]} us"]
    return "\n".join(f"    {name:>10}  {count:>9,}" for name, count in zip(names, counts, strict=True) if count)


@pytest.mark.timeout(600)
def test_a_burst_comes_and_goes(queue_dir, children, is_long, capsys):
    """Who needs memory gets it within 5 ms. What others have of the processor meanwhile is no wait for memory."""
    burst_bytes = 1 << (30 if is_long else 26)
    each = burst_bytes // ITEM_BYTES // PRODUCERS

    def resident():
        return os.stat(queue_dir / "q").st_blocks * 512

    with GrowingQueue.create("q", slot_bytes=ITEM_BYTES) as q:
        paths = [queue_dir / f"figures{n}.npy" for n in range(PRODUCERS)]
        running = [children.fork(lambda path=path: put_all(q, each, path)) for path in paths]
        assert [children.wait(pid) for pid in running] == [0] * PRODUCERS
        taken, own, slept = np.concatenate([np.load(path) for path in paths]).T
        highest = resident()
        for _ in range(PRODUCERS * each):
            assert len(q.get()) == ITEM_BYTES
        drained = resident()
        for _ in range(CALM_ITEMS if is_long else CALM_ITEMS // 10):
            q.put(b"x" * ITEM_BYTES)
            q.get()
        calm = resident()
        waits = taken[slept > 0]
        with capsys.disabled():
            print(f"\n  {PRODUCERS} producers, puts of {ITEM_BYTES} bytes, {burst_bytes >> 20} MB, on the clock:")
            print(histogram(taken))
            print(f"  the same in processor time, the longest {own.max() / 1e6:.2f} ms:\n{histogram(own)}")
            print(
                f"  {len(waits):,} of them slept, the longest {waits.max(initial=0) / 1e6:.2f} ms:\n{histogram(waits)}"
            )
            print(
                f"  resident: {highest >> 20} MB full, {drained >> 20} MB drained, {calm >> 10} kB calm; "
                f"grown {q.stats().grown}, shrunk {q.stats().shrunk}"
            )
        assert highest > burst_bytes
        assert own.max() < LIMIT_NS, "no put works for 5 ms to get memory"
        if is_long:  # in the short form others have the processor
            assert waits.max(initial=0) < LIMIT_NS, "no put sleeps for 5 ms until it has some"
        assert calm < 1 << 20
