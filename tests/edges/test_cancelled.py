"""aget cancelled at every step of the event loop: the item is the task's result, or another's, or still there."""

from __future__ import annotations

import _thread
import asyncio
import itertools
import signal
import threading

import pytest

import queueduct
from queueduct.core.aio import Bridge
from tests.edges.interrupting import handling
from tests.support.deadline import until
from tests.support.kinds import CLASSES

STEPS = range(5)
KINDS = [(kind, item) for kind in CLASSES for item in (bytes, object)]


class SteppedLoop(asyncio.SelectorEventLoop):
    """Goes on when it is told to, by one iteration; its clock stands still in between."""

    def __init__(self):
        super().__init__()
        self.told = 0
        self.now = 0.0

    def time(self):
        return self.now

    def call_soon_threadsafe(self, callback, *args, context=None):
        handle = super().call_soon_threadsafe(callback, *args, context=context)
        self.told += 1
        return handle

    def step(self, count=1):
        for _ in range(count):
            self.call_soon(self.stop)
            self.run_forever()


class Announced:
    """A queue, or a reader, whose helper thread has news when the test says so."""

    def __init__(self, consumer):
        self.consumer = consumer
        self.news = threading.Semaphore(0)

    def get_nowait(self):
        return self.consumer.get_nowait()

    def _slots_for(self, item):
        return 1

    def _wait_ready(self, for_items, slots, seconds):
        self.news.acquire(timeout=30)


@pytest.fixture
def loop():
    made = SteppedLoop()
    yield made
    made.close()


@pytest.fixture(params=KINDS, ids=lambda pair: f"{pair[0]}-{pair[1].__name__}")
def q(request):
    kind, item = request.param
    options = {"message_bytes": 8} if kind == "overwriting" and item is bytes else {}
    with CLASSES[kind].create("q", item=item, **options) as made:
        yield made


def announced(q):
    return Announced(q.subscribe() if hasattr(q, "subscribe") else q)


def tell(loop, queue):
    """The helper thread has seen the item, and has told the loop, which does not know yet."""
    before = loop.told
    queue.news.release()
    until(lambda: loop.told > before, "the helper tells the loop")


def left_in(queue):
    got = []
    while True:
        try:
            got.append(queue.get_nowait())
        except queueduct.Empty:
            return got


@pytest.mark.parametrize("before", STEPS)
@pytest.mark.parametrize("after", STEPS)
def test_a_cancelled_aget_has_its_item_or_has_left_it(q, loop, before, after):
    queue = announced(q)
    task = loop.create_task(Bridge(queue).get())
    loop.step(before)
    q.put(b"an item.")
    if before:
        tell(loop, queue)
    loop.step(after)
    task.cancel()
    loop.step(5)
    queue.news.release()
    assert task.done()
    assert ([] if task.cancelled() else [task.result()]) + left_in(queue) == [b"an item."]


@pytest.mark.parametrize("after", STEPS)
def test_who_waits_behind_a_cancelled_one_gets_the_item(q, loop, after):
    queue = announced(q)
    bridge = Bridge(queue)
    first, second = (loop.create_task(bridge.get()) for _ in range(2))
    loop.step(2)
    q.put(b"an item.")
    tell(loop, queue)
    loop.step(after)
    first.cancel()
    loop.step(5)
    queue.news.release()  # it is still there: the helper sees it at once
    if first.cancelled():
        until(lambda: loop.step() or second.done(), "the second one's item")
        assert second.result() == b"an item."
    else:
        assert first.result() == b"an item."
        second.cancel()
        loop.step(2)
    queue.news.release()
    assert left_in(queue) == []


@pytest.mark.parametrize("after", STEPS)
@pytest.mark.parametrize("how", ["its own timeout", "wait_for", "timeout"])
def test_a_timeout_at_the_moment_of_the_item_loses_nothing(q, loop, how, after):
    async def get():
        if how == "its own timeout":
            return await bridge.get(1.0)
        if how == "wait_for":
            return await asyncio.wait_for(bridge.get(), 1.0)
        async with asyncio.timeout(1.0):
            return await bridge.get()

    queue = announced(q)
    bridge = Bridge(queue)
    task = loop.create_task(get())
    loop.step(3)
    q.put(b"an item.")
    tell(loop, queue)
    loop.step(after)
    loop.now = 2.0
    loop.step(8)
    queue.news.release()
    error = task.exception()
    assert error is None or isinstance(error, (queueduct.Empty, TimeoutError))
    assert ([task.result()] if error is None else []) + left_in(queue) == [b"an item."]


def test_a_loop_that_is_closed_has_taken_nothing(q):
    queue = announced(q)
    loop = SteppedLoop()
    task = loop.create_task(Bridge(queue).get())
    loop.step(2)
    q.put(b"an item.")
    tell(loop, queue)
    task.cancel()
    loop.step(2)
    loop.close()
    assert task.cancelled()
    assert left_in(queue) == [b"an item."]


def test_a_handler_that_raises_leaves_the_item_to_the_task(q):
    """No instruction of our own lies between: the task has it, and the handler raises in the loop."""
    q_taken = q.subscribe() if hasattr(q, "subscribe") else q
    every = itertools.repeat(())
    # one step of C's: takes the item, and then a signal has come
    both = zip(
        itertools.starmap(q_taken.get_nowait, every),
        itertools.starmap(_thread.interrupt_main, itertools.repeat((signal.SIGALRM,))),
        strict=True,
    )
    queue = Announced(q_taken)
    queue.get_nowait = both.__next__
    bridge = Bridge(queue)
    q.put(b"an item.")
    loop = asyncio.new_event_loop()
    with handling(signal.SIGALRM, signal.default_int_handler):
        task = loop.create_task(bridge.get())
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(task)
    assert task.done()
    loop.close()
    assert task.exception() is None
    assert task.result()[0] == b"an item."
