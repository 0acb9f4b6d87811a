"""The contract that every queue keeps, whatever it carries. Queues to come join by a row in CASES."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import penstock
from deadline import until_parked
from penstock import BoundedQueue, ShutDown

RECORD = np.dtype([("id", "<u4"), ("half", "<f8")])


class Case(NamedTuple):
    """A queue and what goes through it."""

    make: Callable[[int], Any]
    item: Callable[[int], Any]
    number: Callable[[Any], int]
    """Which item was this? The inverse of item()."""


CASES = {
    "bounded, objects in this process": Case(lambda n: BoundedQueue(n), lambda i: [i], lambda item: item[0]),
    "bounded, bytes": Case(lambda n: BoundedQueue.create("q", n), lambda i: b"%d" % i, int),
    "bounded, bytes in several slots": Case(
        lambda n: BoundedQueue.create("q", 4 * n, slot_bytes=16),
        lambda i: b"%-64d" % i,
        int,
    ),
    "bounded, records": Case(
        lambda n: BoundedQueue.create("q", n, item=RECORD), lambda i: (i, i / 2), lambda item: int(item["half"] * 2)
    ),
    "bounded, numbers": Case(lambda n: BoundedQueue.create("q", n, item="<i8"), int, int),
    "bounded, arrays": Case(
        lambda n: BoundedQueue.create("q", n, item=np.dtype(("<i4", (2, 2)))),
        lambda i: [[i, 0], [0, i]],
        lambda item: int(item[1][1]),
    ),
    "bounded, pickled objects": Case(
        lambda n: BoundedQueue.create("q", n, item=object), lambda i: {"id": i}, lambda item: item["id"]
    ),
}


@pytest.fixture(params=list(CASES))
def case(request):
    return CASES[request.param]


def test_smoke(case):
    with case.make(4) as q:
        q.put(case.item(7))
        assert len(q) == 1
        assert case.number(q.get()) == 7
        assert q.empty()


def test_bounds(case):
    """Exactly as many items as it was made for, one at a time or in a batch, lap after lap."""
    with case.make(4) as q:
        for _ in range(5):
            assert [q.try_put(case.item(i)) for i in range(5)] == [True] * 4 + [False]
            assert q.full()
            with pytest.raises(penstock.Full):
                q.put_nowait(case.item(9))
            assert [case.number(q.get()) for _ in range(4)] == [0, 1, 2, 3]
            assert q.try_get() is None
            with pytest.raises(penstock.Empty):
                q.get_nowait()
            assert q.put_many([case.item(i) for i in range(9)], block=False) == 4
            assert [case.number(item) for item in q.get_many(9)] == [0, 1, 2, 3]


def test_order(case):
    """First in, first out, through many laps and every mixture of forms."""
    with case.make(8) as q:
        written = read = 0
        for turn in range(300):
            if turn % 3 == 0:
                if q.try_put(case.item(written)):
                    written += 1
            elif not q.full():
                written += q.put_many([case.item(written + i) for i in range(turn % 7)], timeout=0) if turn % 7 else 0
            while read < written - turn % 5:
                if turn % 2:
                    assert case.number(q.get(timeout=0)) == read
                    read += 1
                else:
                    batch = [case.number(item) for item in q.get_many(turn % 4 + 1, timeout=0)]
                    assert batch == list(range(read, read + len(batch)))
                    read += len(batch)
        q.shutdown()
        assert [case.number(item) for item in q] == list(range(read, written))
        assert written > 300


def test_shutdown_while_waiting(case):
    """Getters and putters that wait are all told; what is in the queue is still delivered."""
    with case.make(4) as q:
        told = []

        def wait(work):
            try:
                work()
            except ShutDown:
                told.append("shut down")

        getters = [threading.Thread(target=wait, args=(q.get,)) for _ in range(3)]
        for thread in getters:
            thread.start()
        until_parked(*getters)
        for i in range(3):
            q.put(case.item(i))
        for thread in getters:
            thread.join(30)
        assert told == []
        q.put_many([case.item(i) for i in range(4)])
        putters = [threading.Thread(target=wait, args=(lambda: q.put(case.item(9)),)) for _ in range(3)]
        for thread in putters:
            thread.start()
        until_parked(*putters)
        q.shutdown()
        for thread in putters:
            thread.join(30)
        assert told == ["shut down"] * 3
        assert [case.number(item) for item in q] == [0, 1, 2, 3]


def test_exactly_once(case):
    """2 producers, 2 consumers, 2,000 items each way, a small queue: each item once, each producer's in order."""
    count = 2000
    with case.make(4) as q:
        got: list[list[int]] = [[], []]

        def produce(parity):
            for i in range(count):
                q.put(case.item(2 * i + parity))

        def consume(mine):
            for item in q:
                mine.append(case.number(item))

        producers = [threading.Thread(target=produce, args=(parity,)) for parity in range(2)]
        consumers = [threading.Thread(target=consume, args=(mine,)) for mine in got]
        for thread in producers + consumers:
            thread.start()
        for thread in producers:
            thread.join(60)
        q.shutdown()
        for thread in consumers:
            thread.join(60)
        assert sorted(got[0] + got[1]) == list(range(2 * count))
        for mine in got:
            for parity in range(2):
                sequence = [number for number in mine if number % 2 == parity]
                assert sequence == sorted(sequence)
