"""max_bytes: what a put does when the log is full, and that nobody waits for room that is there."""

from __future__ import annotations

import threading
import time

import pytest

import queueduct
from queueduct import DataLost, EventQueue, Full
from tests.support.deadline import until, until_parked
from tests.support.ticks import drain, fill, numbers


def make(on_full, local=False, **how):
    if local:
        return EventQueue(max_bytes=8192, on_full=on_full)
    return EventQueue.create("q", item="<u8", max_bytes=8192, on_full=on_full, **how)


@pytest.fixture(params=["named", "local"])
def local(request):
    return request.param == "local"


@pytest.mark.parametrize("on_full", ["wait", "raise"])
@pytest.mark.parametrize("reader", [None, "ephemeral", "durable", "durable, not held"])
def test_a_full_log_takes_no_more(on_full, reader, local):
    with make(on_full, local) as q:
        held = q.subscribe("d" if reader and "durable" in reader else None) if reader else None
        if reader == "durable, not held":
            held.close()
        end = fill(q)
        assert 800 <= end <= 1024
        assert q.stats().used_bytes <= q.stats().max_bytes == q.capacity == 8192
        for call in (
            lambda: q.put(1, block=False),
            lambda: q.put(1, timeout=0.01),
            lambda: q.put_nowait(1),
            lambda: q.put_many([1, 2], timeout=0.01),
        ):
            with pytest.raises(Full):
                call()
        assert (q.earliest, q.end) == (0, end)


def test_raise_raises_at_once_even_with_time_to_wait(local):
    with make("raise", local) as q:
        fill(q)
        start = time.monotonic()
        with pytest.raises(Full):
            q.put(1)
        with pytest.raises(Full):
            q.put(1, timeout=60)
        assert time.monotonic() - start < 10


def test_put_many_puts_what_fits(local):
    with make("raise", local) as q:
        count = q.put_many(list(range(5000)))
        assert 800 <= count <= 1024
        assert list(q.read(0, count)) == list(range(count))
        with pytest.raises(Full):
            q.put_many([1])


def test_wait_waits_for_the_slowest_reader(local):
    with make("wait", local) as q:
        fast, slow = q.subscribe(), q.subscribe()
        end = fill(q)
        drain(fast)
        assert fast.try_get() is None
        writer = threading.Thread(target=q.put, args=(end,))
        writer.start()
        until_parked(writer)
        while writer.is_alive():
            slow.try_get()  # never waits: the writer may have put, and not have ended yet
        writer.join(30)
        assert fast.get() == end


def test_wait_waits_for_a_commit_of_a_durable_reader(local):
    with make("wait", local) as q:
        reader = q.subscribe("d")
        end = fill(q)
        drain(reader)
        writer = threading.Thread(target=q.put, args=(end,))
        writer.start()
        until_parked(writer)
        assert writer.is_alive()
        reader.commit()
        writer.join(30)
        assert reader.get() == end


@pytest.mark.parametrize("how", ["close", "unsubscribe", "keep_last", "shutdown", "close the queue"])
def test_a_waiting_put_is_woken_by_whatever_makes_room_or_ends_it(local, how):
    with make("wait", local) as q:
        reader = q.subscribe("d" if how == "unsubscribe" else None)
        other = q.subscribe()
        end = fill(q)
        drain(other)
        assert other.try_get() is None
        outcome = []

        def put():
            try:
                outcome.append(q.put(end))
            except (queueduct.ShutDown, queueduct.QueueClosed) as error:
                outcome.append(type(error))

        writer = threading.Thread(target=put)
        writer.start()
        until_parked(writer)
        reader.close() if how in ("close", "unsubscribe") else None
        {
            "close": lambda: None,
            "unsubscribe": lambda: q.unsubscribe("d"),
            "keep_last": lambda: (q.keep_last(1), reader.try_get()),
            "shutdown": q.shutdown,
            "close the queue": q.close,
        }[how]()
        writer.join(30)
        assert outcome == [{"shutdown": queueduct.ShutDown, "close the queue": queueduct.QueueClosed}.get(how)]


@pytest.mark.parametrize("kind", ["ephemeral", "durable"])
@pytest.mark.parametrize("first_items", [1, 4, 64])
def test_nobody_waits_for_ever_when_everything_was_read(kind, first_items):
    """One thread writes and reads in turns, at every fill of a log that is as small as can be."""
    with EventQueue.create("q", item="<u8", max_bytes=2 * (first_items * 8 + 8), first_items=first_items) as q:
        reader = q.subscribe("d" if kind == "durable" else None)
        for i in range(1000):
            q.put(i, timeout=10)
            assert reader.get() == i
            if kind == "durable":
                reader.commit()


def test_nobody_waits_for_ever_between_threads_with_the_smallest_log():
    with EventQueue.create("q", max_bytes=1000, item_bytes=50) as q:
        readers = [q.subscribe() for _ in range(3)]
        items = [b"x" * (i * 37 % 400) for i in range(2000)]
        got = [[] for _ in readers]
        threads = [
            threading.Thread(target=lambda r=reader, mine=mine: mine.extend(r))
            for reader, mine in zip(readers, got, strict=True)
        ]
        for thread in threads:
            thread.start()
        for each in items:
            q.put(each, timeout=30)
        q.shutdown()
        for thread in threads:
            thread.join(30)
        assert got == [items] * 3


def test_drop_slowest_drops_the_reader_that_is_furthest_behind(local):
    with make("drop_slowest", local) as q:
        slow, fast = q.subscribe(), q.subscribe()
        for i in range(5000):
            q.put(i)
            if i % 100 == 0:
                drain(fast)
        assert q.stats().readers_dropped == 1
        assert [each.is_dropped for each in q.readers()] == [True, False]
        assert drain(fast)[-1] == 4999
        with pytest.raises(DataLost, match=r"was dropped as the slowest.*wanted=0, earliest=\d+; it goes on") as caught:
            slow.get()
        assert (caught.value.wanted, caught.value.earliest) == (0, q.earliest)
        assert slow.position == q.earliest
        assert drain(slow) == list(range(caught.value.earliest, 5000))
        assert not any(each.is_dropped for each in q.readers())


CALLS = {
    "get": lambda r: r.get(),
    "try_get": lambda r: r.try_get(),
    "get_many": lambda r: r.get_many(5),
    "next": lambda r: next(r),
    "view": lambda r: r.view().__enter__(),
    "commit": lambda r: r.commit(1),
}


@pytest.mark.parametrize("kind", ["ephemeral", "durable"])
@pytest.mark.parametrize("call", list(CALLS))
def test_every_call_of_a_dropped_reader_tells_it_once_and_goes_on(kind, call):
    if call == "commit" and kind == "ephemeral":
        pytest.skip("only durable readers commit")
    with make("drop_slowest") as q:
        reader = q.subscribe("d" if kind == "durable" else None)
        q.put_many(numbers(5000))
        with pytest.raises(DataLost) as caught:
            CALLS[call](reader)
        assert caught.value.wanted == 0
        earliest = caught.value.earliest
        assert (reader.position, reader.committed) == (earliest, earliest)
        assert drain(reader) == list(range(earliest, 5000))


def test_a_durable_reader_dropped_while_away_is_told_on_its_return():
    with make("drop_slowest") as q:
        q.subscribe("d").close()
        q.put_many(numbers(5000))
        assert q.readers()[0].is_dropped
        reader = q.subscribe("d")
        with pytest.raises(DataLost) as caught:
            reader.get()
        assert (caught.value.wanted, caught.value.earliest) == (0, q.earliest)
        assert reader.get() == q.earliest


def test_a_reader_that_has_read_what_is_gone_has_lost_nothing():
    """Its place is behind what it has read; dropped or not, it goes on where it is, and sees nothing twice."""
    with make("drop_slowest") as q:
        reader, durable = q.subscribe(), q.subscribe("d")
        expected = 0
        for i in range(10_000):
            q.put(i)
            if i % 200 == 0:
                for each in (reader, durable):
                    assert drain(each) == list(range(expected, i + 1))
                expected = i + 1
        assert q.stats().readers_dropped > 0
        assert drain(durable)[-1] == 9999


def test_drop_slowest_without_a_reader_drops_the_oldest(local):
    with make("drop_slowest", local) as q:
        for i in range(5000):
            q.put(i)
        assert q.stats().readers_dropped == 0
        assert q.earliest > 0
        assert q.end == 5000
        assert list(q.read(q.earliest, 5000)) == list(range(q.earliest, 5000))
        assert 5000 - q.earliest > 700


def test_drop_slowest_never_makes_a_writer_wait(local):
    with make("drop_slowest", local) as q:
        readers = [q.subscribe() for _ in range(5)]
        for _ in range(20):
            assert q.put_many(list(range(3000)), block=False) == 3000
        for reader in readers:
            with pytest.raises(DataLost):
                reader.get()
        assert q.stats().used_bytes <= 8192


def test_dropped_readers_get_whole_items_and_know_what_they_lost(children):
    """Allowed: items that rise by one, or DataLost that names exactly the gap."""
    with EventQueue.create("q", item=[("n", "<u8"), ("m", "<u8", 15)], max_bytes=1 << 16, on_full="drop_slowest") as q:
        writer = children.start(
            """
import numpy as np, queueduct
q = queueduct.open("q")
for first in range(0, 200_000, 50):
    batch = np.empty(50, dtype=q.item)
    batch["n"] = np.arange(first, first + 50)
    batch["m"] = batch["n"][:, None]
    q.put_many(batch)
q.shutdown()
"""
        )
        reader = q.subscribe(start="earliest")
        following = lost = 0
        while True:
            try:
                batch = reader.get_many(37)
            except DataLost as error:
                assert error.wanted == following < error.earliest
                following = error.earliest
                lost += 1
                continue
            except queueduct.ShutDown:
                break
            assert (batch["n"] == numbers(len(batch), following)).all()
            assert (batch["m"] == batch["n"][:, None]).all()
            following += len(batch)
            if lost < 5:
                until(lambda lost=lost: q.stats().readers_dropped > lost or q.is_shut_down, "a drop")
        assert following == 200_000
        assert lost > 0
        assert writer.wait(30) == 0


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"max_bytes": 0}, "max_bytes must be between"),
        ({"max_bytes": 10}, "max_bytes must be between 560, two chunks of 4 items"),
        ({"max_bytes": 2**60}, "max_bytes must be between"),
        ({"on_full": "drop"}, "on_full must be one of 'wait', 'raise', 'drop_slowest': on_full='drop'"),
        ({"first_items": 0}, "first_items must be between 1 and"),
        ({"item_bytes": 0}, "item_bytes must be between 1 and"),
        ({"chunk_bytes": 1}, "chunk_bytes must be between"),
        ({"readers": 0}, "readers must be between 1 and"),
        ({"readers": 2**12 + 1}, "readers must be between 1 and 4096"),
        ({"producers": -1}, "producers must be between 0 and"),
        ({"participants": 0}, "participants must be between 1 and"),
        ({"sync": "often"}, "sync must be one of 'always', 'interval', 'never': sync='often'"),
        ({"sync_interval": 0}, "sync_interval must be between"),
    ],
)
def test_sizes_and_policies_are_checked(how, message):
    with pytest.raises(ValueError, match=message):
        EventQueue.create("q", **how)
    assert queueduct.queues() == []
