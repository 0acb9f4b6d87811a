"""What participants count: sums over all lines only rise, whoever ends, is killed, or takes a line over."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import threading
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import queueduct
from tests.support.kinds import CLASSES

SIZES: dict[str, dict[str, Any]] = {
    "bounded": {"capacity": 16, "slot_bytes": 64},
    "growing": {"max_bytes": 1 << 20, "slot_bytes": 64},
    "events": {"max_bytes": 1 << 20},
    "overwriting": {"capacity": 16, "message_bytes": 64},
    "slots": {"capacity": 16, "slot_bytes": 64},
}
QUEUES = [kind for kind in SIZES if kind != "events"]


def make(kind: str, item: Any = bytes, **sizes: Any) -> Any:
    return CLASSES[kind].create("q", item=item, **(SIZES[kind] | sizes))


@pytest.fixture(params=list(SIZES))
def q(request: pytest.FixtureRequest) -> Iterator[Any]:
    with make(request.param) as made:
        yield made


def consumer_of(q: Any) -> Any:
    return q.subscribe(start="earliest") if q.kind == "events" else q


def counted(q: Any) -> tuple[int, int, int, int]:
    said = q.stats()
    return said.items_put, said.bytes_put, said.items_got, said.bytes_got


def killed(work: Any) -> None:
    """Runs in a child that is then killed."""
    if (child := os.fork()) == 0:
        with contextlib.suppress(BaseException):
            work()
            os.kill(os.getpid(), signal.SIGKILL)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def test_one_a_call_and_batches_count_alike(q: Any) -> None:
    item = bytes(64)
    consumer = consumer_of(q)
    q.put(item)
    assert q.try_put(item)
    q.put_many([item] * 5)
    assert counted(q) == (7, 7 * 64, 0, 0)
    consumer.get()
    assert consumer.try_get() == item
    assert len(consumer.get_many(4)) == 4
    assert counted(q) == (7, 7 * 64, 6, 6 * 64)
    assert consumer.try_get() is not None
    assert consumer.try_get() is None
    assert counted(q) == (7, 7 * 64, 7, 7 * 64)


@pytest.mark.parametrize("kind", list(SIZES))
def test_records_and_pickles_count_their_bytes_in_the_queue(kind: str) -> None:
    records = numpy.zeros(6, "i8,i8")
    record_bytes = 16
    with make(kind, item=records.dtype, **({"slot_bytes": None} if "slot_bytes" in SIZES[kind] else {}),
              **({"message_bytes": None} if kind == "overwriting" else {})) as q:  # fmt: skip
        consumer = consumer_of(q)
        q.put(records[0])
        q.put_many(records[1:])
        consumer.get()
        consumer.get_many(3)
        assert counted(q) == (6, 6 * record_bytes, 4, 4 * record_bytes)
        q.unlink()
    with make(kind, item=object) as q:
        consumer = consumer_of(q)
        q.put_many(["a", "b", "c"])
        assert (consumer.get(), consumer.get_many(9)) == ("a", ["b", "c"])
        length = 64 if kind == "overwriting" else len(pickle.dumps("a", 5))
        assert counted(q) == (3, 3 * length, 3, 3 * length)


@pytest.mark.parametrize("q", QUEUES, indirect=True)
def test_a_leased_item_counts_as_got_once_at_its_release(q: Any) -> None:
    q.put_many([bytes(64)] * 6)
    lease = q.lease(4)
    assert q.stats().items_got == 0
    lease.release(1)
    assert counted(q)[2:] == (1, 64)
    with q.lease(3) as again:
        assert again.is_redelivered
        assert q.stats().items_got == 1
    assert counted(q)[2:] == (4, 4 * 64)


def test_slots_count_by_whichever_thread_ends_them() -> None:
    with make("slots") as q:
        with q.loan(length=10):
            assert q.stats().items_put == 0
        loan = q.loan(length=20)
        thread = threading.Thread(target=loan.publish)  # a thread without a line
        thread.start()
        thread.join()
        assert counted(q)[:2] == (2, 30)
        q.loan().cancel()
        taken, other = q.take(), q.take()
        taken.give_back()
        thread = threading.Thread(target=other.release)
        thread.start()
        thread.join()
        assert counted(q) == (2, 30, 1, 20)
        with q.take() as again:
            assert again.is_redelivered
        assert counted(q) == (2, 30, 2, 30)
        for _ in range(20):
            q.put(b"x", overwrite=True)
        assert q.stats().items_put == 22
        assert q.stats().items_got == 2, "an evicted item is never got"


@pytest.mark.parametrize("q", ["bounded", "growing", "events", "slots"], indirect=True)
def test_a_repeated_put_once_counts_its_items_once(q: Any) -> None:
    for _ in range(3):
        q.put_once([b"a", b"bb"], "feed", 1)
    assert counted(q)[:2] == (2, 3)


def test_a_view_counts_what_it_has_moved_past() -> None:
    with make("events", item="i8") as q, q.subscribe(start="earliest") as reader:
        q.put_many(range(10))
        with reader.view(4) as view:
            assert len(view) == 4
            assert q.stats().items_got == 0
        assert counted(q) == (10, 80, 4, 32)


def test_two_readers_of_a_log_count_both(q: Any) -> None:
    if q.kind != "events":
        pytest.skip("a queue has one consumer an item")
    q.put_many([b"abc"] * 5)
    for _ in range(2):
        with q.subscribe(start="earliest") as reader:
            reader.get_many(5)
    assert counted(q) == (5, 15, 10, 30)


def test_counts_outlive_killed_processes_and_the_reuse_of_their_lines(q: Any) -> None:
    def work() -> None:
        consumer = consumer_of(q)
        for _ in range(5):
            q.put(bytes(64))
            consumer.get()

    for generation in range(1, 6):
        killed(work)
        if q.kind == "events":  # every reader began at the earliest
            assert q.stats().items_put == 5 * generation
            assert q.stats().items_got >= 5 * generation
        else:
            assert counted(q) == (5 * generation, 320 * generation, 5 * generation, 320 * generation)
    assert q.stats().participants == 0


def test_a_thousand_short_threads_count_everything(q: Any) -> None:
    consumer = None if q.kind == "events" else q

    def work() -> None:
        q.put(bytes(64))
        if consumer is not None:
            consumer.get()

    for _ in range(100):
        threads = [threading.Thread(target=work) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    got = 0 if consumer is None else 1000
    assert counted(q) == (1000, 64000, got, 64 * got)


@pytest.mark.parametrize("kind", list(SIZES))
def test_a_call_that_waits_counts_once_and_its_time(kind: str) -> None:
    with make(kind) as q:
        consumer = consumer_of(q)
        with pytest.raises(queueduct.Empty):
            consumer.get(timeout=0.25)  # longer than one sleep
        said = q.stats()
        assert (said.waits_for_room, said.waits_for_items) == (0, 1)
        assert 0.2 < said.waited_seconds < 5
        consumer.try_get()
        assert q.stats()[-3:] == said[-3:], "a call that never waits counts no wait"
        if kind in ("bounded", "slots"):
            q.put_many([b"x"] * 16)
            with pytest.raises(queueduct.Full):
                q.put(b"x", timeout=0.25)
            assert (q.stats().waits_for_room, q.stats().waits_for_items) == (1, 1)
            assert q.stats().waited_seconds > said.waited_seconds + 0.2


def test_queues_without_a_name_count_items() -> None:
    for q in (queueduct.BoundedQueue(64), queueduct.GrowingQueue(), queueduct.EventQueue(max_bytes=1 << 20)):
        consumer = q.subscribe() if isinstance(q, queueduct.EventQueue) else q
        for _ in range(3):
            q.put_many([object()] * 10)
            consumer.get_many(4)
        assert q.stats()[-7:-3] == (30, 0, 12, 0)
