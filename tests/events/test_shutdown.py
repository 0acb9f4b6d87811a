"""shutdown(): no more puts, readers get what is left, everybody who waits is told."""

from __future__ import annotations

import threading
from functools import partial

import pytest

import queueduct
from queueduct import EventQueue, ShutDown
from tests.support.deadline import until, until_parked
from tests.support.ticks import FORMS, drain, fill


@pytest.fixture(params=list(FORMS))
def form(request):
    return FORMS[request.param]


@pytest.mark.parametrize("immediate", [False, True])
def test_after_a_shutdown_every_put_raises(form, immediate):
    make, item, _ = form
    with make() as q:
        q.put(item(1))
        q.shutdown(immediate=immediate)
        for call in (
            lambda: q.put(item(2)),
            lambda: q.put_nowait(item(2)),
            lambda: q.try_put(item(2)),
            lambda: q.put_many([item(2)]),
            lambda: q.put(item(2), timeout=0),
        ):
            with pytest.raises(ShutDown):
                call()
        assert q.end == 1
        assert q.is_shut_down
        assert q.stats().is_shut_down


def test_readers_get_what_is_left_and_then_raise(form):
    make, item, number = form
    with make() as q:
        readers = [q.subscribe(), q.subscribe("d")]
        q.put_many([item(i) for i in range(50)])
        q.shutdown()
        for reader in readers:
            assert number(reader.get()) == 0
            assert [number(each) for each in reader.get_many(10)] == list(range(1, 11))
            assert [number(each) for each in reader] == list(range(11, 50))
            for call in (reader.get, reader.get_nowait, reader.try_get, partial(reader.get_many, 5)):
                with pytest.raises(ShutDown):
                    call()
            assert list(reader) == []


def test_a_reader_that_comes_after_the_shutdown_gets_what_is_kept(form):
    make, item, number = form
    with make() as q:
        q.put_many([item(i) for i in range(5)])
        q.shutdown()
        assert [number(each) for each in q.subscribe(start="earliest")] == [0, 1, 2, 3, 4]
        with pytest.raises(ShutDown):
            q.subscribe().get()


def test_immediate_throws_away_what_is_there(form):
    make, item, _ = form
    with make() as q:
        reader = q.subscribe()
        q.put_many([item(i) for i in range(50)])
        q.shutdown(immediate=True)
        assert len(q) == 0
        with pytest.raises(ShutDown):
            reader.get()
        assert list(reader) == []


def test_an_iteration_that_is_under_way_keeps_what_it_holds_at_an_immediate_shutdown(form):
    make, item, number = form
    with make() as q:
        reader = q.subscribe()
        q.put_many([item(i) for i in range(10)])
        assert number(next(reader)) == 0
        q.shutdown(immediate=True)
        assert [number(each) for each in reader] == list(range(1, 10))


def test_a_second_shutdown_changes_nothing_and_may_become_immediate(form):
    make, item, number = form
    with make() as q:
        reader = q.subscribe()
        q.put_many([item(0), item(1)])
        q.shutdown()
        q.shutdown()
        assert number(reader.get()) == 0
        q.shutdown(immediate=True)
        with pytest.raises(ShutDown):
            reader.get()


@pytest.mark.parametrize("immediate", [False, True])
def test_everybody_who_waits_is_told(form, immediate):
    make = form[0]
    with make(max_bytes=8192) as q:
        told = []

        def wait(work):
            try:
                work()
            except ShutDown:
                told.append(work)

        readers = [q.subscribe() for _ in range(3)]
        waiting = [
            threading.Thread(target=wait, args=(readers[0].get,)),
            threading.Thread(target=wait, args=(lambda: readers[1].get_many(5),)),
            threading.Thread(target=lambda: told.append(list(readers[2]))),
        ]
        for thread in waiting:
            thread.start()
        until_parked(*waiting)
        q.shutdown(immediate=immediate)
        for thread in waiting:
            thread.join(30)
        assert len(told) == 3


@pytest.mark.parametrize("immediate", [False, True])
def test_writers_that_wait_for_room_are_told(immediate):
    with EventQueue.create("q", item="<u8", max_bytes=4096) as q:
        reader = q.subscribe()
        end = fill(q)
        told = []

        def wait(work):
            try:
                work()
            except ShutDown:
                told.append(work)

        waiting = [
            threading.Thread(target=wait, args=(work,)) for work in (lambda: q.put(1), lambda: q.put_many([1, 2]))
        ]
        for thread in waiting:
            thread.start()
        until_parked(*waiting)
        q.shutdown(immediate=immediate)
        for thread in waiting:
            thread.join(30)
        assert len(told) == 2
        assert list(reader) == ([] if immediate else list(range(end)))


def test_a_batch_that_is_in_by_half_at_the_shutdown_says_how_many(form):
    make, item, number = form
    with make(max_bytes=8192) as q:
        reader = q.subscribe()
        outcome = []
        thread = threading.Thread(target=lambda: outcome.append(q.put_many([item(i) for i in range(3000)])))
        thread.start()
        until_parked(thread)
        q.shutdown()
        thread.join(30)
        assert 0 < outcome[0] == q.end < 3000
        assert [number(each) for each in drain(reader)] == list(range(q.end))


def test_a_shutdown_reaches_other_processes(children):
    with EventQueue.create("q", item="<u8") as q:
        child = children.start(
            """
import queueduct
q = queueduct.open("q")
with q.subscribe() as reader:
    print("ready", flush=True)
    print(sum(int(item) for item in reader))
"""
        )
        assert child.stdout.readline() == "ready\n"
        q.put_many(range(10))
        q.shutdown()
        assert child.communicate(timeout=60)[0] == "45\n"
        with EventQueue.open("q") as again, pytest.raises(ShutDown):
            again.put(1)


def test_puts_that_race_with_a_shutdown_are_in_or_refused_never_both():
    """Allowed: each put either returned, then every reader gets it, or it raised ShutDown."""
    with EventQueue.create("q", item="<u8") as q:
        accepted = []
        readers = [q.subscribe() for _ in range(2)]
        got = [[] for _ in readers]

        def produce(number):
            for i in range(10**6):
                try:
                    q.put(2 * i + number)
                except ShutDown:
                    return
                accepted.append(2 * i + number)

        threads = [threading.Thread(target=produce, args=(n,)) for n in range(2)]
        threads += [
            threading.Thread(target=lambda r=r, mine=mine: mine.extend(map(int, r)))
            for r, mine in zip(readers, got, strict=True)
        ]
        for thread in threads:
            thread.start()
        until(lambda: q.end > 500, "some traffic")
        q.shutdown()
        for thread in threads:
            thread.join(30)
        for mine in got:
            assert sorted(mine) == sorted(accepted)
        assert queueduct.open("q").is_shut_down
