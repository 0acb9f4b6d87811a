"""The contract that every queue keeps, whatever it carries. Queues to come join by a row in CASES."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import queueduct
from queueduct import BoundedQueue, EventQueue, GrowingQueue, ShutDown, SlotQueue
from tests.support.deadline import until_parked
from tests.support.lossless import Lossless

RECORD = np.dtype([("id", "<u4"), ("half", "<f8")])


class Case(NamedTuple):
    """A queue and what goes through it."""

    make: Callable[[int], Any]
    item: Callable[[int], Any]
    number: Callable[[Any], int]
    """Which item was this? The inverse of item()."""
    reader: Callable[[Any], Any] = lambda q: q
    """Who gets from it: the queue itself, or a reader that sees all from now on."""

    @property
    def is_for_all(self) -> bool:
        """Does every getter see every item, and not one of them each?"""
        return self.reader is subscribed


def subscribed(q: EventQueue) -> Any:
    return q.subscribe()


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
    "events, objects in this process": Case(
        lambda n: EventQueue(max_bytes=1 << 13), lambda i: [i], lambda item: item[0], subscribed
    ),
    "events, bytes": Case(lambda n: EventQueue.create("q", max_bytes=1 << 13), lambda i: b"%d" % i, int, subscribed),
    "events, records": Case(
        lambda n: EventQueue.create("q", item=RECORD, max_bytes=1 << 13),
        lambda i: (i, i / 2),
        lambda item: int(item["half"] * 2),
        subscribed,
    ),
    "events, pickled objects": Case(
        lambda n: EventQueue.create("q", item=object, max_bytes=1 << 14),
        lambda i: {"id": i},
        lambda item: item["id"],
        subscribed,
    ),
    "overwriting, bytes": Case(lambda n: Lossless.create("q", n), lambda i: b"%-64d" % i, int),
    "overwriting, records": Case(
        lambda n: Lossless.create("q", n, item=RECORD), lambda i: (i, i / 2), lambda item: int(item["half"] * 2)
    ),
    "overwriting, arrays": Case(
        lambda n: Lossless.create("q", n, item=np.dtype(("<i4", (3,)))),
        lambda i: [i, 0, i],
        lambda item: int(item[2]),
    ),
    "overwriting, pickled objects": Case(
        lambda n: Lossless.create("q", n, item=object), lambda i: {"id": i}, lambda item: item["id"]
    ),
    "slots, bytes": Case(lambda n: SlotQueue.create("q", n), lambda i: b"%d" % i, int),
    "slots, records": Case(
        lambda n: SlotQueue.create("q", n, item=RECORD), lambda i: (i, i / 2), lambda item: int(item["half"] * 2)
    ),
    "slots, arrays": Case(
        lambda n: SlotQueue.create("q", n, item=np.dtype(("<i4", (2, 2)))),
        lambda i: [[i, 0], [0, i]],
        lambda item: int(item[1][1]),
    ),
    "slots, pickled objects": Case(
        lambda n: SlotQueue.create("q", n, item=object), lambda i: {"id": i}, lambda item: item["id"]
    ),
    "growing, bytes": Case(lambda n: GrowingQueue.create("q", first_bytes=64 * n, steps=1), lambda i: b"%d" % i, int),
    "growing, bytes in several slots": Case(
        lambda n: GrowingQueue.create("q", first_bytes=64 * n, steps=1, slot_bytes=16), lambda i: b"%-64d" % i, int
    ),
    "growing, records": Case(
        lambda n: GrowingQueue.create("q", item=RECORD, first_bytes=RECORD.itemsize * n, steps=1),
        lambda i: (i, i / 2),
        lambda item: int(item["half"] * 2),
    ),
    "growing, pickled objects": Case(
        lambda n: GrowingQueue.create("q", item=object, first_bytes=256 * n, slot_bytes=256, steps=1),
        lambda i: {"id": i},
        lambda item: item["id"],
    ),
}


@pytest.fixture(params=list(CASES))
def case(request):
    return CASES[request.param]


@pytest.fixture(params=[name for name, case in CASES.items() if not case.is_for_all])
def counted(request):
    """A queue that is made for so many items."""
    return CASES[request.param]


def test_smoke(case):
    with case.make(4) as q:
        reader = case.reader(q)
        q.put(case.item(7))
        assert len(q) == 1
        assert case.number(reader.get()) == 7
        assert reader.try_get() is None


def test_bounds(counted):
    """Exactly as many items as it was made for, one at a time or in a batch, lap after lap."""
    with counted.make(4) as q:
        for _ in range(5):
            assert [q.try_put(counted.item(i)) for i in range(5)] == [True] * 4 + [False]
            assert q.full()
            with pytest.raises(queueduct.Full):
                q.put_nowait(counted.item(9))
            assert [counted.number(q.get()) for _ in range(4)] == [0, 1, 2, 3]
            assert q.try_get() is None
            with pytest.raises(queueduct.Empty):
                q.get_nowait()
            assert q.put_many([counted.item(i) for i in range(9)], block=False) == 4
            assert [counted.number(item) for item in q.get_many(9)] == [0, 1, 2, 3]


def test_order(case):
    """First in, first out, through many laps and every mixture of forms."""
    with case.make(8) as q:
        reader = case.reader(q)
        written = read = 0
        for turn in range(300):
            if turn % 3 == 0:
                if q.try_put(case.item(written)):
                    written += 1
            elif not q.full():
                written += q.put_many([case.item(written + i) for i in range(turn % 7)], timeout=0) if turn % 7 else 0
            while read < written - turn % 5:
                if turn % 2:
                    assert case.number(reader.get(timeout=0)) == read
                    read += 1
                else:
                    batch = [case.number(item) for item in reader.get_many(turn % 4 + 1, timeout=0)]
                    assert batch == list(range(read, read + len(batch)))
                    read += len(batch)
        q.shutdown()
        assert [case.number(item) for item in reader] == list(range(read, written))
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

        getters = [threading.Thread(target=wait, args=(case.reader(q).get,)) for _ in range(3)]
        last = case.reader(q)
        for thread in getters:
            thread.start()
        until_parked(*getters)
        for i in range(3):
            q.put(case.item(i))
        for thread in getters:
            thread.join(30)
        assert told == []
        count = 0 if last is q else 3
        while q.try_put(case.item(count)):
            count += 1
        putters = [threading.Thread(target=wait, args=(lambda: q.put(case.item(9)),)) for _ in range(3)]
        for thread in putters:
            thread.start()
        until_parked(*putters)
        q.shutdown()
        for thread in putters:
            thread.join(30)
        assert told == ["shut down"] * 3
        assert [case.number(item) for item in last] == list(range(count))


def test_exactly_once(case):
    """2 producers, 2 consumers, 2,000 items each way, a small queue: each item once, each producer's in order.

    Where everybody sees everything, once for each of them.
    """
    count = 2000
    with case.make(4) as q:
        got: list[list[int]] = [[], []]

        def produce(parity):
            for i in range(count):
                q.put(case.item(2 * i + parity))

        def consume(mine, reader):
            for item in reader:
                mine.append(case.number(item))

        producers = [threading.Thread(target=produce, args=(parity,)) for parity in range(2)]
        consumers = [threading.Thread(target=consume, args=(mine, case.reader(q))) for mine in got]
        for thread in producers + consumers:
            thread.start()
        for thread in producers:
            thread.join(60)
        q.shutdown()
        for thread in consumers:
            thread.join(60)
        for all_of_it in got if case.is_for_all else [got[0] + got[1]]:
            assert sorted(all_of_it) == list(range(2 * count))
        for mine in got:
            for parity in range(2):
                sequence = [number for number in mine if number % 2 == parity]
                assert sequence == sorted(sequence)
