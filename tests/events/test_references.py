"""Within a process an event queue passes the objects themselves, and holds them as long as somebody may want them."""

from __future__ import annotations

import gc
import sys
import threading
import weakref

import pytest

import queueduct
from queueduct import EventQueue
from tests.support.ticks import drain


class Thing:
    """Something a weak reference can watch."""


def test_every_reader_gets_the_very_object_that_went_in():
    q = EventQueue()
    readers = [q.subscribe() for _ in range(3)]
    given = [Thing(), None, (), "x", [1], q, lambda: 0]
    q.put_many(given)
    for reader in readers:
        got = [reader.get(), *reader.get_many(100)]
        assert all(one is other for one, other in zip(got, given, strict=True))
    assert q.read(0, 7)[0] is given[0]


def test_none_is_an_item_like_any_other():
    q = EventQueue()
    reader = q.subscribe()
    q.put(None)
    nothing = object()
    assert reader.try_get(nothing) is None
    assert reader.try_get(nothing) is nothing


def test_reference_counts_are_as_before_when_all_is_over():
    thing = Thing()
    before = sys.getrefcount(thing)
    q = EventQueue()
    reader = q.subscribe()
    for _ in range(100):
        q.put(thing)
        q.put_many([thing] * 9)
        assert reader.get() is thing
        drain(reader)
        assert q.read(q.end - 1, q.end) == [thing]
    assert sys.getrefcount(thing) > before
    q.clear()
    reader.try_get()
    q.put_many([None] * 5000)
    drain(reader)
    q.put_many([None] * 5000)
    assert sys.getrefcount(thing) == before


@pytest.mark.parametrize("end", ["del", "close", "with"])
def test_what_is_still_in_a_queue_is_dropped_with_it(end):
    q = EventQueue()
    things = [Thing() for _ in range(50)]
    watches = [weakref.ref(thing) for thing in things]
    q.put_many(things)
    del things
    assert all(watch() is not None for watch in watches)
    if end == "del":
        del q
    elif end == "close":
        q.close()
    else:
        with q:
            pass
    assert [watch() for watch in watches] == [None] * 50


def test_a_put_that_fails_leaves_the_reference_count_as_it_was():
    q = EventQueue(max_bytes=512, on_full="raise")
    q.put_many([0] * 1000, block=False)
    thing = Thing()
    before = sys.getrefcount(thing)
    assert q.try_put(thing) is False
    with pytest.raises(queueduct.Full):
        q.put(thing)
    with pytest.raises(queueduct.Full):
        q.put_many([thing, thing])
    q.shutdown()
    with pytest.raises(queueduct.ShutDown):
        q.put(thing)
    q.close()
    with pytest.raises(queueduct.QueueClosed):
        q.put(thing)
    assert sys.getrefcount(thing) == before


def test_a_batch_that_is_put_in_part_keeps_only_that_part():
    q = EventQueue(max_bytes=512, on_full="raise")
    things = [Thing() for _ in range(1000)]
    watches = [weakref.ref(thing) for thing in things]
    count = q.put_many(things)
    assert 0 < count < 1000
    del things
    assert sum(watch() is not None for watch in watches) == count


def test_a_passed_chunk_lets_its_objects_go():
    q = EventQueue()
    reader = q.subscribe()
    things = [Thing() for _ in range(4)]
    watches = [weakref.ref(thing) for thing in things]
    q.put_many(things)
    del things
    for _ in range(4):
        reader.get()
    q.put_many([None] * 100)
    assert all(watch() is not None for watch in watches)  # stopped at the chunk's end: not left yet
    drain(reader)
    q.put_many([None] * 1000)
    assert [watch() for watch in watches] == [None] * 4


def test_a_dropped_readers_objects_are_let_go():
    q = EventQueue(max_bytes=1024, on_full="drop_slowest")
    reader = q.subscribe()
    thing = Thing()
    watch = weakref.ref(thing)
    q.put(thing)
    del thing
    for i in range(1000):
        q.put(i)
    assert watch() is None
    with pytest.raises(queueduct.DataLost):
        reader.get()
    assert reader.get() == q.read(q.earliest, q.earliest + 1)[0]


def test_clear_lets_everything_go_but_the_open_chunk():
    q = EventQueue()
    things = [Thing() for _ in range(28)]
    watches = [weakref.ref(thing) for thing in things]
    q.put_many(things)
    del things
    q.clear()
    q.put_many([None] * 100)
    assert [watch() is not None for watch in watches] == [False] * 24 + [True] * 4


@pytest.mark.parametrize("inside", ["queue", "reader", "both"])
def test_a_queue_in_a_cycle_with_what_it_holds_is_collected(inside):
    q = EventQueue()
    reader = q.subscribe()
    thing = Thing()
    thing.held = {"queue": q, "reader": reader, "both": [q, reader]}[inside]
    watch = weakref.ref(thing)
    q.put(thing)
    q.put_many([reader, q, thing])
    del q, reader, thing
    gc.collect()
    assert watch() is None


def test_a_reader_in_a_cycle_of_a_named_queue_is_collected_and_holds_nothing():
    with EventQueue.create("q", item=object) as q:
        thing = Thing()
        thing.reader, thing.self = q.subscribe(), thing
        del thing
        gc.collect()
        assert q.readers() == []


@pytest.mark.parametrize("named", [False, True])
def test_readers_that_end_while_the_collector_runs_inside_a_call_are_no_deadlock(named):
    q = EventQueue.create("q", item=object) if named else EventQueue()
    keep = [q.subscribe() for _ in range(30)]
    before = gc.get_threshold()
    try:
        for _ in range(20):
            gc.disable()
            for _ in range(5):
                thing = Thing()
                thing.reader, thing.self = q.subscribe(), thing
            del thing
            gc.set_threshold(1, 1, 1)
            gc.enable()
            assert len(q.readers()) >= len(keep)
            q.put(1)
            q.clear()
            gc.collect()  # without a GIL it comes by itself only when there is more to collect
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert len(q.readers()) == len(keep)


class Putting:
    """Puts when it is dropped."""

    def __init__(self, queue):
        self.queue = queue

    def __del__(self):
        self.queue.put("from a finalizer")


def test_a_finalizer_may_put_into_the_queue_that_drops_it():
    q = EventQueue()
    reader = q.subscribe()
    q.put_many([Putting(q) for _ in range(4)])
    drain(reader)
    q.put_many([None] * 200)
    drain(reader)
    q.put_many([None] * 2000)
    assert drain(reader).count("from a finalizer") == 4


def test_a_finalizer_that_puts_into_a_closed_queue_is_told():
    q = EventQueue()
    told = []

    class Curious:
        def __del__(self):
            try:
                q.put(1)
            except queueduct.QueueClosed as error:
                told.append(error)

    q.put(Curious())
    q.close()
    assert len(told) == 1


def test_threads_share_objects_without_losing_count():
    q = EventQueue(max_bytes=1 << 14)
    things = [Thing() for _ in range(10)]
    before = [sys.getrefcount(thing) for thing in things]
    readers = [q.subscribe() for _ in range(3)]
    seen = []

    def read(reader):
        seen.append(sum(1 for _ in reader))

    threads = [threading.Thread(target=read, args=(reader,)) for reader in readers]
    for thread in threads:
        thread.start()
    for i in range(3000):
        q.put(things[i % 10])
    q.shutdown()
    for thread in threads:
        thread.join(30)
    assert seen == [3000] * 3
    q.close()
    del q, readers, threads
    gc.collect()
    assert [sys.getrefcount(thing) for thing in things] == before
