"""A burst of a gigabyte: how long single puts take in it, and what is left of it afterwards."""

from __future__ import annotations

import os
import time
from array import array

import pytest

from penstock import GrowingQueue

ITEM_BYTES = 1024
BURST_BYTES = 1 << 30
CALM_ITEMS = 100_000
EDGES_US = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)


def histogram(durations_ns):
    counts = [0] * (len(EDGES_US) + 1)
    for duration in durations_ns:
        counts[sum(duration >= edge * 1000 for edge in EDGES_US)] += 1
    names = [f"< {edge} us" for edge in EDGES_US] + [f">= {EDGES_US[-1]} us"]
    return "\n".join(f"    {name:>10}  {count:>9,}" for name, count in zip(names, counts, strict=True) if count)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_burst_of_a_gigabyte_comes_and_goes(queue_dir, capsys):
    def resident():
        return os.stat(queue_dir / "q").st_blocks * 512

    with GrowingQueue.create("q", slot_bytes=ITEM_BYTES) as q:
        item = b"x" * ITEM_BYTES
        put, clock, own_clock = q.put, time.perf_counter_ns, time.thread_time_ns
        durations = array("q", bytes(8 * (BURST_BYTES // ITEM_BYTES)))
        own = array("q", durations)  # without what others had of the processor meanwhile
        for i in range(len(durations)):
            start, own_start = clock(), own_clock()
            put(item)
            own[i], durations[i] = own_clock() - own_start, clock() - start
        highest = resident()
        for _ in range(len(durations)):
            assert len(q.get()) == ITEM_BYTES
        drained = resident()
        for _ in range(CALM_ITEMS):
            put(item)
            q.get()
        calm = resident()
        with capsys.disabled():
            print(f"\n  puts of {ITEM_BYTES} bytes in a burst of {BURST_BYTES >> 20} MB, on the clock:")
            print(histogram(durations))
            print(f"  the same in processor time, the longest {max(own) / 1e6:.2f} ms:\n{histogram(own)}")
            print(
                f"  resident: {highest >> 20} MB full, {drained >> 20} MB drained, "
                f"{calm >> 10} kB after {CALM_ITEMS:,} calm items; grown {q.stats().grown}, shrunk {q.stats().shrunk}"
            )
        assert highest > BURST_BYTES
        assert max(own) < 5_000_000, "no put works for 5 ms to get memory"
        assert calm < 1 << 20
