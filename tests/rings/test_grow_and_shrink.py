"""Eight workers fill and drain it through eight sizes: nothing lost or doubled, each producer's items in order."""

from __future__ import annotations

import mmap
import os
import threading
from itertools import pairwise

import numpy as np
import pytest

import queueduct
from queueduct import GrowingQueue
from tests.support.deadline import until
from tests.support.preloading import needs_compiler, preload
from tests.support.raw import RawGrowing

SIDES = 4
SIZES = 8
HIGH = 60_000  # items: more than all sub-queues but the last of them hold together
WORKER_SHIFT = 40
FILL, DRAIN, OVER = 1, 2, 3


class Shared:
    """What the workers are told, and what the test is told by them, in memory of their own."""

    def __init__(self):
        self.words = memoryview(mmap.mmap(-1, 4096)).cast("Q")

    @property
    def phase(self):
        return self.words[0]

    @phase.setter
    def phase(self, value):
        self.words[0] = value

    def put(self, worker):
        """How many a producer has put."""
        return self.words[8 + worker]

    def note_put(self, worker, count):
        self.words[8 + worker] = count


def produce(shared, worker, total):
    """Up to the mark while it fills; while it drains only into an empty queue, so that it is calm."""
    done = 0
    with queueduct.open("q") as q:
        while done < total:
            if q.qsize() >= (1 if shared.phase == DRAIN else HIGH):
                os.sched_yield()
                continue
            count = min(total - done, 500 if shared.phase == FILL else 1)
            first = worker << WORKER_SHIFT | done
            done += q.put_many(np.arange(first, first + count, dtype="<u8"))
            shared.note_put(worker, done)


def consume(shared, worker, folder):
    """Nothing while it fills, and all there is while it drains."""
    found = []
    with queueduct.open("q") as q:
        while True:
            if shared.phase == FILL:
                os.sched_yield()
                continue
            try:
                found.append(q.get_many(500, timeout=0.05))
            except queueduct.Empty:
                if shared.phase == OVER:
                    break
    np.concatenate([np.zeros(0, "<u8"), *found]).tofile(folder / str(worker))


class Watch:
    """The word that has both levels, whenever the test looks."""

    def __init__(self, raw):
        self.raw, self.at = raw, raw.field("control_offset")
        self.seen, self.looks = set(), 0
        self.moves = 0

    def look(self):
        word = self.raw.word(self.at)
        read, written, moves = word & 0xFF, word >> 8 & 0xFF, word >> 16 & ((1 << 46) - 1)
        assert 0 <= read <= written < SIZES
        assert moves >= self.moves
        self.moves = moves
        self.seen.add(written)
        self.looks += 1
        return written


@pytest.mark.timeout(1200)
def test_eight_workers_through_eight_sizes(queue_dir, children, is_long, capsys):
    total = (10_000_000 if is_long else 400_000) // SIDES
    with GrowingQueue.create("q", item="<u8", first_bytes=64, steps=SIZES) as q, RawGrowing("q") as raw:
        shared, watch, rounds = Shared(), Watch(raw), 0
        shared.phase = FILL
        workers = [children.fork(lambda n=n: produce(shared, n, total)) for n in range(SIDES)]
        workers += [children.fork(lambda n=n: consume(shared, n, queue_dir)) for n in range(SIDES)]

        def all_is_put():
            watch.look()
            return all(shared.put(worker) == total for worker in range(SIDES))

        while not all_is_put():
            until(lambda: all_is_put() or q.qsize() >= HIGH)
            shared.phase = DRAIN
            until(lambda: all_is_put() or watch.look() == 0, "it goes back to the first size")
            shared.phase = FILL
            rounds += 1
        shared.phase = OVER
        for worker in workers:
            assert children.wait(worker) == 0
        assert q.try_get() is None  # and gives back what late looks have got
        stats = q.stats()
        assert stats.resident_bytes <= stats.reserved_bytes
    found = [np.fromfile(queue_dir / str(worker), "<u8") for worker in range(SIDES)]
    for mine in found:
        for producer in range(SIDES):
            numbers = mine[mine >> np.uint64(WORKER_SHIFT) == producer]
            assert (np.diff(numbers.astype("<i8")) > 0).all(), "a consumer has a producer's items in their order"
    expected = [np.arange(total, dtype="<u8") + np.uint64(worker << WORKER_SHIFT) for worker in range(SIDES)]
    assert np.array_equal(np.sort(np.concatenate(found)), np.concatenate(expected))
    assert {0, SIZES - 1} <= watch.seen
    with capsys.disabled():
        print(
            f"\n  {SIDES * total:,} items of 4 producers to 4 consumers: {rounds} rounds, grown {stats.grown}, "
            f"shrunk {stats.shrunk}; {watch.looks:,} looks at the levels"
        )
    assert rounds > 2
    assert stats.shrunk >= rounds - 1
    assert stats.grown >= (SIZES - 1) * (rounds - 1), "each round comes through all sizes"


RACE = """
import queueduct
q = queueduct.GrowingQueue.open("q")
print("ready", flush=True)
input()
for _ in range(2000):
    q.put(b"x" * 60)
"""


@needs_compiler
def test_racing_writers_allocate_each_sub_queue_once(tmp_path, queue_dir, children, monkeypatch):
    """Four processes run into the end of each sub-queue at the same time."""
    log = tmp_path / "allocations"
    with GrowingQueue.create("q", steps=5) as q:
        with monkeypatch.context() as environment:
            preload(environment, "allocations", ALLOCATIONS=log)
            writers = [children.start(RACE) for _ in range(4)]
            for writer in writers:
                assert writer.stdout.readline() == "ready\n"
            for writer in writers:
                writer.stdin.write("\n")
                writer.stdin.flush()
            for writer in writers:
                assert writer.communicate(timeout=60)[1] == ""
        assert q.qsize() == 8000
        assert q.stats().written_level == 4
    calls = [tuple(map(int, line.split())) for line in log.read_text().splitlines()]
    assert all(mode == 0 for mode, _, _ in calls), "nothing was given back"
    given = [(begin, size) for _, begin, size in calls]
    assert len(given) >= 3 * 4
    assert largest_overlap(given) <= 2 * PAGE, "neighbours share a page or two"
    assert max(size for _, size in given) <= (256 << 10) + 2 * PAGE, "and nobody waits for more than an extent"


PAGE = 4096


def largest_overlap(ranges):
    return max(begin + size - after for (begin, size), (after, _) in pairwise(sorted(ranges)))


def test_writers_that_only_look_before_they_allocate_do_it_twice():
    """The seed's: what the test above would show of it."""
    sizes = [SIZES * PAGE * 4**i for i in range(4)]
    begins = [sum(sizes[:i]) for i in range(4)]
    is_there, given, both = [False] * 4, [], threading.Barrier(2)

    def write():
        for i in range(4):
            must_allocate = not is_there[i]
            both.wait(30)
            if must_allocate:
                given.append((begins[i], sizes[i]))
                is_there[i] = True

    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert largest_overlap(given) > 2 * PAGE
