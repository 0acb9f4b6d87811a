"""async for, aget_many, aput_many, alease, atake, aloan, aview: a cancelled call has taken nothing and lost nothing."""

from __future__ import annotations

import asyncio

import pytest

import queueduct
from queueduct import BoundedQueue, EventQueue, OverwritingQueue, QueueClosed, ShutDown, SlotQueue
from tests.contract.test_asyncio import is_waiting, outcomes, run, turns
from tests.support.cases import CASES, EACH_ONCE, LOCAL, PLAIN
from tests.support.deadline import PATIENCE_SECONDS

ROWS = [*PLAIN, "bounded, records", "growing, pickled objects", "slots, records", "events, records"]


@pytest.fixture(params=ROWS)
def case(request):
    return CASES[request.param]


@pytest.fixture(params=[name for name in ROWS if name in EACH_ONCE and name not in LOCAL])
def leased(request):
    """A row with leases."""
    return CASES[request.param]


def test_async_for_ends_when_the_queue_is_shut_down_and_empty(case):
    async def main():
        q = case.make(4)
        reader = case.consumer(q)

        async def produce():
            for number in range(20):
                await q.aput(case.item(number))
            q.shutdown()

        task = asyncio.create_task(produce())
        got = [case.number(item) async for item in reader]
        await task
        return got

    assert run(main()) == list(range(20))


def test_a_batch_is_put_and_got_while_the_loop_goes_on(case):
    async def main():
        q = case.make(8)
        reader = case.consumer(q)
        task = asyncio.create_task(reader.aget_many(100))
        await is_waiting(task, q)
        putting = asyncio.create_task(q.aput_many(case.items(*range(50))))
        got = case.numbers(await task)
        while len(got) < 50:
            got += case.numbers(await reader.aget_many(7, timeout=PATIENCE_SECONDS))
        return got, await putting

    assert run(main()) == (list(range(50)), 50)


def test_a_batch_that_does_not_fit_says_how_many_are_in(case):
    async def main():
        q = case.make(2)
        reader = case.consumer(q)
        count = case.fill(q)
        with pytest.raises(queueduct.Full):
            await q.aput_many(case.items(1, 2), timeout=0.01)
        while reader.try_get() is not None:
            pass
        put = await q.aput_many(case.items(*range(count + 5)), timeout=0.05)
        assert 1 <= put < count + 5
        assert case.numbers(reader.get_many(count + 5)) == list(range(put))
        with pytest.raises(queueduct.Empty):
            await reader.aget_many(5, timeout=0.01)
        with pytest.raises(ValueError, match="max_items must be at least 1"):
            await reader.aget_many(0)
        assert await q.aput_many([]) == 0

    run(main())


def test_a_cancelled_batch_stays_put_and_says_how_many(case):
    async def main():
        q = case.make(2)
        reader = case.consumer(q)
        task = asyncio.create_task(q.aput_many(case.items(*range(5000))))
        await is_waiting(task, q)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        got = []
        while (item := reader.try_get()) is not None:
            got.append(case.number(item))
        assert got == list(range(len(got)))
        assert caught.value.__notes__ == [f"aput_many was cancelled: {len(got)} of 5000 items are in the queue"]

    run(main())


def test_an_item_that_is_refused_keeps_the_whole_batch_out():
    async def main():
        q = BoundedQueue.create("q", 4)
        with pytest.raises(TypeError, match="bytes, not str"):
            await q.aput_many([b"1", "text"])
        assert q.empty()

    run(main())


def test_a_cancelled_aget_many_has_taken_nothing(case):
    async def main():
        q = case.make(4)
        reader = case.consumer(q)
        for round_ in range(30):
            task = asyncio.create_task(reader.aget_many(10))
            await turns(round_ % 7)
            q.put_many(case.items(round_, round_ + 1))
            await turns(round_ % 5)
            task.cancel()
            try:
                got = case.numbers(await task)
            except asyncio.CancelledError:
                got = []
            if len(got) < 2:
                got += case.numbers(reader.get_many(10))
            assert got == [round_, round_ + 1]

    run(main())


def test_alease_is_awaited_or_entered(leased):
    async def main():
        q = leased.make(4)
        task = asyncio.ensure_future(asyncio.wait_for(q.alease(2), PATIENCE_SECONDS))
        await is_waiting(task, q)
        q.put(leased.item(1))
        lease = await task
        assert leased.numbers(lease.items) == [1]
        lease.give_back()
        async with q.alease(2) as again:
            assert leased.numbers(again.items) == [1]
            assert q.stats().leased == 1
        assert q.empty()
        assert q.stats().leased == 0
        with pytest.raises(queueduct.Empty):
            await q.alease(1, timeout=0)

    run(main())


def test_an_exception_or_a_cancellation_inside_gives_the_lease_back(leased):
    async def main():
        q = leased.make(4)
        q.put(leased.item(1))
        with pytest.raises(KeyError):
            async with q.alease(1):
                raise KeyError

        async def hold():
            async with q.alease(1):
                await asyncio.Event().wait()

        task = asyncio.create_task(hold())
        while q.stats().leased == 0:
            await turns(1)
        task.cancel()
        assert await outcomes([task]) == [asyncio.CancelledError]
        assert q.stats().leased == 0
        return leased.number(q.get())

    assert run(main()) == 1


def test_a_cancelled_alease_holds_nothing(leased):
    async def main():
        q = leased.make(4)
        for round_ in range(30):
            task = asyncio.ensure_future(asyncio.wait_for(q.alease(1), PATIENCE_SECONDS))
            await turns(round_ % 7)
            q.put(leased.item(round_))
            await turns(round_ % 5)
            task.cancel()
            try:
                lease = await task
                assert leased.numbers(lease.items) == [round_]
                lease.release()
            except asyncio.CancelledError:
                assert leased.number(q.get(timeout=PATIENCE_SECONDS)) == round_
            assert q.stats().leased == 0

    run(main())


def test_a_queue_without_a_name_has_no_lease_to_await():
    async def main():
        with pytest.raises(ValueError, match="has no leases"):
            BoundedQueue(4).alease(1)

    run(main())


@pytest.mark.parametrize("end", ["shutdown", "close"])
def test_all_who_wait_are_told_of_the_end(case, end):
    async def main():
        q = case.make(2)
        reader = case.consumer(q)
        tasks = [asyncio.create_task(case.consumer(q).aget_many(3)), asyncio.create_task(anext(case.consumer(q)))]
        if hasattr(q, "lease") and q.name is not None:
            tasks.append(asyncio.ensure_future(asyncio.wait_for(q.alease(1), PATIENCE_SECONDS)))
        await is_waiting(tasks[-1], q)
        getattr(q, end)()
        expected = ShutDown if end == "shutdown" else QueueClosed
        of_next = StopAsyncIteration if end == "shutdown" else QueueClosed
        assert await outcomes(tasks) == [expected, of_next, expected][: len(tasks)]
        del reader

    run(main())


def test_slots_are_loaned_and_taken_while_the_loop_goes_on():
    async def main():
        q = SlotQueue.create("q", 2, slot_bytes=16)

        async def produce():
            for number in range(20):
                async with q.aloan(length=1) as slot:
                    slot.view[0] = number

        task = asyncio.create_task(produce())
        got = []
        for _ in range(20):
            async with q.atake(timeout=PATIENCE_SECONDS) as slot:
                got.append(slot.view[0])
        await task
        with pytest.raises(queueduct.Empty):
            await q.atake(timeout=0.01)
        slots = [await q.aloan(), await q.aloan()]
        with pytest.raises(queueduct.Full):
            await q.aloan(timeout=0.01)
        with pytest.raises(ValueError, match="length must not be negative"):
            await q.aloan(length=-1)
        for slot in slots:
            slot.cancel()
        return got

    assert run(main()) == list(range(20))


def test_options_of_put_pass_through():
    async def main():
        slots = SlotQueue.create("slots", 1, item="i8")
        assert await slots.aput(1) is None
        assert await slots.aput(2, overwrite=True) == 1
        latest = OverwritingQueue.create("latest", 2, item="i8")
        assert await latest.aput_many(range(5)) == 5
        with pytest.raises(queueduct.Full):
            await latest.aput_many([6], timeout=0, overwrite=False)
        return list(await latest.aget_many(5)), latest.stats().overwritten

    assert run(main()) == ([3, 4], 3)


def test_aview_waits_and_moves_past_what_it_has_shown():
    async def main():
        q = EventQueue.create("q", item="i8")
        reader = q.subscribe(start="earliest")
        with pytest.raises(queueduct.Empty):
            async with reader.aview(timeout=0.01):
                pass

        async def read():
            async with reader.aview(10) as array:
                return array.tolist()

        for round_ in range(20):
            task = asyncio.create_task(read())
            await turns(round_ % 7)
            q.put(round_)
            await turns(round_ % 5)
            task.cancel()
            try:
                got = await task
            except asyncio.CancelledError:
                got = [reader.get_nowait()]
            assert got == [round_]
        q.shutdown()
        with pytest.raises(ShutDown):
            async with reader.aview():
                pass

    run(main())


def test_a_child_of_a_fork_has_waiters_of_its_own(leased, children):
    """The parent's coroutine waits meanwhile, and gets its item afterwards."""

    async def main():
        q = leased.make(4)
        task = asyncio.create_task(q.aget_many(5))
        await is_waiting(task, q)

        def in_child():
            async def child():
                waiting = asyncio.ensure_future(asyncio.wait_for(q.alease(1), PATIENCE_SECONDS))
                await is_waiting(waiting, q)
                waiting.cancel()
                assert await outcomes([waiting]) == [asyncio.CancelledError]

            asyncio.events._set_running_loop(None)
            run(child())

        assert children.wait(children.fork(in_child)) == 0
        q.put(leased.item(1))
        return leased.numbers(await task)

    assert run(main()) == [1]
