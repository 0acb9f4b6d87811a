"""shutdown() as queue.Queue has it from Python 3.13 on; where that is at hand, it keeps the same contract here."""

from __future__ import annotations

import queue
import sys
import threading
from functools import partial

import pytest

import queueduct
from queueduct import ShutDown
from tests.support.cases import CASES, PLAIN, Case
from tests.support.deadline import until, until_parked
from tests.support.threads import Outcome, parked, results

ROWS = {name: CASES[name] for name in [*PLAIN, *(name for name in CASES if "pickled" in name or "records" in name)]}
if sys.version_info >= (3, 13):
    ROWS["queue.Queue"] = Case(queue.Queue, lambda n, name=None: queue.Queue(n), lambda i: b"%d" % i, int)
both_ways = pytest.mark.parametrize("immediate", [False, True])


@pytest.fixture(params=list(ROWS))
def row(request):
    """Ours, and the standard library's."""
    return ROWS[request.param]


@pytest.fixture(params=[name for name in ROWS if name != "queue.Queue"])
def ours(request):
    return ROWS[request.param]


def test_shutdown_is_the_standard_librarys_where_there_is_one():
    if sys.version_info >= (3, 13):
        assert ShutDown is queue.ShutDown
    assert issubclass(ShutDown, Exception)
    assert not issubclass(ShutDown, queueduct.QueueductError)


@both_ways
def test_after_a_shutdown_every_put_raises(row, immediate):
    q = row.make(4)
    q.put(row.item(1))
    q.shutdown(immediate=immediate)
    for put in (q.put, q.put_nowait, partial(q.put, timeout=0), partial(q.put, block=False)):
        with pytest.raises(ShutDown):
            put(row.item(2))
    assert q.qsize() == (0 if immediate else 1)


@both_ways
def test_try_put_and_put_many_raise_too(ours, immediate):
    q = ours.make(4)
    q.shutdown(immediate=immediate)
    with pytest.raises(ShutDown):
        q.try_put(ours.item(2))
    with pytest.raises(ShutDown):
        q.put_many(ours.items(2))


def test_a_full_queue_that_is_shut_down_raises_shut_down_not_full(row):
    q = row.make(4)
    reader = row.consumer(q)
    row.fill(q)
    q.shutdown()
    with pytest.raises(ShutDown):
        q.put_nowait(row.item(2))
    assert row.number(reader.get()) == 0


def test_gets_drain_the_queue_and_then_raise(row):
    q = row.make(4)
    reader = row.consumer(q)
    for i in range(3):
        q.put(row.item(i))
    q.shutdown()
    assert q.qsize() == 3
    assert row.numbers([reader.get(), reader.get_nowait(), reader.get(timeout=0)]) == [0, 1, 2]
    for get in (reader.get, reader.get_nowait, partial(reader.get, timeout=0), partial(reader.get, timeout=10)):
        with pytest.raises(ShutDown):
            get()
    if not row.is_for_all:
        assert q.empty()


def test_try_get_and_get_many_drain_too_and_then_raise(ours):
    q = ours.make(8)
    reader = ours.consumer(q)
    q.put_many(ours.items(*range(5)))
    q.shutdown()
    assert ours.number(reader.try_get()) == 0
    assert ours.numbers(reader.get_many(9)) == [1, 2, 3, 4]
    for get in (reader.try_get, partial(reader.get_many, 5), partial(reader.get_many, 5, block=False)):
        with pytest.raises(ShutDown):
            get()
    assert list(reader) == []


def test_immediate_throws_away_what_is_there(row):
    q = row.make(4)
    reader = row.consumer(q)
    for i in range(3):
        q.put(row.item(i))
    q.shutdown(immediate=True)
    assert q.qsize() == 0
    assert q.empty()
    assert not q.full()
    for get in (reader.get, reader.get_nowait, partial(reader.get, timeout=0)):
        with pytest.raises(ShutDown):
            get()


@pytest.mark.parametrize("ways", [(False, False), (False, True), (True, False)], ids=str)
def test_a_second_shutdown_can_only_make_it_immediate(row, ways):
    q = row.make(4)
    reader = row.consumer(q)
    q.put(row.item(1))
    for immediate in ways:
        q.shutdown(immediate=immediate)
    if not any(ways):
        assert row.number(reader.get()) == 1
    with pytest.raises(ShutDown):
        reader.get()


@both_ways
def test_waiting_consumers_are_woken(ours, immediate):
    q = ours.make(4)
    readers = [ours.consumer(q) for _ in range(5)]
    gets = [reader.get for reader in readers[:3]]
    threads = parked([*gets, partial(readers[3].get_many, 5), partial(list, readers[4])])
    q.shutdown(immediate=immediate)
    assert results(threads) == [ShutDown] * 4 + [[]]


@both_ways
def test_waiting_producers_are_woken(ours, immediate):
    q = ours.make(4)
    reader = ours.consumer(q)
    count = ours.fill(q)
    threads = parked([partial(q.put, ours.item(2))] * 4 + [partial(q.put_many, ours.items(2, 3))])
    q.shutdown(immediate=immediate)
    assert results(threads) == [ShutDown] * 5
    assert ours.numbers(reader) == ([] if immediate else list(range(count)))


def test_a_shutdown_in_another_process_reaches_everybody(plain_named, children):
    q = plain_named.make(4)
    threads = parked(plain_named.consumer(q).get for _ in range(3))
    children.run("import queueduct; queueduct.open('q').shutdown()")
    assert results(threads) == [ShutDown] * 3


def test_a_queue_stays_shut_down_for_later_openers(plain_named):
    q = plain_named.make(4)
    q.put(plain_named.item(1))
    q.shutdown()
    q.close()
    with queueduct.open("q") as again:
        assert again.stats().is_shut_down
        with pytest.raises(ShutDown):
            again.put(plain_named.item(2))
        reader = plain_named.consumer(again)
        assert plain_named.number(reader.get()) == 1
        with pytest.raises(ShutDown):
            reader.get()


def test_iteration_ends_at_a_shutdown_after_the_last_item(ours):
    q = ours.make(4)
    reader = ours.consumer(q)
    q.put_many(ours.items(1, 2, 3))
    q.shutdown()
    assert ours.numbers(reader) == [1, 2, 3]
    assert list(reader) == []


def test_iteration_that_waits_ends_at_a_shutdown(ours):
    q = ours.make(4)
    reader = ours.consumer(q)
    got = []
    thread = Outcome(lambda: got.extend(ours.numbers([item]) for item in reader))
    q.put(ours.item(1))
    until(lambda: got, "the first item's delivery")
    until_parked(thread)
    q.shutdown()
    thread.result()
    assert got == [[1]]


def test_stats_tell_of_a_shutdown(ours):
    q = ours.make(4)
    assert q.stats().is_shut_down is False
    q.put(ours.item(1))
    q.shutdown()
    assert q.stats().is_shut_down is True
    assert q.qsize() == 1


@both_ways
def test_puts_that_race_with_a_shutdown_are_in_or_refused_never_both(plain, immediate):
    """Allowed: each put either returned, then it is delivered or thrown away with the rest, or it raised ShutDown."""
    q = plain.make(4)
    accepted: list[int] = []
    got: list[list[int]] = [[], []]
    start = threading.Barrier(5)

    def produce(parity):
        start.wait(30)
        for i in range(10**6):
            try:
                q.put(plain.item(2 * i + parity))
            except ShutDown:
                return
            accepted.append(2 * i + parity)

    def consume(mine, reader):
        start.wait(30)
        for item in reader:
            mine.append(plain.number(item))

    threads = [Outcome(partial(produce, parity)) for parity in range(2)]
    threads += [Outcome(partial(consume, mine, plain.consumer(q))) for mine in got]
    start.wait(30)
    until(lambda: len(got[0] + got[1]) > 500, "some traffic")
    q.shutdown(immediate=immediate)
    assert results(threads) == [None] * 4
    for delivered in got if plain.is_for_all else [got[0] + got[1]]:
        assert len(delivered) == len(set(delivered))
        assert set(delivered) <= set(accepted)
        if not immediate:
            assert set(delivered) == set(accepted)
        elif not plain.is_for_all:
            assert len(accepted) - len(delivered) <= 4
