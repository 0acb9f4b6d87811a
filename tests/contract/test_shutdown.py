"""shutdown() as queue.Queue has it from Python 3.13 on; where that is at hand, the two are compared."""

from __future__ import annotations

import queue
import sys
import threading

import pytest

import queueduct
from queueduct import BoundedQueue, ShutDown, SlotQueue
from tests.support.deadline import until, until_parked
from tests.support.lossless import Lossless

MAKERS = {
    "local": lambda capacity: BoundedQueue(capacity),
    "bytes": lambda capacity: BoundedQueue.create("q", capacity),
    "slots": lambda capacity: SlotQueue.create("q", capacity),
    "objects": lambda capacity: BoundedQueue.create("q", capacity, item=object),
    "overwriting": lambda capacity: Lossless.create("q", capacity, item=object),
}
if sys.version_info >= (3, 13):
    MAKERS["queue.Queue"] = lambda capacity: queue.Queue(capacity)

OURS = [name for name in MAKERS if name != "queue.Queue"]


@pytest.fixture(params=list(MAKERS))
def q(request):
    return MAKERS[request.param](4)


@pytest.fixture(params=OURS)
def ours(request):
    return MAKERS[request.param](4)


def test_shutdown_is_the_standard_librarys_where_there_is_one():
    if sys.version_info >= (3, 13):
        assert ShutDown is queue.ShutDown
    assert issubclass(ShutDown, Exception)
    assert not issubclass(ShutDown, queueduct.QueueductError)


@pytest.mark.parametrize("immediate", [False, True])
def test_after_a_shutdown_every_put_raises(q, immediate):
    q.put(b"1")
    q.shutdown(immediate=immediate)
    with pytest.raises(ShutDown):
        q.put(b"2")
    with pytest.raises(ShutDown):
        q.put_nowait(b"2")
    with pytest.raises(ShutDown):
        q.put(b"2", timeout=0)
    with pytest.raises(ShutDown):
        q.put(b"2", block=False)


def test_a_full_queue_that_is_shut_down_raises_shut_down_not_full(q):
    for _ in range(4):
        q.put(b"1")
    q.shutdown()
    with pytest.raises(ShutDown):
        q.put_nowait(b"2")


def test_gets_drain_the_queue_and_then_raise(q):
    for i in range(3):
        q.put(b"%d" % i)
    q.shutdown()
    assert q.qsize() == 3
    assert [q.get(), q.get_nowait(), q.get(timeout=0)] == [b"0", b"1", b"2"]
    for get in (q.get, q.get_nowait, lambda: q.get(timeout=0), lambda: q.get(timeout=10)):
        with pytest.raises(ShutDown):
            get()
    assert q.empty()


def test_immediate_throws_away_what_is_there(q):
    for i in range(3):
        q.put(b"%d" % i)
    q.shutdown(immediate=True)
    assert q.qsize() == 0
    assert q.empty()
    assert not q.full()
    for get in (q.get, q.get_nowait, lambda: q.get(timeout=0)):
        with pytest.raises(ShutDown):
            get()


def test_a_second_shutdown_changes_nothing(q):
    q.put(b"1")
    q.shutdown()
    q.shutdown()
    assert q.get() == b"1"
    with pytest.raises(ShutDown):
        q.get()


def test_a_shutdown_can_become_immediate(q):
    q.put(b"1")
    q.shutdown()
    q.shutdown(immediate=True)
    with pytest.raises(ShutDown):
        q.get()


def test_an_immediate_shutdown_stays_immediate(q):
    q.put(b"1")
    q.shutdown(immediate=True)
    q.shutdown()
    with pytest.raises(ShutDown):
        q.get()


def waiting(count, work):
    """Threads that do the work and note the class of what it raised."""
    outcomes = []

    def note():
        try:
            outcomes.append(work())
        except BaseException as error:
            outcomes.append(type(error))

    threads = [threading.Thread(target=note) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads, outcomes


def join(threads):
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


@pytest.mark.parametrize("immediate", [False, True])
def test_waiting_getters_are_woken(ours, immediate):
    threads, outcomes = waiting(5, ours.get)
    until_parked(*threads)
    ours.shutdown(immediate=immediate)
    join(threads)
    assert outcomes == [ShutDown] * 5


@pytest.mark.parametrize("immediate", [False, True])
def test_waiting_putters_are_woken(ours, immediate):
    ours.put_many([b"1"] * 4)
    threads, outcomes = waiting(5, lambda: ours.put(b"2"))
    until_parked(*threads)
    ours.shutdown(immediate=immediate)
    join(threads)
    assert outcomes == [ShutDown] * 5
    assert ours.qsize() == (0 if immediate else 4)


@pytest.mark.parametrize("name", ["bytes", "objects"])
def test_a_shutdown_in_another_process_reaches_everybody(children, name):
    q = MAKERS[name](4)
    threads, outcomes = waiting(3, q.get)
    until_parked(*threads)
    children.run("import queueduct; queueduct.open('q').shutdown()")
    join(threads)
    assert outcomes == [ShutDown] * 3


def test_a_queue_stays_shut_down_for_whoever_opens_it_later():
    q = MAKERS["bytes"](4)
    q.put(b"1")
    q.shutdown()
    q.close()
    with queueduct.open("q") as again:
        assert again.stats().is_shut_down
        with pytest.raises(ShutDown):
            again.put(b"2")
        assert again.get() == b"1"
        with pytest.raises(ShutDown):
            again.get()


def test_try_forms_raise_too(ours):
    ours.put(b"1")
    ours.shutdown()
    with pytest.raises(ShutDown):
        ours.try_put(b"2")
    assert ours.try_get() == b"1"
    with pytest.raises(ShutDown):
        ours.try_get()


def test_iteration_ends_at_a_shutdown_after_the_last_item(ours):
    ours.put_many([b"1", b"2", b"3"])
    ours.shutdown()
    assert list(ours) == [b"1", b"2", b"3"]
    assert list(ours) == []


def test_iteration_that_waits_ends_at_a_shutdown(ours):
    threads, outcomes = waiting(1, lambda: list(ours))
    ours.put(b"1")
    until(ours.empty, "the first item's delivery")
    until_parked(*threads)
    ours.shutdown()
    join(threads)
    assert outcomes == [[b"1"]]


def test_stats_tell_of_a_shutdown(ours):
    assert ours.stats().is_shut_down is False
    ours.put(b"1")
    ours.shutdown()
    assert ours.stats().is_shut_down is True
    assert ours.stats().size == 1


@pytest.mark.parametrize("immediate", [False, True])
def test_puts_that_race_with_a_shutdown_are_in_or_refused_never_both(ours, immediate):
    """Allowed: each put either returned, then it is delivered or thrown away with the rest, or it raised ShutDown."""
    accepted, got = [], []
    start = threading.Barrier(5)

    def produce(number):
        start.wait(30)
        for i in range(20000):
            item = b"%d.%d" % (number, i)
            try:
                ours.put(item)
            except ShutDown:
                return
            accepted.append(item)

    def consume():
        start.wait(30)
        for item in ours:
            got.append(item)

    producers = [threading.Thread(target=produce, args=(n,)) for n in range(2)]
    consumers = [threading.Thread(target=consume) for _ in range(2)]
    for thread in producers + consumers:
        thread.start()
    start.wait(30)
    until(lambda: len(got) > 500, "some traffic")
    ours.shutdown(immediate=immediate)
    join(producers + consumers)
    assert len(got) == len(set(got))
    assert set(got) <= set(accepted)
    if not immediate:
        assert set(got) == set(accepted)
    else:
        assert len(accepted) - len(got) <= 4
