"""GrowingQueue: what grows, what shrinks, what is refused."""

from __future__ import annotations

import gc
import os
import threading
import weakref

import numpy as np
import pytest

import queueduct
from queueduct import GrowingQueue

CALM = 6000


def make(**options):
    return GrowingQueue.create("q", **{"first_bytes": 256, "steps": 5, **options})


def resident(queue_dir):
    return os.stat(queue_dir / "q").st_blocks * 512


def test_sub_queues_have_four_times_the_size_of_the_one_before():
    with GrowingQueue.create("q") as q:
        assert [n * 64 for n in q.stats().level_slots] == [4096 * 4**i for i in range(11)]
        q.unlink()
    with make(item="<u4") as q:
        assert q.stats().level_slots == (64, 256, 1024, 4096, 16384)
        assert q.capacity == 64 + 256 + 1024 + 4096 + 16384


def test_nothing_is_lost_or_changes_places_across_every_boundary():
    with make() as q:
        total = q.capacity
        assert q.put_many([b"%d" % i for i in range(total + 5)], block=False) == total
        assert q.full()
        assert not q.try_put(b"x")
        assert (q.stats().read_level, q.stats().written_level) == (0, 4)
        assert len(q) == total
        assert [int(q.get()) for _ in range(total)] == list(range(total))
        assert q.stats().read_level == 4


@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_up_and_down_through_the_sizes(batch):
    with make(item="<u8") as q:
        put = got = 0
        for high in (3, 30, 300, 3000, 5000):
            while put - got < high:
                put += q.put_many(np.arange(put, put + min(batch, high), dtype="<u8"))
            while got < put:
                items = q.get_many(batch)
                assert items.tolist() == list(range(got, got + len(items)))
                got += len(items)
            for _ in range(CALM):
                q.put(put)
                put += 1
                assert q.get() == got
                got += 1
            assert (q.stats().read_level, q.stats().written_level) == (0, 0)
        assert q.stats().shrunk >= 3


def test_an_item_too_long_for_its_sub_queue_goes_to_the_next_that_holds_it():
    with make() as q:
        q.put(b"first")
        q.put(b"x" * 5000)
        assert q.stats().written_level == 3
        q.put(b"last")
        assert [q.get(), len(q.get()), q.get()] == [b"first", 5000, b"last"]


def test_an_item_longer_than_any_sub_queue_is_refused_at_once():
    with make() as q:
        with pytest.raises(ValueError, match=r"65537 bytes can never fit.*limit is 65536.*larger first_bytes, steps"):
            q.put(b"x" * 65537)
        with pytest.raises(ValueError, match="can never fit"):
            q.put_many([b"x", b"x" * 65537])
        assert q.empty()
        q.put(b"x" * 65536)
        assert len(q.get()) == 65536


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"first_bytes": 0}, "first_bytes must be between 1 and"),
        ({"steps": 0}, "steps must be between 1 and 16"),
        ({"steps": 17}, "steps must be between 1 and 16"),
        ({"max_bytes": 1000}, "max_bytes must be at least .* raise it"),
        ({"max_bytes": 0}, "max_bytes must be at least 1"),
        ({"first_bytes": 1 << 32, "steps": 16}, "must be at most"),
    ],
)
def test_sizes_that_cannot_be_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


def test_what_stats_say_adds_up():
    with make(item="<u8", max_bytes=1 << 20) as q:
        put = 0
        for count in (5, 100, 3000):
            q.put_many(np.arange(count, dtype="<u8"))
            put += count
            stats = q.stats()
            assert stats.size == count
            assert stats.push_position == put + stats.grown + stats.shrunk
            with q.lease(3):
                assert q.stats().size == count - 3
            while not q.empty():
                q.get_many(1000)
            for _ in range(CALM):
                q.put(0)
                q.get()
            put += CALM
            stats = q.stats()
            assert stats.push_position == put + stats.grown + stats.shrunk
            assert stats.resident_bytes <= stats.reserved_bytes <= stats.max_bytes == 1 << 20
            assert (stats.size, stats.tombstones, stats.redelivered) == (0, 0, 0)
        assert stats.grown > stats.shrunk > 0


def test_put_once_puts_once_through_all_sizes():
    with make(item="<u8") as q:
        assert q.put_once(np.arange(700, dtype="<u8"), "p", 1) == 700
        assert q.put_once(np.arange(700, dtype="<u8"), "p", 1) == 0
        assert q.get_many(1000).tolist() == list(range(32))  # what one sub-queue has
        assert [tuple(each) for each in q.producers()] == [("p", 1, 700, 700)]
        q.forget_producer("p")
        assert q.producers() == []


def test_a_waiting_getter_is_woken_across_a_boundary():
    with make() as q:
        got = []
        getter = threading.Thread(target=lambda: got.extend(q.get() for _ in range(100)))
        getter.start()
        for i in range(100):
            q.put(b"%d" % i)
        getter.join(30)
        assert [int(item) for item in got] == list(range(100))


# -- memory ---------------------------------------------------------------------------------------------


def test_an_empty_queue_is_small(queue_dir):
    with GrowingQueue.create("q"):
        assert resident(queue_dir) < 64 << 10


def test_memory_follows_what_is_in_it(queue_dir):
    with GrowingQueue.create("q", item="<u8") as q:
        before = resident(queue_dir)
        count = 2_000_000
        q.put_many(np.arange(count, dtype="<u8"))
        assert resident(queue_dir) > 16 * count
        got = 0
        while got < count:
            got += len(q.get_many(50_000))
        for _ in range(CALM):
            q.put(1)
            q.get()
        assert resident(queue_dir) == before
        assert q.stats().resident_bytes == before


def test_a_first_sub_queue_of_any_size_is_used_again():
    """It is zeroed in steps, of which this one needs two."""
    with GrowingQueue.create("q", item="<u8", first_bytes=8 << 20, steps=2) as q:
        count = q.stats().level_slots[0] + 1000
        for _ in range(2):
            assert q.put_many(np.arange(count, dtype="<u8"), block=False) == count
            got = 0
            while got < count:
                got += len(q.get_many(200_000, timeout=0))
            for _ in range(CALM):
                q.put(1)
                q.get()
            assert q.stats().written_level == 0


@pytest.mark.parametrize("slack", [0, 50_000, 300_000, 3_000_000])
def test_max_bytes_is_never_exceeded(queue_dir, slack):
    with GrowingQueue.create("q", max_bytes=70_000 + slack) as q:
        put = got = 0
        for _ in range(4):
            while q.try_put(b"%d" % put):
                put += 1
                assert resident(queue_dir) <= 70_000 + slack
            with pytest.raises(queueduct.Full):
                q.put(b"x", timeout=0.01)
            assert put - got >= 64
            while got < put - 20:
                assert int(q.get()) == got
                got += 1
        assert (put - got) * 64 < slack + 8192
        while got < put:
            assert int(q.get()) == got
            got += 1


def test_an_item_that_the_budget_can_never_hold_is_refused():
    with GrowingQueue.create("q", max_bytes=200_000) as q:
        with pytest.raises(ValueError, match="can never fit"):
            q.put(b"x" * 200_000)
        q.put(b"x" * 60_000)
        assert len(q.get()) == 60_000


def test_a_put_that_waits_for_the_budget_goes_on_when_there_is_room():
    with GrowingQueue.create("q", max_bytes=100_000) as q:
        count = 0
        while q.try_put(b"x"):
            count += 1
        putter = threading.Thread(target=q.put, args=(b"last",))
        putter.start()
        for _ in range(count):
            assert q.get() == b"x"
        assert q.get(timeout=30) == b"last"
        putter.join(30)


# -- within a process -----------------------------------------------------------------------------------


def test_objects_pass_by_reference_and_without_a_bound():
    q = GrowingQueue()
    things = [object() for _ in range(100_000)]
    for thing in things:
        q.put(thing)
    assert len(q) == 100_000
    assert not q.full()
    assert all(q.get() is thing for thing in things)
    assert q.try_get() is None
    assert q.put_many(things) == 100_000
    got = []
    while len(got) < 100_000:
        got += q.get_many(70_000)
    assert all(a is b for a, b in zip(got, things, strict=True))


def test_a_queue_that_is_thrown_away_drops_what_it_holds():
    class Thing:
        pass

    q = GrowingQueue()
    things = [Thing() for _ in range(5000)]
    alive = weakref.WeakSet(things)
    q.put_many(things)
    assert q.get() is things[0]
    things.clear()
    assert len(alive) == 4999
    del q
    gc.collect()
    assert len(alive) == 0


def test_a_queue_within_itself_is_collected():
    class Thing:
        pass

    q = GrowingQueue()
    thing = Thing()
    alive = weakref.ref(thing)
    q.put((q, thing))
    del q, thing
    gc.collect()
    assert alive() is None


def test_an_immediate_shutdown_drops_what_is_held():
    q = GrowingQueue()
    for i in range(5000):
        q.put(i)
    q.shutdown(immediate=True)
    with pytest.raises(queueduct.ShutDown):
        q.get()
    with pytest.raises(queueduct.ShutDown):
        q.put(1)


def test_threads_hand_over_every_object_once():
    q = GrowingQueue()
    count, got = 20_000, [[], []]

    def produce(parity):
        for i in range(count):
            q.put(2 * i + parity)

    def consume(mine):
        mine.extend(q)

    producers = [threading.Thread(target=produce, args=(parity,)) for parity in range(2)]
    consumers = [threading.Thread(target=consume, args=(mine,)) for mine in got]
    for thread in producers + consumers:
        thread.start()
    for thread in producers:
        thread.join(60)
    q.shutdown()
    for thread in consumers:
        thread.join(60)
    assert sorted(got[0] + got[1]) == list(range(2 * count))
    for mine in got:
        assert [i for i in mine if i % 2] == sorted(i for i in mine if i % 2)
