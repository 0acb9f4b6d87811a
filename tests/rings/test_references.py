"""Objects within a process go by reference, and the queue forgets what it has given away."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import weakref

import pytest

import queueduct
from queueduct import BoundedQueue
from tests.support.deadline import until, until_parked


class Thing:
    """Something a weak reference can watch."""


def test_what_comes_out_is_the_very_object_that_went_in():
    q = BoundedQueue(4)
    for item in (Thing(), None, (), "x", b"x", 5, [1], q, lambda: 0):
        q.put(item)
        assert q.get() is item


def test_none_is_an_item_like_any_other():
    q = BoundedQueue(4)
    q.put(None)
    nothing = object()
    assert q.try_get(nothing) is None
    assert q.try_get(nothing) is nothing


def test_a_pop_clears_the_reference_from_its_slot():
    q = BoundedQueue(4)
    thing = Thing()
    watch = weakref.ref(thing)
    q.put(thing)
    del thing
    assert watch() is not None
    q.get()
    assert watch() is None


@pytest.mark.parametrize("how", ["single", "nowait", "try", "batch"])
def test_put_and_get_leave_the_reference_count_as_it_was(how):
    q = BoundedQueue(16)
    thing = Thing()
    before = sys.getrefcount(thing)
    for _ in range(1000):
        if how == "single":
            q.put(thing)
            q.get()
        elif how == "nowait":
            q.put_nowait(thing)
            q.get_nowait()
        elif how == "try":
            q.try_put(thing)
            q.try_get()
        else:
            q.put_many([thing] * 9)
            q.get_many(16)
    assert sys.getrefcount(thing) == before


def test_a_put_that_fails_leaves_the_reference_count_as_it_was():
    q = BoundedQueue(2)
    q.put_many([0, 0])
    thing = Thing()
    before = sys.getrefcount(thing)
    assert q.try_put(thing) is False
    with pytest.raises(queueduct.Full):
        q.put_nowait(thing)
    with pytest.raises(queueduct.Full):
        q.put(thing, timeout=0.01)
    with pytest.raises(queueduct.Full):
        q.put_many([thing, thing], timeout=0.01)
    q.shutdown()
    with pytest.raises(queueduct.ShutDown):
        q.put(thing)
    with pytest.raises(queueduct.ShutDown):
        q.put_many([thing, thing])
    q.close()
    with pytest.raises(queueduct.QueueClosed):
        q.put(thing)
    assert sys.getrefcount(thing) == before


def test_a_batch_that_is_put_in_part_keeps_only_that_part():
    q = BoundedQueue(4)
    things = [Thing() for _ in range(6)]
    watches = [weakref.ref(thing) for thing in things]
    assert q.put_many(things, timeout=0.01) == 4
    del things
    assert [watch() is not None for watch in watches] == [True] * 4 + [False] * 2


@pytest.mark.parametrize("end", ["del", "close", "immediate", "with"])
def test_what_is_still_in_a_queue_is_dropped_with_it(end):
    q = BoundedQueue(8)
    things = [Thing() for _ in range(5)]
    watches = [weakref.ref(thing) for thing in things]
    q.put_many(things)
    q.get()
    del things
    assert [watch() is not None for watch in watches] == [False] + [True] * 4
    if end == "del":
        del q
    elif end == "close":
        q.close()
    elif end == "immediate":
        q.shutdown(immediate=True)
    else:
        with q:
            pass
    assert [watch() for watch in watches] == [None] * 5


def test_a_plain_shutdown_drops_nothing():
    q = BoundedQueue(8)
    thing = Thing()
    q.put(thing)
    q.shutdown()
    assert q.get() is thing


def test_a_cycle_through_a_queue_is_collected():
    q = BoundedQueue(4)
    thing = Thing()
    thing.queue = q
    q.put(thing)
    q.put(q)
    watches = [weakref.ref(q), weakref.ref(thing)]
    del q, thing
    gc.collect()
    assert [watch() for watch in watches] == [None, None]


def test_a_cycle_through_a_subclass_with_attributes_is_collected():
    class Named(BoundedQueue):
        pass

    q = Named(4)
    q.itself = q
    q.put(q)
    watch = weakref.ref(q)
    del q
    gc.collect()
    assert watch() is None


def test_a_cycle_through_a_wrapped_ring_is_collected():
    q = BoundedQueue(4)
    for _ in range(7):
        q.put(0)
        q.get()
    q.put(q)
    q.put(q)
    watch = weakref.ref(q)
    del q
    gc.collect()
    assert watch() is None


def test_the_collector_sees_what_a_queue_holds():
    q = BoundedQueue(4)
    thing = Thing()
    q.put(thing)

    def reachable():
        near = gc.get_referents(q)
        return near + gc.get_referents(*near)

    assert thing in reachable()
    q.get()
    assert thing not in reachable()


async def use(q):
    with pytest.raises(queueduct.Empty):
        await q.aget(timeout=0.01)
    await q.aput(1)


def test_a_queue_used_from_asyncio_is_collected():
    q = BoundedQueue(4)
    asyncio.run(use(q))
    watch = weakref.ref(q)
    del q

    def is_collected():
        gc.collect()
        return watch() is None

    until(is_collected, "the collection")  # its helper thread looks up now and then


def test_an_item_whose_end_uses_the_queue_does_no_harm():
    """Dropping an item runs code, and that code may call the queue that drops it."""
    q = BoundedQueue(8)
    seen = []

    class Nosy:
        def __del__(self):
            try:
                seen.append(q.qsize())
                q.put(1, timeout=0)
            except Exception as error:
                seen.append(type(error))

    for _ in range(4):
        q.put(Nosy())
    q.shutdown(immediate=True)
    assert seen == [0, queueduct.ShutDown] * 4
    seen.clear()
    q.close()
    assert seen == []


def test_an_item_whose_end_closes_the_queue_does_no_harm(children):
    children.run(
        """
import queueduct
for end in ("shutdown", "close", "get_many"):
    q = queueduct.BoundedQueue(8)
    class Closing:
        def __del__(self):
            q.close()
    q.put_many([Closing() for _ in range(4)])
    if end == "shutdown":
        q.shutdown(immediate=True)
    elif end == "close":
        q.close()
    else:
        q.get_many(3).clear()
    assert q.closed
"""
    )


def test_close_may_take_its_time_to_drop_items_while_a_putter_wakes(children):
    """The woken putter is the last one out and gives the memory up, but not under the one that still drains."""
    children.run(
        """
import threading, queueduct
from tests.support.deadline import until, until_parked
q = queueduct.BoundedQueue(64)
over = threading.Event()
class Slow:
    def __del__(self):
        over.wait(0.01)   # lets the others run
q.put_many([Slow() for _ in range(64)])
def put():
    try:
        q.put(0)
    except queueduct.QueueClosed:
        pass
    finally:
        over.set()
putter = threading.Thread(target=put)
putter.start()
until_parked(putter)
q.close()
putter.join(30)
assert not putter.is_alive()
"""
    )


def test_getters_waiting_for_ever_hold_no_item_alive():
    q = BoundedQueue(4)
    got = []
    getter = threading.Thread(target=lambda: got.append(q.get()))
    getter.start()
    until_parked(getter)
    thing = Thing()
    watch = weakref.ref(thing)
    q.put(thing)
    del thing
    getter.join(30)
    assert watch() is got[0]
    got.clear()
    del getter
    assert watch() is None


def test_deeply_nested_queues_are_freed_without_running_out_of_stack(children):
    children.run(
        """
import threading, queueduct
def nest():
    outer = queueduct.BoundedQueue(2)
    for _ in range(3000):
        inner, outer = outer, queueduct.BoundedQueue(2)
        outer.put(inner)
        del inner
    del outer
threading.stack_size(256 * 1024)
thread = threading.Thread(target=nest)
thread.start()
thread.join()
"""
    )


def test_a_finalizer_that_gets_during_a_batch_gets_other_items():
    """Making the batch's list may run the collector, and so anything at all, between the look and the claim."""
    q = BoundedQueue(16)
    things = [Thing() for _ in range(8)]
    taken = []

    class Taker:
        def __init__(self):
            self.me = self

        def __del__(self):
            taken.append(q.try_get())

    threshold = gc.get_threshold()
    gc.collect()
    gc.disable()
    try:
        q.put_many(things)
        Taker()
        gc.set_threshold(1)
        gc.enable()
        batch = q.get_many(4)
    finally:
        gc.set_threshold(*threshold)
        gc.enable()
    gc.collect()
    rest = q.get_many(16)
    everything = taken + batch + rest
    assert len(everything) == len(things)
    assert {id(thing) for thing in everything} == {id(thing) for thing in things}
