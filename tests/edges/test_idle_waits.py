"""Waiting in an event loop costs next to nothing, and ends at once when something comes: every kind, named or not."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

import queueduct
from queueduct import BoundedQueue, EventQueue, GrowingQueue
from queueduct.core.aio import Bridge
from tests.edges.kinds import KINDS, item, number_of
from tests.support.deadline import PATIENCE_SECONDS

IDLE_SECONDS = 0.4
SPENT_LIMIT = 0.05  # of processor time meanwhile: a task that tries again and again has used all of it

NAMED = {name: lambda kind=kind: kind.create("q") for name, kind in KINDS.items()}
UNNAMED = {
    "bounded, unnamed": lambda: BoundedQueue(64),
    "growing, unnamed": lambda: GrowingQueue(),
    "events, unnamed": lambda: EventQueue(),
}
FULL = {
    "bounded": lambda: BoundedQueue.create("q", 4),
    "bounded, unnamed": lambda: BoundedQueue(4),
    "growing": lambda: GrowingQueue.create("q", steps=1),
    "growing, at its budget": lambda: GrowingQueue.create("q", steps=4, max_bytes=1 << 17),
    "growing, of records": lambda: GrowingQueue.create("q", item="S64", steps=1),
    "growing, of objects": lambda: GrowingQueue.create("q", item=object, steps=1),
    "slots": lambda: queueduct.SlotQueue.create("q", capacity=4, slot_bytes=64),
}


def consumer_of(name, q):
    return q.subscribe() if name.startswith("events") else q


async def spent_while(task):
    """Of processor time, while the task waits."""
    spent = SPENT_LIMIT
    for _ in range(3):  # a busy machine disturbs one of them; a task that tries again and again, all
        if spent >= SPENT_LIMIT:
            await asyncio.sleep(0.05)  # it may spin for a moment before it sleeps
            before = time.process_time()
            await asyncio.sleep(IDLE_SECONDS)
            assert not task.done()
            spent = time.process_time() - before
    return spent


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 2 * PATIENCE_SECONDS))


@pytest.mark.parametrize("name", [*NAMED, *UNNAMED])
def test_an_aget_of_an_empty_queue_sleeps_and_wakes_at_once(name):
    async def main():
        q = (NAMED | UNNAMED)[name]()
        consumer = consumer_of(name, q)
        task = asyncio.create_task(consumer.aget())
        spent = await spent_while(task)
        start = time.monotonic()
        q.put(item(7))
        assert number_of(await task) == 7
        return spent, time.monotonic() - start

    spent, woken = run(main())
    assert spent < SPENT_LIMIT
    assert woken < 5  # far below what a lost wake-up of many would cost, far above what a busy machine does


@pytest.mark.parametrize("name", FULL)
def test_an_aput_into_a_full_queue_sleeps_and_goes_on_when_there_is_room(name):
    async def main():
        q = FULL[name]()
        put = 0
        while q.try_put(item(put)):
            put += 1
        task = asyncio.create_task(q.aput(item(put)))
        spent = await spent_while(task)
        got = [number_of(q.get()) for _ in range(put)]
        await task
        return spent, [*got, number_of(q.get())], put

    spent, got, put = run(main())
    assert spent < SPENT_LIMIT
    assert got == list(range(put + 1))


def test_an_aput_of_a_long_item_sleeps_until_all_its_slots_are_free():
    async def main():
        q = GrowingQueue.create("q", slot_bytes=64, steps=1)
        put = 0
        while q.try_put(item(put)):
            put += 1
        got = [number_of(q.get()) for _ in range(10)]
        task = asyncio.create_task(q.aput(bytes(64 * 12)))
        spent = await spent_while(task)
        got += [number_of(q.get()) for _ in range(put - 10)]
        await task
        assert q.get() == bytes(64 * 12)
        assert got == list(range(put))
        return spent

    assert run(main()) < SPENT_LIMIT


def test_an_aget_of_a_queue_whose_only_item_is_on_lease_sleeps():

    async def main():
        q = GrowingQueue.create("q")
        q.put(item(1))
        held = q.lease(1)
        task = asyncio.create_task(q.aget())
        spent = await spent_while(task)
        held.release(0)
        assert number_of(await task) == 1
        return spent

    assert run(main()) < SPENT_LIMIT


@pytest.mark.parametrize("name", [*NAMED, *UNNAMED])
def test_an_aget_whose_helper_could_not_be_started_leaves_the_next_one_a_helper(name, monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    async def main():
        q = (NAMED | UNNAMED)[name]()
        consumer = consumer_of(name, q)
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            with pytest.raises(RuntimeError, match="new thread"):
                await consumer.aget()
        task = asyncio.create_task(consumer.aget())
        await asyncio.sleep(0.05)
        q.put(item(7))
        return number_of(await task)

    assert run(main()) == 7


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("for_items", [True, False])
def test_who_waits_for_a_helper_that_dies_gets_another(for_items):
    class Dying:
        """A queue whose helper finds no memory, once."""

        died = False

        def __init__(self):
            self.q = BoundedQueue(2)

        def get_nowait(self):
            return self.q.get_nowait()

        def put_nowait(self, item):
            self.q.put_nowait(item)

        def _slots_for(self, item):
            return 1

        def _wait_ready(self, for_items, slots, seconds):
            if not self.died:
                self.died = True
                raise MemoryError
            self.q._wait_ready(for_items, slots, seconds)

    async def main():
        queue = Dying()
        bridge = Bridge(queue)
        if not for_items:
            queue.q.put_many([1, 2])
        task = asyncio.create_task(bridge.get() if for_items else bridge.put(3))
        await asyncio.sleep(0.05)
        assert queue.died
        assert not task.done()
        if for_items:
            queue.q.put(3)
            return [await task]
        got = [queue.q.get()]
        await task
        return [*got, *queue.q.get_many(2)]

    assert run(main()) == ([3] if for_items else [1, 2, 3])
