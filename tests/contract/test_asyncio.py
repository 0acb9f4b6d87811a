"""aput and aget: the event loop is never blocked, and a cancelled call has taken nothing."""

from __future__ import annotations

import asyncio
import math
import threading
import time

import pytest

import queueduct
from queueduct import BoundedQueue, OverwritingQueue, QueueClosed, ShutDown, SlotQueue
from tests.support.deadline import PATIENCE_SECONDS, until
from tests.support.lossless import Lossless

MAKERS = {
    "local": lambda capacity: BoundedQueue(capacity),
    "bytes": lambda capacity: BoundedQueue.create("q", capacity),
    "slots": lambda capacity: SlotQueue.create("q", capacity),
    "objects": lambda capacity: BoundedQueue.create("q", capacity, item=object),
    "records": lambda capacity: BoundedQueue.create("q", capacity, item="S16"),
    "overwriting": lambda capacity: Lossless.create("q", capacity, item=object),
}


@pytest.fixture(params=list(MAKERS))
def make(request):
    return MAKERS[request.param]


def run(coroutine):
    """On a loop of its own, with a limit far beyond what anything here needs."""
    return asyncio.run(asyncio.wait_for(coroutine, 2 * PATIENCE_SECONDS))


async def turns(count=20):
    """Let everybody who can go on go on."""
    for _ in range(count):
        await asyncio.sleep(0)


async def is_waiting(task, q):
    """Until a task's call has come to its wait, with a helper thread behind it."""
    while not any(thread.name == "queueduct-aio" for thread in threading.enumerate()):
        await asyncio.sleep(0.001)
    await turns()
    assert not task.done()


def test_what_is_put_is_got(make):
    async def main():
        q = make(4)
        await q.aput(b"1")
        await q.aput(b"2")
        return await q.aget(), await q.aget()

    assert run(main()) == (b"1", b"2")


def test_aget_waits_for_an_item_while_the_loop_goes_on(make):
    async def main():
        q = make(4)
        task = asyncio.create_task(q.aget())
        await is_waiting(task, q)
        q.put(b"1")
        return await task

    assert run(main()) == b"1"


def test_aput_waits_for_room_while_the_loop_goes_on(make):
    async def main():
        q = make(2)
        q.put_many([b"1", b"2"])
        task = asyncio.create_task(q.aput(b"3"))
        await is_waiting(task, q)
        assert q.get() == b"1"
        await task
        return list(q.get_many(4))

    assert run(main()) == [b"2", b"3"]


def test_timeouts_raise_empty_and_full(make):
    async def main():
        q = make(2)
        start = time.monotonic()
        with pytest.raises(queueduct.Empty):
            await q.aget(timeout=0.15)
        assert time.monotonic() - start >= 0.14
        q.put_many([b"1", b"2"])
        start = time.monotonic()
        with pytest.raises(queueduct.Full):
            await q.aput(b"3", timeout=0.15)
        assert time.monotonic() - start >= 0.14
        return q.qsize()

    assert run(main()) == 2


def test_a_timeout_of_zero_takes_what_is_there(make):
    async def main():
        q = make(2)
        with pytest.raises(queueduct.Empty):
            await q.aget(timeout=0)
        await q.aput(b"1", timeout=0)
        assert await q.aget(timeout=0) == b"1"

    run(main())


@pytest.mark.parametrize("timeout", [-1, math.nan])
def test_a_timeout_that_is_no_length_of_time_is_refused(timeout):
    async def main():
        q = BoundedQueue(2)
        with pytest.raises(ValueError, match="timeout must be a non-negative number or None"):
            await q.aget(timeout=timeout)
        with pytest.raises(ValueError, match="timeout must be a non-negative number or None"):
            await q.aput(1, timeout=timeout)
        assert q.empty()

    run(main())


def test_an_endless_timeout_waits(make):
    async def main():
        q = make(2)
        task = asyncio.create_task(q.aget(timeout=math.inf))
        await is_waiting(task, q)
        await q.aput(b"1")
        assert await task == b"1"

    run(main())


def test_a_cancelled_aget_has_taken_nothing(make):
    """Cancelled at every moment around the arrival of an item: the item is got by the task, or is still there."""

    async def main():
        q = make(4)
        for round_ in range(60):
            task = asyncio.create_task(q.aget())
            if round_ % 3:
                await turns(round_ % 7)
            q.put(b"%d" % round_)
            await turns(round_ % 5)
            task.cancel()
            try:
                got = await task
            except asyncio.CancelledError:
                got = q.get_nowait()
            assert got == b"%d" % round_
            assert q.empty()

    run(main())


def test_a_cancelled_aput_has_put_nothing(make):
    async def main():
        q = make(2)
        q.put_many([b"1", b"2"])
        for round_ in range(30):
            task = asyncio.create_task(q.aput(b"3"))
            await turns(round_ % 7)
            if round_ % 2:
                task.cancel()
            first = q.get()
            await turns(round_ % 5)
            task.cancel()
            try:
                await task
                expected = [b"2", b"3"]
            except asyncio.CancelledError:
                expected = [b"2"]
            assert first == b"1"
            assert list(q.get_many(4)) == expected
            q.put_many([b"1", b"2"])

    run(main())


def test_the_news_that_a_cancelled_waiter_got_is_passed_on(make):
    """One item, two waiters; the first is cancelled in the very moment it is told."""

    async def main():
        q = make(4)
        for _ in range(20):
            first = asyncio.create_task(q.aget())
            second = asyncio.create_task(q.aget())
            await is_waiting(second, q)
            q.put(b"1")
            first.cancel()
            done, _ = await asyncio.wait({first, second}, return_when=asyncio.ALL_COMPLETED, timeout=0.02)
            results = [task.result() for task in done if not task.cancelled()]
            if not results:
                results.append(await second)
            elif not second.done():
                second.cancel()
            assert results == [b"1"]
            await asyncio.gather(first, second, return_exceptions=True)

    run(main())


def test_many_waiters_get_one_item_each(make):
    async def main():
        q = make(256)
        tasks = [asyncio.create_task(q.aget()) for _ in range(200)]
        await is_waiting(tasks[-1], q)
        for i in range(200):
            await q.aput(b"%d" % i)
        return await asyncio.gather(*tasks)

    assert sorted(run(main())) == sorted(b"%d" % i for i in range(200))


def test_many_putters_through_a_small_queue(make):
    async def main():
        q = make(2)
        tasks = [asyncio.create_task(q.aput(b"%d" % i)) for i in range(100)]
        got = [await q.aget() for _ in range(100)]
        await asyncio.gather(*tasks)
        return got

    assert sorted(run(main())) == sorted(b"%d" % i for i in range(100))


@pytest.mark.parametrize("immediate", [False, True])
def test_a_shutdown_reaches_all_who_wait(make, immediate):
    async def main():
        empty = make(2)
        tasks = [asyncio.create_task(empty.aget()) for _ in range(5)]
        await is_waiting(tasks[-1], empty)
        empty.shutdown(immediate=immediate)
        assert [type(result) for result in await asyncio.gather(*tasks, return_exceptions=True)] == [ShutDown] * 5

    run(main())


def test_a_shutdown_reaches_those_who_wait_for_room(make):
    async def main():
        full = make(2)
        full.put_many([b"1", b"2"])
        tasks = [asyncio.create_task(full.aput(b"3")) for _ in range(5)]
        await is_waiting(tasks[-1], full)
        full.shutdown()
        assert [type(result) for result in await asyncio.gather(*tasks, return_exceptions=True)] == [ShutDown] * 5

    run(main())


def test_closing_the_handle_reaches_all_who_wait(make):
    async def main():
        q = make(2)
        tasks = [asyncio.create_task(q.aget()) for _ in range(5)]
        await is_waiting(tasks[-1], q)
        q.close()
        assert [type(result) for result in await asyncio.gather(*tasks, return_exceptions=True)] == [QueueClosed] * 5

    run(main())


def test_two_loops_share_a_handle(make):
    q = make(8)
    got = []

    async def consume():
        for _ in range(200):
            got.append(await q.aget())

    async def produce():
        for i in range(400):
            await q.aput(b"%d" % i)

    threads = [threading.Thread(target=run, args=(consume(),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    run(produce())
    for thread in threads:
        thread.join(2 * PATIENCE_SECONDS)
        assert not thread.is_alive()
    assert sorted(got) == sorted(b"%d" % i for i in range(400))


def test_a_loop_that_ends_while_its_tasks_wait_harms_no_other_loop(make):
    q = make(4)

    async def give_up():
        task = asyncio.create_task(q.aget())
        await is_waiting(task, q)

    asyncio.run(give_up())  # cancels the task and closes the loop

    async def main():
        task = asyncio.create_task(q.aget())
        await is_waiting(task, q)
        q.put(b"1")
        return await task

    assert run(main()) == b"1"


def test_threads_and_coroutines_share_a_queue(make):
    q = make(4)
    items = [b"%d" % i for i in range(500)]
    producer = threading.Thread(target=lambda: [q.put(item) for item in items])
    producer.start()

    async def main():
        return [await q.aget(timeout=PATIENCE_SECONDS) for _ in items]

    assert run(main()) == items
    producer.join(PATIENCE_SECONDS)


def test_the_helper_thread_ends_when_nobody_waits(make):
    async def main():
        q = make(2)
        with pytest.raises(queueduct.Empty):
            await q.aget(timeout=0.01)

    run(main())
    until(lambda: not any(t.name == "queueduct-aio" for t in threading.enumerate()), "the helper's end")


@pytest.mark.parametrize("item", [bytes, object])
def test_waiting_to_put_a_long_item_costs_next_to_nothing(item):
    """One slot is free and the item needs two: the loop and its helper must sleep, not try again and again."""
    q = BoundedQueue.create("q", 4, item=item, slot_bytes=64)
    q.put_many([b"1", b"2", b"3"])

    async def main():
        task = asyncio.create_task(q.aput(bytes(100)))
        await is_waiting(task, q)
        before = time.process_time()
        await asyncio.sleep(1)
        spent = time.process_time() - before
        assert not task.done()
        assert q.get() == b"1"
        await task
        assert [q.get(), q.get(), q.get()] == [b"2", b"3", bytes(100)]
        return spent

    assert run(main()) < 0.3


def test_waiting_needs_no_line_in_the_participant_table():
    """The loop's thread has the only line; the helper must do without, and sleep all the same."""
    q = BoundedQueue.create("q", 4, participants=1)

    async def main():
        task = asyncio.create_task(q.aget())
        await is_waiting(task, q)
        before = time.process_time()
        await asyncio.sleep(1)
        spent = time.process_time() - before
        q.put(b"1")
        assert await task == b"1"
        return spent

    assert run(main()) < 0.3


def test_a_refused_item_is_refused_at_once():
    q = BoundedQueue.create("q", 2, slot_bytes=16)

    async def main():
        with pytest.raises(TypeError, match="bytes, not str"):
            await q.aput("text")
        with pytest.raises(ValueError, match="can never fit"):
            await q.aput(bytes(100))

    run(main())


def test_an_overwriting_aput_waits_for_room_only_if_it_may_not_overwrite():
    async def main():
        q = OverwritingQueue.create("q", 2, item="i8")
        for number in range(5):
            await q.aput(number)
        with pytest.raises(queueduct.Full):
            await q.aput(5, timeout=0, overwrite=False)
        task = asyncio.create_task(q.aput(6, overwrite=False))
        await is_waiting(task, q)
        found = [await q.aget()]
        await task
        return found + [await q.aget(timeout=0) for _ in range(2)], q.stats().overwritten

    assert run(main()) == ([3, 4, 6], 3)
