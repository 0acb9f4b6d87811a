"""How a reader gets, beyond what every consumer does: through chunks, beside other readers, and beside its views."""

from __future__ import annotations

import asyncio
import threading

import pytest

import queueduct
from queueduct import EventQueue
from tests.support.deadline import until_parked
from tests.support.ticks import FORMS, numbers


@pytest.fixture(params=list(FORMS))
def form(request):
    return FORMS[request.param]


@pytest.fixture
def q():
    with EventQueue.create("q", item="<u8") as made:
        yield made


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
def test_the_limit_of_a_view_is_a_count(q, limit, error):
    with pytest.raises(error, match="max_items must"):
        q.subscribe().view(max_items=limit)


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


def test_a_put_in_another_process_wakes_a_reader(q, children):
    reader = q.subscribe()
    children.start("import queueduct; queueduct.open('q').put(9); input()")
    assert reader.get(timeout=30) == 9


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
