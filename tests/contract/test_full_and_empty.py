"""Full and Empty say which queue it is, how full, how long the call waited, and what helps."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import pickle
import queue
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import queueduct
import queueduct.multiprocessing
import queueduct.queue
from queueduct import BoundedQueue, EventQueue, GrowingQueue, OverwritingQueue, QueueEmpty, QueueFull, SlotQueue


class Made(NamedTuple):
    """A queue that is full or empty, and its calls."""

    create: Callable[[], Any]
    says: str
    """What every call says, but for how long it waited."""
    calls: dict[str, Callable[[Any], object]]
    """Those that wait 20 ms at most, and those that do not wait."""


def viewing(reader: Any, **options: Any) -> object:
    with reader.view(**options) as array:
        return array


GETS: dict[str, Callable[[Any], object]] = {
    "get": lambda q: q.get(timeout=0.02),
    "get_nowait": lambda q: q.get_nowait(),
    "get_many": lambda q: q.get_many(3, timeout=0.02),
    "get_many_nowait": lambda q: q.get_many(3, False),
    "aget": lambda q: asyncio.run(q.aget(timeout=0.02)),
    "aget_many": lambda q: asyncio.run(q.aget_many(3, timeout=0.02)),
}
LEASES: dict[str, Callable[[Any], object]] = {
    "lease": lambda q: q.lease(3, timeout=0.02),
    "lease_nowait": lambda q: q.lease(3, False),
    "alease": lambda q: asyncio.run(waiting_for(q.alease(3, timeout=0.02))),
}
TAKES: dict[str, Callable[[Any], object]] = {
    "take": lambda q: q.take(0.02),
    "take_nowait": lambda q: q.take(0),
    "atake": lambda q: asyncio.run(waiting_for(q.atake(0.02))),
}
VIEWS: dict[str, Callable[[Any], object]] = {
    "view": lambda q: viewing(q, timeout=0.02),
    "view_nowait": lambda q: viewing(q, block=True, timeout=0),
    "aview": lambda q: asyncio.run(waiting_for(q.aview(timeout=0.02))),
}
LATEST: dict[str, Callable[[Any], object]] = {
    "latest": lambda q: q.latest(timeout=0.02),
    "latest_nowait": lambda q: q.latest(block=False),
    "alatest": lambda q: asyncio.run(q.alatest(timeout=0.02)),
}


async def waiting_for(borrowing: Any) -> object:
    return await borrowing


def puts(item: object, **options: Any) -> dict[str, Callable[[Any], object]]:
    return {
        "put": lambda q: q.put(item, timeout=0.02, **options),
        "put_nowait": lambda q: q.put_nowait(item, **options),
        "put_many": lambda q: q.put_many([item] * 3, timeout=0.02, **options),
        "put_many_nowait": lambda q: q.put_many([item] * 3, False, **options),
        "aput": lambda q: asyncio.run(q.aput(item, timeout=0.02, **options)),
        "aput_many": lambda q: asyncio.run(q.aput_many([item] * 3, timeout=0.02, **options)),
    }


def put_once(item: object) -> dict[str, Callable[[Any], object]]:
    return {"put_once": lambda q: q.put_once([item], "p{}", 1, timeout=0.02)}


LOANS: dict[str, Callable[[Any], object]] = {
    "loan": lambda q: q.loan(0.02),
    "loan_nowait": lambda q: q.loan(0),
    "aloan": lambda q: asyncio.run(waiting_for(q.aloan(0.02))),
    "put_overwriting": lambda q: q.put(b"x", timeout=0.02, overwrite=True),
}

EMPTY = {
    "bounded": Made(lambda: BoundedQueue.create("q", 4), "the queue 'q' is empty", {**GETS, **LEASES}),
    "objects": Made(lambda: BoundedQueue.create("q", 4, item=object), "the queue 'q' is empty", {**GETS, **LEASES}),
    "growing": Made(lambda: GrowingQueue.create("q"), "the queue 'q' is empty", {**GETS, **LEASES}),
    "slots": Made(lambda: SlotQueue.create("q", slot_bytes=8), "the queue 'q' is empty", {**GETS, **LEASES, **TAKES}),
    "overwriting": Made(lambda: OverwritingQueue.create("q", 4), "the queue 'q' is empty", {**GETS, **LEASES}),
    "latest": Made(lambda: OverwritingQueue.create("q", 4), "the queue 'q' has no message", LATEST),
    "reader": Made(
        lambda: EventQueue.create("q", item=np.dtype("u8")).subscribe("r"),
        "the queue 'q' has nothing new for the reader 'r', which is at its end, position 0",
        {**GETS, **VIEWS},
    ),
    "local": Made(lambda: BoundedQueue(4), "the queue without a name is empty", GETS),
    "local growing": Made(GrowingQueue, "the queue without a name is empty", GETS),
    "local reader": Made(
        lambda: EventQueue().subscribe(),
        "the queue without a name has nothing new for an ephemeral reader, which is at its end, position 0",
        GETS,
    ),
    **{
        f"{module.__name__} {name}": Made(
            getattr(module, name),
            "the queue without a name is empty",
            {each: GETS[each] for each in ("get", "get_nowait")},
        )
        for module, names in (
            (queueduct.multiprocessing, ("Queue", "JoinableQueue")),
            (queueduct.queue, ("Queue", "SimpleQueue")),
        )
        for name in names
    },
}


def filled(q: Any, item: object = b"x") -> Any:
    while q.try_put(item):
        pass
    return q


def filled_feed() -> Any:
    q = OverwritingQueue.create("q", 4, message_bytes=8)
    q.put_many([bytes(8)] * 4)
    return q


def filled_standard(q: Any) -> Any:
    q.put(1)
    q.put(2)
    return q


def log_with_a_reader(**options: Any) -> Any:
    q = EventQueue.create("q", item=np.dtype("u8"), max_bytes=4096, **options)
    q.subscribe("slow").close()
    return filled(q, 0)


LOANED: list[Any] = []  # slots live as long as the test


def lent_out() -> Any:
    q = SlotQueue.create("q", 3, slot_bytes=8)
    LOANED[:] = [q.loan() for _ in range(3)]
    return q


LOG_IS_FULL = (
    "the queue 'q' is full: 4096 of max_bytes=4096 are in use; readers, the slowest first: 'slow' at position 0, 512 "
    "behind, held by no process%s; let them read and commit, unsubscribe() those that are not needed, or create the "
    "queue with a larger max_bytes or on_full='drop_slowest'"
)

FULL = {
    "bounded": Made(
        lambda: filled(BoundedQueue.create("q", 4)),
        "the queue 'q' is full: 4 of 4 slots%s; get items, or create it with a larger capacity",
        {**puts(b"x"), **put_once(b"x")},
    ),
    "growing": Made(
        lambda: filled(GrowingQueue.create("q", max_bytes=100_000), b"x" * 64),
        "the queue 'q' is full: 86016 of max_bytes=100000 are in use, and the next part does not fit%s; get items, or "
        "create it with a larger max_bytes",
        {**puts(b"x"), **put_once(b"x")},
    ),
    "growing without a limit": Made(
        lambda: filled(GrowingQueue.create("q", steps=1), b"x" * 64),
        "the queue 'q' is full: 64 of 64 slots of its last sub-queue%s; get items, or create it with more steps",
        puts(b"x"),
    ),
    "slots": Made(
        lambda: filled(SlotQueue.create("q", 3, slot_bytes=8)),
        "the queue 'q' is full: 3 of 3 slots are in use, 0 of them loaned, taken or on lease%s; get items, give slots "
        "back, or create it with a larger capacity",
        {**puts(b"x"), **put_once(b"x"), "loan": LOANS["loan"]},
    ),
    "slots lent out": Made(
        lent_out,
        "the queue 'q' is full: 3 of 3 slots are in use, 3 of them loaned, taken or on lease%s; get items, give slots "
        "back, or create it with a larger capacity",
        LOANS,
    ),
    "overwriting": Made(
        filled_feed,
        "the queue 'q' is full: 4 of 4 messages%s; get some, put with overwrite=True, or create it with a larger "
        "capacity",
        puts(bytes(8), overwrite=False),
    ),
    "events": Made(log_with_a_reader, LOG_IS_FULL, {**puts(1), **put_once(1)}),
    "local": Made(
        lambda: filled(BoundedQueue(4)),
        "the queue without a name is full: 4 of 4 slots%s; get items, or make it with a larger capacity",
        puts(b"x"),
    ),
    **{
        f"{make.__module__} {make.__name__}": Made(
            lambda make=make: filled_standard(make(2)),
            "the queue without a name is full: 2 of maxsize=2 items%s; get items, or make it larger",
            {each: puts(3)[each] for each in ("put", "put_nowait")},
        )
        for make in (
            queueduct.multiprocessing.Queue,
            queueduct.multiprocessing.JoinableQueue,
            queueduct.queue.Queue,
        )
    },
}
CASES = [
    *[(QueueEmpty, EMPTY[made], call) for made in EMPTY for call in EMPTY[made].calls],
    *[(QueueFull, FULL[made], call) for made in FULL for call in FULL[made].calls],
]
IDS = [f"{made} {call}" for table in (EMPTY, FULL) for made in table for call in table[made].calls]


@pytest.mark.parametrize(("kind", "made", "call"), CASES, ids=IDS)
def test_every_call_says_which_queue_it_is_how_full_and_how_long_it_waited(kind, made, call):
    q = made.create()
    with pytest.raises(queue.Empty if kind is QueueEmpty else queue.Full) as caught:
        made.calls[call](q)
    error = caught.value
    assert type(error) is kind
    waits = not call.endswith("_nowait")
    waited = r"; waited 0\.\d+ s" if waits else ""
    alone = r"(; no other thread or process takes part in it)?" if waits and kind is QueueEmpty else ""
    once = r"(; 0 of 1 items of sequence 1 of the producer 'p\{\}' are in; .*)?" if call == "put_once" else ""
    says = re.escape(made.says) if "%s" in made.says else re.escape(made.says + "%s")
    assert re.fullmatch(says.replace("%s", waited + alone) + once, str(error)), str(error)
    assert error.queue == ("q" if "'q'" in made.says else None)
    assert (0.015 < error.waited < 10) if waits else error.waited == 0
    with contextlib.closing(q) if hasattr(q, "close") else contextlib.nullcontext():
        pass


@pytest.mark.parametrize(("kind", "made", "call"), CASES[::4], ids=IDS[::4])
def test_they_are_pickled_and_copied_as_they_are(kind, made, call):
    q = made.create()
    with pytest.raises(kind) as caught:
        made.calls[call](q)
    for again in (pickle.loads(pickle.dumps(caught.value)), copy.copy(caught.value), copy.deepcopy(caught.value)):
        assert type(again) is kind
        assert (str(again), again.args) == (str(caught.value), caught.value.args)


def test_the_standard_librarys_classes_are_what_queueduct_calls_full_and_empty():
    assert (queueduct.Full, queueduct.Empty) == (queue.Full, queue.Empty)


def test_full_counts_what_is_on_lease():
    with BoundedQueue.create("q", 8) as q:
        q.put_many([b"x"] * 8)
        lease = q.lease(3)
        with pytest.raises(QueueFull, match=r"is full: 8 of 8 slots, 3 on lease; get items") as full:
            q.put_nowait(b"x")
        assert (full.value.size, full.value.capacity, full.value.leased) == (8, 8, 3)
        lease.release()
        q.put_nowait(b"x")


def test_full_says_how_many_slots_a_long_item_takes():
    with BoundedQueue.create("q", 4, slot_bytes=8) as q:
        q.put_many([b"x"] * 3)
        with pytest.raises(QueueFull, match=r"is full: 3 of 4 slots, and the item takes 2; get items"):
            q.put_nowait(b"x" * 16)
        q.get()
        q.put_nowait(b"x" * 16)


def test_empty_after_a_wait_counts_what_is_on_lease():
    for q in (BoundedQueue.create("a", 4), GrowingQueue.create("b"), SlotQueue.create("c", slot_bytes=8)):
        with q:
            q.put_many([b"x"] * 2)
            lease = q.lease(2)
            with pytest.raises(QueueEmpty, match=r"is empty, with 2 on lease; waited 0\.\d+ s") as empty:
                q.get(timeout=0.02)
            assert empty.value.leased == 2
            lease.give_back()
            q.get_many(2)


def test_empty_after_a_wait_does_not_say_that_nobody_is_there_when_somebody_is(children):
    with BoundedQueue.create("q", 4) as q:
        with pytest.raises(QueueEmpty, match="no other thread or process takes part in it"):
            q.get(timeout=0.02)
        child = children.start("import sys, queueduct; q = queueduct.open('q'); q.put(b'x'); input()")
        assert q.get(timeout=30) == b"x"
        with pytest.raises(QueueEmpty, match=r"waited 0\.\d+ s$"):
            q.get(timeout=0.02)
        child.communicate("\n")


def test_a_lease_without_a_free_cell_says_so():
    with OverwritingQueue.create("q", 8, message_bytes=1 << 20) as q:
        leases = []
        for _ in range(4):
            q.put(bytes(1 << 20))
            leases.append(q.lease(1))
        q.put(bytes(1 << 20))
        with pytest.raises(QueueEmpty, match="can keep no more leased messages, with 4 on lease; release some"):
            q.lease(1, False)
        leases.pop().release()
        q.lease(1, False).release()


def test_a_latest_that_is_not_newer_says_than_what():
    with OverwritingQueue.create("q", 4, message_bytes=8) as q:
        q.put_many([bytes(8)] * 2)
        with pytest.raises(QueueEmpty, match=r"the queue 'q' has no message after position 1$"):
            q.latest(1, False)


def test_a_full_log_says_which_readers_are_slow_as_values_too():
    with log_with_a_reader(on_full="raise") as q, pytest.raises(QueueFull) as full:
        q.put(1)
    (slow,) = full.value.readers
    assert slow == queueduct.ReaderInfo("slow", 0, 512, False, False)
    assert full.value.waited == 0  # on_full="raise" does not wait, whatever the timeout
    assert (full.value.size, full.value.capacity) == (4096, 4096)


@pytest.mark.parametrize("kind", [QueueFull, QueueEmpty])
@pytest.mark.parametrize("args", [(), ("my own text {x}",)])
def test_others_may_make_one_too_with_a_text_of_their_own(kind, args):
    error = kind(*args)
    assert str(error) == "".join(args)
    assert (error.queue, error.waited, error.leased) == (None, 0, None)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert error.after(1) is error


def polling(q: Any) -> Iterator[str]:
    for _ in range(3):
        try:
            q.get_nowait()
        except queue.Empty as error:
            yield str(error)


def test_a_name_with_braces_is_a_name():
    with BoundedQueue.create("a{queue}b{0}", 4) as q:
        assert list(polling(q)) == ["the queue 'a{queue}b{0}' is empty"] * 3
