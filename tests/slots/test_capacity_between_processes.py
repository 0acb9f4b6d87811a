"""A capacity that rises and falls all the time, under load, each worker in a process of its own.

Allowed, and nothing else: each item was taken by one consumer or given to ``on_evict`` by one ``set_capacity``, whole.
Whoever sets the capacity and is killed takes along the one item that it had evicted and not noted yet.
What was taken stands in its producer's order, and the gaps between its positions are what was evicted.
"""

from __future__ import annotations

import random
import time

import numpy as np
import pytest

import queueduct
from queueduct import SlotQueue
from tests.support.deadline import until

FRAME = np.dtype(("<u8", (64,)))
SLOTS, PRODUCERS, CONSUMERS = 8, 3, 2


def frame_of(number: int) -> np.ndarray:
    return np.full(64, number, "<u8")


def number_of(frame: np.ndarray) -> int:
    assert (frame == frame[0]).all(), "a torn item"
    return int(frame[0])


def produce(first: int, count: int) -> None:
    """One at a time, in batches, and by loans."""
    with SlotQueue.open("q") as q:
        done = first
        while done < first + count:
            way, left = done % 3, first + count - done
            if way == 0:
                q.put(frame_of(done))
                done += 1
            elif way == 1:
                done += q.put_many(np.stack([frame_of(done + i) for i in range(min(left, 4))]))
            else:
                with q.loan() as slot:
                    slot.array[...] = done
                done += 1


def take(note) -> None:
    taken = []
    with SlotQueue.open("q") as q:
        while True:
            try:
                with q.take(60) as slot:
                    taken.append((slot.position, number_of(slot.array)))
            except queueduct.ShutDown:
                break
    np.save(note, np.array(taken, "i8").reshape(-1, 2))


def change(note, seed: int) -> None:
    """Until it is killed. What it evicts is noted by one system call each, which a kill cannot cut."""
    rng = random.Random(seed)
    with SlotQueue.open("q") as q, note.open("ab", buffering=0) as file:
        while True:
            q.set_capacity(
                rng.randint(1, SLOTS), on_evict=lambda item: file.write(number_of(item).to_bytes(8, "little"))
            )


@pytest.mark.parametrize("kills", [0, 12])
def test_nothing_is_lost_but_what_was_evicted(children, tmp_path, is_long, kills, capsys):
    count = 30_000 if is_long else 3000
    kills *= 10 if is_long else 1
    rng = random.Random(kills)
    with SlotQueue.create("q", SLOTS, item=FRAME) as q:
        producers = [children.fork(lambda n=n: produce(n * count, count)) for n in range(PRODUCERS)]
        evictions = [tmp_path / f"evicted-{n}" for n in range(kills + 1)]
        changer = children.fork(lambda: change(evictions[0], 0))
        until(lambda: q.stats().evicted > 0, "an eviction")
        consumers = [children.fork(lambda n=n: take(tmp_path / f"{n}.npy")) for n in range(CONSUMERS)]
        for turn in range(1, kills + 1):
            time.sleep(rng.uniform(0, 0.05))
            children.kill(changer)
            changer = children.fork(lambda turn=turn: change(evictions[turn], turn))
        assert [children.wait(pid) for pid in producers] == [0] * PRODUCERS
        children.kill(changer)
        q.set_capacity(SLOTS)
        until(lambda: q.stats().size + q.stats().leased + q.stats().loaned == 0, "the last item")
        loans = [q.loan(5) for _ in range(SLOTS)]
        assert sorted(loan.index for loan in loans) == list(range(SLOTS)), "each slot can be lent, once"
        for loan in loans:
            loan.cancel()
        q.shutdown()
        assert [children.wait(pid) for pid in consumers] == [0] * CONSUMERS

        evicted = [np.frombuffer(path.read_bytes(), "<u8").astype("i8") for path in evictions if path.exists()]
        taken = [np.load(tmp_path / f"{n}.npy") for n in range(CONSUMERS)]
        stats = q.stats()
        with capsys.disabled():
            print(f"\n  {kills} kills: {sum(map(len, taken)):,} taken, {stats.evicted:,} evicted")
        check_each_came_once(taken, evicted, count, kills + 1)
        check_order(taken, evicted, count)
        assert stats.puts == PRODUCERS * count
        assert 0 <= stats.evicted - sum(map(len, evicted)) <= kills + 1
        gone = stats.puts - stats.evicted - sum(map(len, taken))
        assert 0 <= gone <= kills + 1, "who was killed had evicted it, and not counted it"
        assert (stats.capacity, stats.free, stats.loaned, stats.queued, stats.leased) == (SLOTS, SLOTS, 0, 0, 0)


def check_each_came_once(taken, evicted, count: int, killed: int) -> None:
    """Each in one place; only a killed one's last may be missing."""
    numbers = np.concatenate([*(each[:, 1] for each in taken), *evicted])
    found, times = np.unique(numbers, return_counts=True)
    assert (times == 1).all(), f"twice: {found[times > 1][:5]}"
    assert np.isin(found, np.arange(PRODUCERS * count)).all(), "an item that nobody put"
    assert 0 <= PRODUCERS * count - len(found) <= killed


def check_order(taken, evicted, count: int) -> None:
    """Positions are the order of all; each producer's items stand in its own order in it, and oldest goes first."""
    for each in taken:
        assert (np.diff(each[:, 0]) > 0).all(), "a consumer takes the oldest"
    together = np.concatenate(taken)
    together = together[np.argsort(together[:, 0])]
    assert (np.diff(together[:, 0]) > 0).all(), "a position twice"
    for producer in range(PRODUCERS):
        for numbers in [together[:, 1], *evicted]:
            mine = numbers[numbers // count == producer]
            assert (np.diff(mine) > 0).all(), "a producer's order"
