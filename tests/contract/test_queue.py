"""What every queue promises, whatever it carries: items in, items out, in order, each once."""

from __future__ import annotations

import threading
from functools import partial

import pytest

import queueduct
from queueduct import ShutDown
from tests.support.threads import Outcome, parked, results


def test_smoke(case):
    with case.make(4) as q:
        reader = case.consumer(q)
        q.put(case.item(7))
        assert len(q) == 1
        assert case.number(reader.get()) == 7
        assert reader.try_get() is None
        nothing = object()
        assert reader.try_get(nothing) is nothing


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
            assert q.put_many(counted.items(*range(9)), block=False) == 4
            assert counted.numbers(q.get_many(9)) == [0, 1, 2, 3]


def test_order(case):
    """First in, first out, through many laps and every mixture of forms."""
    with case.make(8) as q:
        reader = case.consumer(q)
        written = read = 0
        for turn in range(300):
            if turn % 3 == 0:
                if q.try_put(case.item(written)):
                    written += 1
            elif not q.full():
                batch = case.items(*range(written, written + turn % 7))
                written += q.put_many(batch, timeout=0) if batch else 0
            while read < written - turn % 5:
                if turn % 2:
                    assert case.number(reader.get(timeout=0)) == read
                    read += 1
                else:
                    batch = case.numbers(reader.get_many(turn % 4 + 1, timeout=0))
                    assert batch == list(range(read, read + len(batch)))
                    read += len(batch)
        q.shutdown()
        assert case.numbers(reader) == list(range(read, written))
        assert written > 300


def test_shutdown_while_waiting(case):
    """Consumers and producers that wait are all told; what is in the queue is still delivered."""
    with case.make(4) as q:
        getters = parked(case.consumer(q).get for _ in range(3))
        last = case.consumer(q)
        for i in range(3):
            q.put(case.item(i))
        assert sorted(case.numbers(results(getters))) == ([0, 0, 0] if case.is_for_all else [0, 1, 2])
        count = case.fill(q, 3 if case.is_for_all else 0)
        putters = parked([partial(q.put, case.item(9))] * 3)
        q.shutdown()
        assert results(putters) == [ShutDown] * 3
        assert case.numbers(last) == list(range(count))


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

        consumers = [Outcome(partial(consume, mine, case.consumer(q))) for mine in got]
        producers = [threading.Thread(target=produce, args=(parity,)) for parity in range(2)]
        for thread in producers:
            thread.start()
        for thread in producers:
            thread.join(60)
        q.shutdown()
        assert results(consumers) == [None] * 2
        for all_of_it in got if case.is_for_all else [got[0] + got[1]]:
            assert sorted(all_of_it) == list(range(2 * count))
        for mine in got:
            for parity in range(2):
                sequence = [number for number in mine if number % 2 == parity]
                assert sequence == sorted(sequence)
