"""How a reader gets: one, many, by iteration, waiting, with a timeout, until Ctrl-C, and from a coroutine."""

from __future__ import annotations

import asyncio
import math
import signal
import threading
import time

import numpy as np
import pytest

import queueduct
from queueduct import EventQueue
from tests.support.deadline import is_task_parked, until, until_parked
from tests.support.ticks import FORMS, TICK, numbers


@pytest.fixture(params=list(FORMS))
def form(request):
    return FORMS[request.param]


@pytest.fixture
def q():
    with EventQueue.create("q", item="<u8") as made:
        yield made


def test_get_many_of_records_is_one_array_and_of_others_a_list(form):
    make, item, number = form
    with make() as queue:
        reader = queue.subscribe()
        queue.put_many([item(i) for i in range(300)])
        batch = reader.get_many(1000)
        if queue.item == TICK:
            assert type(batch) is np.ndarray
            assert batch.dtype == TICK
            assert batch.flags.owndata
            assert batch.flags.writeable
        else:
            assert type(batch) is list
        assert [number(each) for each in batch] == list(range(300))


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 7, 8, 31, 32, 33, 299, 300, 301, 2**40])
def test_get_many_gives_at_most_so_many_and_crosses_chunks(form, limit):
    make, item, number = form
    with make() as queue:
        reader = queue.subscribe()
        queue.put_many([item(i) for i in range(300)])
        found = []
        while len(found) < 300:
            batch = reader.get_many(limit)
            assert len(batch) == min(limit, 300 - len(found))
            found += [number(each) for each in batch]
            assert reader.position == len(found)
        assert found == list(range(300))


@pytest.mark.parametrize(("limit", "error"), [(0, ValueError), (-1, ValueError), (1.0, TypeError), (True, TypeError)])
def test_a_limit_is_a_count(q, limit, error):
    reader = q.subscribe()
    for call in (reader.get_many, lambda n: reader.view(max_items=n)):
        with pytest.raises(error, match="max_items must"):
            call(limit)


def test_an_empty_log_gives_empty(form):
    with form[0]() as queue:
        reader = queue.subscribe()
        nothing = object()
        assert reader.try_get() is None
        assert reader.try_get(nothing) is nothing
        for call in (
            reader.get_nowait,
            lambda: reader.get(block=False),
            lambda: reader.get(timeout=0),
            lambda: reader.get(timeout=0.01),
            lambda: reader.get_many(5, block=False),
            lambda: reader.get_many(5, timeout=0.01),
        ):
            with pytest.raises(queueduct.Empty):
                call()


def test_a_timeout_lasts_as_long_as_it_says(q):
    reader = q.subscribe()
    start = time.monotonic()
    with pytest.raises(queueduct.Empty):
        reader.get(timeout=0.25)
    assert 0.25 <= time.monotonic() - start < 5


@pytest.mark.parametrize("timeout", [-1, -math.inf, math.nan])
def test_a_timeout_that_is_no_length_of_time_is_refused(q, timeout):
    reader = q.subscribe()
    for call in (reader.get, lambda **how: reader.get_many(1, **how)):
        with pytest.raises(ValueError, match="timeout must be a non-negative number or None"):
            call(timeout=timeout)


def test_one_put_wakes_every_reader_that_waits(form):
    make, item, number = form
    with make() as queue:
        got = []
        readers = [queue.subscribe() for _ in range(8)]
        threads = [threading.Thread(target=lambda r=reader: got.append(number(r.get()))) for reader in readers]
        for thread in threads:
            thread.start()
        until_parked(*threads)
        queue.put(item(7))
        for thread in threads:
            thread.join(30)
        assert got == [7] * 8


def test_a_waiting_get_many_gives_the_first_batch_that_comes(q):
    reader = q.subscribe()
    got = []
    thread = threading.Thread(target=lambda: got.append(reader.get_many(1000)))
    thread.start()
    until_parked(thread)
    q.put_many(numbers(100))
    thread.join(30)
    assert got[0].tolist() == list(range(100))


def test_a_put_in_another_process_wakes_a_reader(q, children):
    reader = q.subscribe()
    children.start("import queueduct; queueduct.open('q').put(9); input()")
    assert reader.get(timeout=30) == 9


def test_an_iteration_goes_on_as_items_come_and_ends_at_a_shutdown(form):
    make, item, number = form
    with make() as queue:
        reader = queue.subscribe()
        got = []
        thread = threading.Thread(target=lambda: got.extend(number(each) for each in reader))
        thread.start()
        for i in range(50):
            queue.put(item(i))
        until(lambda: len(got) == 50, "all items")
        until_parked(thread)
        queue.put(item(50))
        queue.shutdown()
        thread.join(30)
        assert got == list(range(51))


def test_an_iteration_can_be_left_and_taken_up_again(q):
    reader = q.subscribe()
    q.put_many(numbers(20))
    for item in reader:
        if item == 5:
            break
    assert reader.get() == 6
    assert next(reader) == 7
    assert list(reader.get_many(3)) == [8, 9, 10]
    assert next(reader) == 11


INTERRUPTED = """
import sys, time, queueduct
how, named = sys.argv[1], sys.argv[2] == "named"
q = queueduct.EventQueue.create("q", max_bytes=4096) if named else queueduct.EventQueue(max_bytes=4096)
r = q.subscribe()
if how.startswith("put"):
    while q.try_put(b"x" * 50):
        pass
calls = {
    "get": lambda: r.get(),
    "get with timeout": lambda: r.get(timeout=60),
    "put": lambda: q.put(b"x" * 50),
    "put_many": lambda: q.put_many([b"x" * 50] * 9),
    "get_many": lambda: r.get_many(5),
    "iteration": lambda: list(r),
}
print("ready", flush=True)
try:
    calls[how]()
except KeyboardInterrupt:
    print("interrupted", time.monotonic(), flush=True)
"""


@pytest.mark.parametrize("how", ["get", "get with timeout", "put", "put_many", "get_many", "iteration"])
def test_ctrl_c_ends_a_wait_within_a_second(children, how):
    waiting = [children.start(INTERRUPTED, how, named) for named in ("named", "local")]
    for child in waiting:
        assert child.stdout.readline() == "ready\n"
        until(lambda child=child: is_task_parked(f"/proc/{child.pid}"), "the wait")
        start = time.monotonic()
        child.send_signal(signal.SIGINT)
        word, at = child.stdout.readline().split()
        assert word == "interrupted"
        assert float(at) - start < 1
        assert child.wait(30) == 0


def test_a_reader_closed_by_another_thread_ends_its_wait(q):
    told = []
    for end in ("reader", "queue"):
        queue = EventQueue.open("q")
        reader = queue.subscribe()

        def wait(reader=reader):
            try:
                reader.get()
            except queueduct.QueueClosed as error:
                told.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        until_parked(thread)
        (reader if end == "reader" else queue).close()
        thread.join(30)
    assert len(told) == 2


def test_a_reader_is_used_by_one_thread_at_a_time(q):
    reader = q.subscribe()
    q.put_many(numbers(10))
    with reader.view():
        for call in (reader.get, lambda: reader.get_many(5), lambda: reader.view().__enter__()):
            with pytest.raises(RuntimeError, match="one thread at a time, and not inside its own view"):
                call()
    assert reader.get() == 4


def test_aget_waits_without_stopping_the_loop(form):
    make, item, number = form

    async def main():
        with make() as queue:
            readers = [queue.subscribe() for _ in range(3)]
            waiting = [asyncio.create_task(reader.aget()) for reader in readers]
            await asyncio.sleep(0.02)
            assert not any(task.done() for task in waiting)
            await queue.aput(item(5))
            assert [number(each) for each in await asyncio.gather(*waiting)] == [5] * 3
            with pytest.raises(queueduct.Empty):
                await readers[0].aget(timeout=0.02)
            queue.put(item(6))
            assert number(await readers[0].aget()) == 6
            waiting = [asyncio.create_task(readers[0].aget())]
            await asyncio.sleep(0.02)
            queue.shutdown()
            with pytest.raises(queueduct.ShutDown):
                await waiting[0]

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_cancelled_aget_takes_nothing(q):
    async def main():
        reader = q.subscribe()
        task = asyncio.create_task(reader.aget())
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        q.put(1)
        assert await reader.aget() == 1

    asyncio.run(asyncio.wait_for(main(), 60))


def test_aget_waits_while_another_coroutine_has_a_view(q):
    """The helper thread that waits for it uses nothing of the reader."""

    async def main():
        reader = q.subscribe()
        task = asyncio.create_task(reader.aget())
        await asyncio.sleep(0.02)
        q.put(1)
        assert await task == 1
        q.put_many(numbers(3, 10))
        with reader.view(max_items=2) as array:
            assert list(array) == [10, 11]
            await asyncio.sleep(0.3)
        assert await reader.aget() == 12

    asyncio.run(asyncio.wait_for(main(), 60))


def test_aput_waits_for_room():
    async def main():
        with EventQueue.create("full", item="<u8", max_bytes=4096) as queue:
            reader = queue.subscribe()
            while queue.try_put(1):
                pass
            task = asyncio.create_task(queue.aput(2))
            await asyncio.sleep(0.02)
            assert not task.done()
            reader.get_many(1000)
            reader.try_get()
            await task
            assert await reader.aget() == 2

    asyncio.run(asyncio.wait_for(main(), 60))
