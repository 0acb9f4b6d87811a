"""aput and aget: the event loop is never blocked, and a cancelled call has taken nothing."""

from __future__ import annotations

import asyncio
import math
import threading
import time

import pytest

import queueduct
from queueduct import BoundedQueue, OverwritingQueue, QueueClosed, ShutDown
from tests.support.cases import CASES, EACH_ONCE, PLAIN
from tests.support.deadline import PATIENCE_SECONDS, until

ROWS = [*PLAIN, "bounded, records", "bounded, pickled objects", "overwriting, pickled objects", "events, records"]


@pytest.fixture(params=ROWS)
def case(request):
    return CASES[request.param]


@pytest.fixture(params=[name for name in ROWS if name in EACH_ONCE])
def shared(request):
    """A row whose items go to one consumer each."""
    return CASES[request.param]


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


async def outcomes(tasks):
    """The classes of what they raised."""
    return [type(result) for result in await asyncio.gather(*tasks, return_exceptions=True)]


def test_what_is_put_is_got(case):
    async def main():
        q = case.make(4)
        reader = case.consumer(q)
        await q.aput(case.item(1))
        await q.aput(case.item(2))
        return case.numbers([await reader.aget(), await reader.aget()])

    assert run(main()) == [1, 2]


def test_aget_waits_for_an_item_while_the_loop_goes_on(case):
    async def main():
        q = case.make(4)
        task = asyncio.create_task(case.consumer(q).aget())
        await is_waiting(task, q)
        q.put(case.item(1))
        return case.number(await task)

    assert run(main()) == 1


def test_aput_waits_for_room_while_the_loop_goes_on(case):
    async def main():
        q = case.make(2)
        reader = case.consumer(q)
        count = case.fill(q)
        task = asyncio.create_task(q.aput(case.item(count)))
        await is_waiting(task, q)
        got = [case.number(reader.get())]
        while not task.done():  # an event queue frees more than one item at a time
            if (item := reader.try_get()) is not None:
                got.append(case.number(item))
            await turns(1)
        await task
        return got + case.numbers(reader.get_many(10**6)), count

    got, count = run(main())
    assert got == list(range(count + 1))


def test_timeouts_raise_empty_and_full(case):
    async def main():
        q = case.make(2)
        reader = case.consumer(q)
        start = time.monotonic()
        with pytest.raises(queueduct.Empty):
            await reader.aget(timeout=0.15)
        assert time.monotonic() - start >= 0.14
        count = case.fill(q)
        start = time.monotonic()
        with pytest.raises(queueduct.Full):
            await q.aput(case.item(3), timeout=0.15)
        assert time.monotonic() - start >= 0.14
        return q.qsize() - count

    assert run(main()) == 0


def test_a_timeout_of_zero_takes_what_is_there(case):
    async def main():
        q = case.make(2)
        reader = case.consumer(q)
        with pytest.raises(queueduct.Empty):
            await reader.aget(timeout=0)
        await q.aput(case.item(1), timeout=0)
        assert case.number(await reader.aget(timeout=0)) == 1

    run(main())


@pytest.mark.parametrize("timeout", [-1, math.nan])
def test_a_timeout_that_is_no_length_of_time_is_refused(case, timeout):
    async def main():
        q = case.make(2)
        reader = case.consumer(q)
        with pytest.raises(ValueError, match="timeout must be a non-negative number or None"):
            await reader.aget(timeout=timeout)
        with pytest.raises(ValueError, match="timeout must be a non-negative number or None"):
            await q.aput(case.item(1), timeout=timeout)
        assert q.empty()

    run(main())


def test_an_endless_timeout_waits(case):
    async def main():
        q = case.make(2)
        task = asyncio.create_task(case.consumer(q).aget(timeout=math.inf))
        await is_waiting(task, q)
        await q.aput(case.item(1))
        assert case.number(await task) == 1

    run(main())


def test_a_cancelled_aget_has_taken_nothing(case):
    """Cancelled at every moment around the arrival of an item: the item is got by the task, or is still there."""

    async def main():
        q = case.make(4)
        reader = case.consumer(q)
        for round_ in range(60):
            task = asyncio.create_task(reader.aget())
            if round_ % 3:
                await turns(round_ % 7)
            q.put(case.item(round_))
            await turns(round_ % 5)
            task.cancel()
            try:
                got = await task
            except asyncio.CancelledError:
                got = reader.get_nowait()
            assert case.number(got) == round_
            assert reader.try_get() is None

    run(main())


def test_a_cancelled_aput_has_put_nothing(shared):
    async def main():
        q = shared.make(2)
        q.put_many(shared.items(1, 2))
        for round_ in range(30):
            task = asyncio.create_task(q.aput(shared.item(3)))
            await turns(round_ % 7)
            if round_ % 2:
                task.cancel()
            first = q.get()
            await turns(round_ % 5)
            task.cancel()
            try:
                await task
                expected = [2, 3]
            except asyncio.CancelledError:
                expected = [2]
            assert shared.number(first) == 1
            assert shared.numbers(q.get_many(4)) == expected
            q.put_many(shared.items(1, 2))

    run(main())


def test_the_news_that_a_cancelled_waiter_got_is_passed_on(shared):
    """One item, two waiters; the first is cancelled in the very moment it is told."""

    async def main():
        q = shared.make(4)
        for _ in range(20):
            first = asyncio.create_task(q.aget())
            second = asyncio.create_task(q.aget())
            await is_waiting(second, q)
            q.put(shared.item(1))
            first.cancel()
            done, _ = await asyncio.wait({first, second}, return_when=asyncio.ALL_COMPLETED, timeout=0.02)
            results = [task.result() for task in done if not task.cancelled()]
            if not results:
                results.append(await second)
            elif not second.done():
                second.cancel()
            assert shared.numbers(results) == [1]
            await asyncio.gather(first, second, return_exceptions=True)

    run(main())


def test_many_waiters_get_one_item_each(shared):
    async def main():
        q = shared.make(256)
        tasks = [asyncio.create_task(q.aget()) for _ in range(200)]
        await is_waiting(tasks[-1], q)
        for i in range(200):
            await q.aput(shared.item(i))
        return shared.numbers(await asyncio.gather(*tasks))

    assert sorted(run(main())) == list(range(200))


def test_many_putters_through_a_small_queue(case):
    async def main():
        q = case.make(2)
        reader = case.consumer(q)
        tasks = [asyncio.create_task(q.aput(case.item(i))) for i in range(100)]
        got = [await reader.aget() for _ in range(100)]
        await asyncio.gather(*tasks)
        return case.numbers(got)

    assert sorted(run(main())) == list(range(100))


@pytest.mark.parametrize("immediate", [False, True])
def test_a_shutdown_reaches_all_who_wait(case, immediate):
    async def main():
        empty = case.make(2)
        tasks = [asyncio.create_task(case.consumer(empty).aget()) for _ in range(5)]
        await is_waiting(tasks[-1], empty)
        empty.shutdown(immediate=immediate)
        assert await outcomes(tasks) == [ShutDown] * 5

    run(main())


def test_a_shutdown_reaches_those_who_wait_for_room(case):
    async def main():
        full = case.make(2)
        reader = case.consumer(full)
        case.fill(full)
        tasks = [asyncio.create_task(full.aput(case.item(3))) for _ in range(5)]
        await is_waiting(tasks[-1], full)
        full.shutdown()
        assert await outcomes(tasks) == [ShutDown] * 5
        assert case.number(reader.get()) == 0

    run(main())


def test_closing_the_handle_reaches_all_who_wait(case):
    async def main():
        q = case.make(2)
        tasks = [asyncio.create_task(case.consumer(q).aget()) for _ in range(5)]
        await is_waiting(tasks[-1], q)
        q.close()
        assert await outcomes(tasks) == [QueueClosed] * 5

    run(main())


def test_two_loops_share_a_handle(shared):
    q = shared.make(8)
    got = []

    async def consume():
        for _ in range(200):
            got.append(shared.number(await q.aget()))

    async def produce():
        for i in range(400):
            await q.aput(shared.item(i))

    threads = [threading.Thread(target=run, args=(consume(),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    run(produce())
    for thread in threads:
        thread.join(2 * PATIENCE_SECONDS)
        assert not thread.is_alive()
    assert sorted(got) == list(range(400))


def test_a_loop_that_ends_while_its_tasks_wait_harms_no_other_loop(case):
    q = case.make(4)
    reader = case.consumer(q)

    async def give_up():
        task = asyncio.create_task(reader.aget())
        await is_waiting(task, q)

    asyncio.run(give_up())  # cancels the task and closes the loop

    async def main():
        task = asyncio.create_task(reader.aget())
        await is_waiting(task, q)
        q.put(case.item(1))
        return case.number(await task)

    assert run(main()) == 1


def test_threads_and_coroutines_share_a_queue(case):
    q = case.make(4)
    reader = case.consumer(q)
    producer = threading.Thread(target=lambda: [q.put(case.item(i)) for i in range(500)])
    producer.start()

    async def main():
        return [case.number(await reader.aget(timeout=PATIENCE_SECONDS)) for _ in range(500)]

    assert run(main()) == list(range(500))
    producer.join(PATIENCE_SECONDS)


def test_the_helper_thread_ends_when_nobody_waits(case):
    async def main():
        q = case.make(2)
        with pytest.raises(queueduct.Empty):
            await case.consumer(q).aget(timeout=0.01)

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
