"""clear and keep_last: what is forgotten, who jumps when, and that nothing is freed under anybody."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import queueduct
from queueduct import EventQueue
from tests.support.ticks import FORMS, drain, fill, numbers


@pytest.fixture(params=list(FORMS))
def form(request):
    return FORMS[request.param]


def test_clear_forgets_everything_and_readers_go_on_with_what_comes_next(form):
    make, item, number = form
    with make() as q:
        behind, ahead = q.subscribe(), q.subscribe("durable")
        q.put_many([item(i) for i in range(50)])
        assert number(ahead.get()) == 0
        q.clear()
        assert (q.earliest, q.end, len(q)) == (50, 50, 0)
        assert behind.try_get() is None
        q.put(item(50))
        assert number(behind.get()) == number(ahead.get()) == 50
        assert behind.position == ahead.position == 51


def test_a_reader_left_behind_by_clear_starts_at_the_new_position(form):
    make, item, number = form
    with make() as q:
        reader = q.subscribe()
        q.put_many([item(i) for i in range(10)])
        q.clear()
        q.put_many([item(i) for i in range(10, 15)])
        assert [number(each) for each in drain(reader)] == list(range(10, 15))


def test_an_iteration_keeps_what_it_holds_and_then_jumps(form):
    make, item, number = form
    with make() as q:
        reader = q.subscribe()
        q.put_many([item(i) for i in range(30)])
        iteration = iter(reader)
        assert [number(next(iteration)) for _ in range(3)] == [0, 1, 2]
        q.clear()
        q.put_many([item(i) for i in range(30, 40)])
        assert [number(next(iteration)) for _ in range(37)] == list(range(3, 40))
        q.put_many([item(i) for i in range(40, 50)])
        q.clear()
        q.put(item(50))
        q.shutdown()
        assert [number(each) for each in iteration] == [50]


def test_no_memory_is_freed_under_a_view():
    with EventQueue.create("q", item="<u8", max_bytes=8192) as q:
        reader = q.subscribe()
        q.put_many(numbers(500))
        reader.get_many(200)
        with reader.view() as array:
            expected = array.copy()
            q.clear()
            fill(q, 10_000)
            assert (np.asarray(array) == expected).all()
        assert reader.get() == 10_000


def test_a_cleared_reader_frees_its_chunks_at_its_next_session():
    with EventQueue.create("q", item="<u8", max_bytes=8192, on_full="raise") as q:
        reader, durable = q.subscribe(), q.subscribe("d")
        fill(q)
        q.clear()
        assert reader.try_get() is None
        assert durable.try_get() is None
        assert durable.committed == q.end
        assert q.put_many(numbers(900)) == 900


def test_a_durable_reader_that_nobody_holds_keeps_nothing_back_after_a_clear():
    """It would jump at its next session, so what it has not read is of no use to anybody."""
    with EventQueue.create("q", item="<u8", max_bytes=8192, on_full="raise") as q:
        q.subscribe("d").close()
        end = fill(q)
        q.clear()
        assert q.put_many(numbers(900)) == 900
        assert q.readers()[0].committed == end
        assert q.subscribe("d").get() == 0


def test_a_durable_reader_that_was_killed_keeps_nothing_back_after_a_clear(children):
    with EventQueue.create("q", item="<u8", max_bytes=8192) as q:
        child = children.start(
            "import queueduct; q = queueduct.open('q'); r = q.subscribe('d'); print(1, flush=True); input()"
        )
        child.stdout.readline()
        fill(q)
        q.clear()
        assert not q.try_put(1)  # it might still be looking
        child.kill()
        child.wait(30)
        q.put(7, timeout=30)
        assert q.subscribe("d").get() == 7


def test_clear_wakes_a_writer_that_waits_for_room():
    with EventQueue.create("q", item="<u8", max_bytes=4096) as q:
        fill(q)
        writer = threading.Thread(target=q.put, args=(1,))
        writer.start()
        q.clear()
        writer.join(30)
        assert not writer.is_alive()
        assert list(q.read(q.earliest, q.end)) == [1]


def test_keep_last_keeps_the_last(form):
    make, item, number = form
    with make() as q:
        reader = q.subscribe()
        q.put_many([item(i) for i in range(100)])
        q.keep_last(7)
        assert (q.earliest, q.end, len(q)) == (93, 100, 7)
        assert [number(each) for each in drain(reader)] == list(range(93, 100))
        assert [number(each) for each in q.read(93, 100)] == list(range(93, 100))


@pytest.mark.parametrize("n", [100, 101, 10**6, 2**52, 2**70])
def test_keep_last_of_more_than_there_are_does_nothing(n):
    with EventQueue.create("q", item="<u8") as q:
        reader = q.subscribe()
        q.put_many(numbers(100))
        q.keep_last(n)
        assert q.earliest == 0
        assert drain(reader) == list(range(100))


def test_keep_last_of_nothing_clears():
    with EventQueue.create("q", item="<u8") as q:
        reader = q.subscribe()
        q.put_many(numbers(100))
        q.keep_last(0)
        assert (q.earliest, len(q)) == (100, 0)
        assert reader.try_get() is None


def test_keep_last_never_brings_anything_back():
    with EventQueue.create("q", item="<u8") as q:
        q.put_many(numbers(100))
        q.keep_last(10)
        q.keep_last(50)
        assert q.earliest == 90
        with pytest.raises(queueduct.DataLost):
            q.read(89, 100)


@pytest.mark.parametrize(("n", "error"), [(-1, ValueError), (1.0, TypeError), ("1", TypeError), (True, TypeError)])
def test_keep_last_takes_a_count(n, error):
    with EventQueue.create("q") as q, pytest.raises(error, match="n must"):
        q.keep_last(n)


def test_keep_last_frees_chunks():
    with EventQueue.create("q", item="<u8") as q:
        q.put_many(numbers(10_000))
        before = q.stats()
        q.keep_last(10)
        after = q.stats()
        assert len(after.chunk_items) < len(before.chunk_items)
        assert after.used_bytes < before.used_bytes


def many_chunks(max_bytes=16 << 20):
    """A log of thousands of chunks, 512 numbers each."""
    q = EventQueue.create("q", item="<u8", max_bytes=max_bytes, chunk_bytes=4096)
    q.put_many(numbers(max_bytes // 8 - 4096))
    return q


def test_keep_last_works_with_thousands_of_chunks():
    with many_chunks() as q:
        reader = q.subscribe(start="earliest")
        end = q.end
        assert len(q.stats().chunk_items) > 4000
        q.keep_last(1_000_000)
        assert list(reader.get_many(3)) == [end - 1_000_000, end - 999_999, end - 999_998]
        q.keep_last(1000)
        assert drain(reader) == list(range(end - 1000, end))
        q.put_many(numbers(1000))
        assert len(q.stats().chunk_items) <= 6


def test_clear_works_with_thousands_of_chunks_and_readers_in_mid_iteration():
    with many_chunks() as q:
        readers = [q.subscribe(start=place) for place in (0, 1000, 500_000, 1_500_000)]
        iterations = [iter(reader) for reader in readers]
        held = [[next(iteration) for _ in range(5)] for iteration in iterations]
        end = q.end
        q.clear()
        for place, iteration, seen in zip((0, 1000, 500_000, 1_500_000), iterations, held, strict=True):
            seen += [next(iteration) for _ in range(2000)]
            assert seen == list(range(place, place + 2005))
        q.put_many(numbers(10, 7))
        for reader in readers:
            assert list(reader.get_many(100)) == list(range(7, 17))
            assert reader.position == end + 10
        q.put_many(numbers(1000))
        assert len(q.stats().chunk_items) <= 8


def test_keep_last_works_with_thousands_of_chunks_and_readers_in_mid_iteration():
    with many_chunks() as q:
        end = q.end
        places = (0, 700_000, end - 5000)
        readers = [q.subscribe(start=place) for place in places]
        iterations = [iter(reader) for reader in readers]
        for place, iteration in zip(places, iterations, strict=True):
            assert next(iteration) == place
        q.keep_last(3000)
        for place, iteration in zip(places, iterations, strict=True):
            assert next(iteration) == place + 1
        for reader in readers:
            assert drain(reader) == list(range(end - 3000, end))


def test_clears_by_the_thousand_leave_a_reader_where_it_belongs():
    """The epoch has 11 bits and wraps; the position decides."""
    with EventQueue.create("q", item="<u8") as q:
        reader, lazy = q.subscribe(), q.subscribe()
        for i in range(5000):
            q.put(i)
            q.clear()
            q.put(i)
            assert reader.get() == i
        assert lazy.get() == 4999
        assert q.end == 10_000


def test_readers_and_clears_race_without_harm():
    """Allowed: a reader misses what was cleared before it came; what it gets is whole and rises."""
    with EventQueue.create("q", item="<u8", max_bytes=1 << 16) as q:
        stop = threading.Event()
        readers = [q.subscribe() for _ in range(3)]
        failures = []

        def read(reader):
            last = -1
            while not stop.is_set():
                batch = list(reader.get_many(100, timeout=30))
                if batch != list(range(batch[0], batch[-1] + 1)) and batch != sorted(batch):
                    failures.append(batch)
                if batch[0] <= last:
                    failures.append((last, batch))
                last = batch[-1]

        threads = [threading.Thread(target=read, args=(reader,)) for reader in readers]
        for thread in threads:
            thread.start()
        for i in range(400):
            q.put_many(numbers(50, 50 * i))
            (q.clear if i % 2 else lambda: q.keep_last(20))()
        stop.set()
        q.put(10**9)
        for thread in threads:
            thread.join(30)
        assert failures == []
