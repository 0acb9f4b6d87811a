"""A file that is truncated while it is in use is an error of whoever looks next: no wrong success, and no SIGBUS.

Every call of every kind that reaches the mapping is made after a truncation, and on a twin whose file is whole. It
raises CorruptSegment, or it gives what its twin gives.
"""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import queueduct
from queueduct import BoundedQueue, CorruptSegment, EventQueue, GrowingQueue, OverwritingQueue, SlotQueue

BYTES = 16384
RECORD = np.dtype([("number", "<u8"), ("rest", "S16376")])
ITEM = bytes(range(256)) * (BYTES // 256)
SIZES = ("nothing", "a page", "half", "all but a page")

Use = Callable[[], Any]
Prepare = Callable[[Any], Use]


def record(number: int) -> Any:
    return np.array([(number, b"r" * 16376)], dtype=RECORD)


def make(kind: str, name: str) -> Any:
    """A queue with four items in it, and room for more."""
    q: Any
    if kind == "bounded":
        q = BoundedQueue.create(name, 8, slot_bytes=BYTES)
    elif kind == "growing":
        q = GrowingQueue.create(name, first_bytes=1 << 20, slot_bytes=BYTES)
    elif kind == "slots":
        q = SlotQueue.create(name, capacity=8, slot_bytes=BYTES)
    elif kind == "overwriting":
        q = OverwritingQueue.create(name, 8, message_bytes=BYTES)
    elif kind == "events":
        q = EventQueue.create(name, on_full="wait")
    elif kind == "bounded records":
        q = BoundedQueue.create(name, 8, item=RECORD)
    elif kind == "slots of records":
        q = SlotQueue.create(name, capacity=8, item=RECORD)
    else:
        q = EventQueue.create(name, item=RECORD, on_full="drop_slowest" if "drop" in kind else "wait")
    for number in range(4):
        q.put(record(number)[0] if "record" in kind else ITEM)
    return q


def reader(q: Any) -> Any:
    return q.subscribe("reader", start="earliest")


def held_by(lease: Any, use: Callable[[Any], Any]) -> Use:
    return lambda: use(lease)


def plain(value: Any) -> Any:
    """What can be compared, and outlives the queue."""
    if isinstance(value, (np.ndarray, np.void)):
        return value.tobytes()
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value if isinstance(value, (bytes, int, bool, str, type(None))) else type(value).__name__


def one(q: Any) -> Any:
    return ITEM if q.item is bytes else record(9)[0]


def several(q: Any) -> Any:
    return [ITEM, ITEM] if q.item is bytes else np.concatenate([record(8), record(9)])


COMMON: dict[str, Prepare] = {
    "put": lambda q: lambda: q.put(one(q), timeout=5),
    "put_nowait": lambda q: lambda: q.put_nowait(one(q)),
    "try_put": lambda q: lambda: q.try_put(one(q)),
    "put_many": lambda q: lambda: q.put_many(several(q), timeout=5),
    "aput": lambda q: lambda: asyncio.run(q.aput(one(q), timeout=5)),
    "qsize": lambda q: lambda: q.qsize(),
    "len": lambda q: lambda: len(q),
    "empty": lambda q: lambda: q.empty(),
    "full": lambda q: lambda: q.full(),
    "stats": lambda q: lambda: q.stats(),
    "shutdown": lambda q: lambda: q.shutdown(),
    "shutdown at once": lambda q: lambda: q.shutdown(immediate=True),
}

GETS: dict[str, Prepare] = {
    "get": lambda q: lambda: q.get(timeout=5),
    "get_nowait": lambda q: lambda: q.get_nowait(),
    "try_get": lambda q: lambda: q.try_get(),
    "get_many": lambda q: lambda: q.get_many(3, timeout=5),
    "next": lambda q: lambda: next(iter(q)),
    "aget": lambda q: lambda: asyncio.run(q.aget(timeout=5)),
    "lease": lambda q: lambda: q.lease(3, timeout=5).items,
    "release": lambda q: held_by(q.lease(2), lambda lease: lease.release()),
    "release one": lambda q: held_by(q.lease(2), lambda lease: lease.release(1)),
    "give_back": lambda q: held_by(q.lease(2), lambda lease: lease.give_back()),
    "unreleased": lambda q: held_by(q.lease(2), lambda lease: q.unreleased(lease.positions)),
}

ONCE: dict[str, Prepare] = {
    "put_once": lambda q: lambda: q.put_once(several(q), "producer", 1, timeout=5),
    "put_once again": lambda q: again(q),
    "producers": lambda q: lambda: q.producers(),
    "forget_producer": lambda q: forgetting(q),
}


def again(q: Any) -> Use:
    q.put_once(several(q), "producer", 1, timeout=5)
    return lambda: q.put_once(several(q), "producer", 2, timeout=5)


def forgetting(q: Any) -> Use:
    q.put_once(several(q), "producer", 1, timeout=5)
    return lambda: q.forget_producer("producer")


def taking(use: Callable[[Any], Any]) -> Prepare:
    """A slot that was taken before, and a block around its use."""

    def prepare(q: Any) -> Use:
        slot = q.take(timeout=5)

        def work() -> Any:
            with slot:
                return use(slot)

        return work

    return prepare


def lending(use: Callable[[Any], Any]) -> Prepare:
    def prepare(q: Any) -> Use:
        slot = q.loan(timeout=5)

        def work() -> Any:
            with slot:
                return use(slot)

        return work

    return prepare


def fill(slot: Any) -> None:
    slot.view[:] = b"f" * len(slot)


SLOTS: dict[str, Prepare] = {
    "take": lambda q: lambda: q.take(timeout=5).copy(),
    "taken view": taking(lambda slot: bytes(slot.view)),
    "taken array": taking(lambda slot: np.array(slot.array)),
    "taken copy": taking(lambda slot: slot.copy()),
    "copy outside a block": lambda q: held_by(q.take(timeout=5), lambda slot: slot.copy()),
    "release of a slot": lambda q: held_by(q.take(timeout=5), lambda slot: slot.release()),
    "give_back": lambda q: held_by(q.take(timeout=5), lambda slot: slot.give_back()),
    "loan": lambda q: lambda: fill(q.loan(timeout=5)),
    "loan view": lending(fill),
    "publish": lambda q: held_by(q.loan(timeout=5), lambda slot: slot.publish()),
    "cancel": lambda q: held_by(q.loan(timeout=5), lambda slot: slot.cancel()),
    "set_capacity": lambda q: lambda: q.set_capacity(2),
    "capacity": lambda q: lambda: q.capacity,
    "put and evict": lambda q: lambda: q.put(one(q), overwrite=True),
}


def viewing(r: Any, use: Callable[[Any], Any]) -> Any:
    with r.view() as array:
        return use(array)


def entered(r: Any, use: Callable[[Any], Any]) -> Use:
    """A view that was entered before."""
    session = r.view()
    array = session.__enter__()

    def work() -> Any:
        try:
            seen = use(array)
        except BaseException as error:
            session.__exit__(type(error), error, None)
            raise
        session.__exit__(None, None, None)
        return seen

    return work


def committing(q: Any) -> Use:
    r = reader(q)
    r.get_many(2)
    return lambda: r.commit()


def reading(prepare: Prepare) -> Prepare:
    return lambda q: prepare(reader(q))


READS: dict[str, Prepare] = {
    **{f"reader {name}": reading(GETS[name]) for name in ("get", "get_nowait", "try_get", "get_many", "next", "aget")},
    "commit": committing,
    "committed": lambda q: held_by(reader(q), lambda r: r.committed),
    "lag": lambda q: held_by(reader(q), lambda r: r.lag),
    "read": lambda q: lambda: q.read(0, 4),
    "end": lambda q: lambda: q.end,
    "earliest": lambda q: lambda: q.earliest,
    "is_shut_down": lambda q: lambda: q.is_shut_down,
    "subscribe": lambda q: lambda: q.subscribe("other", start="earliest").get_many(2, timeout=5),
    "unsubscribe": lambda q: leaving(q),
    "readers": lambda q: held_by(reader(q), lambda r: [each.name for each in q.readers()]),
    "clear": lambda q: lambda: q.clear(),
    "keep_last": lambda q: lambda: q.keep_last(1),
}


def leaving(q: Any) -> Use:
    reader(q).close()
    return lambda: q.unsubscribe("reader")


VIEWS: dict[str, Prepare] = {
    "view": lambda q: held_by(reader(q), lambda r: viewing(r, lambda array: array.tobytes())),
    "view, part of it": lambda q: held_by(reader(q), lambda r: viewing(r, lambda array: array["number"].tolist())),
    "entered view": lambda q: entered(reader(q), lambda array: array.tobytes()),
    "entered view, asserting": lambda q: entered(reader(q), lambda array: check_numbers(array)),
}


def check_numbers(array: Any) -> None:
    assert array["number"].tolist() == [0, 1, 2, 3]


RINGS = COMMON | GETS | ONCE
TABLE: dict[str, dict[str, Prepare]] = {
    "bounded": RINGS,
    "bounded records": RINGS,
    "growing": RINGS,
    "overwriting": COMMON | GETS,
    "slots": RINGS | SLOTS,
    "slots of records": RINGS | SLOTS,
    "events": COMMON | READS | ONCE,
    "events of records": COMMON | READS | ONCE | VIEWS,
    "events that drop, of records": COMMON | READS | ONCE | VIEWS,
}


@contextmanager
def queue(kind: str, name: str) -> Iterator[Any]:
    """A queue that is closed and unlinked whatever happened to it."""
    q = make(kind, name)
    try:
        yield q
    finally:
        q.close()
        q.unlink()


def size_of(cut: str, total: int) -> int:
    page = resource.getpagesize()
    return {"nothing": 0, "a page": page, "half": total // 2, "all but a page": total - page}[cut]


def faults(kind: str, cut: str, folder: str) -> list[str]:
    """What is wrong, by call."""
    found = []
    for name, prepare in TABLE[kind].items():
        with queue(kind, "twin") as twin:
            expected = plain(prepare(twin)())
        with queue(kind, "q") as q:
            use = prepare(q)
            path = os.path.join(folder, "q")
            os.truncate(path, size_of(cut, os.path.getsize(path)))
            try:
                got = plain(use())
            except CorruptSegment as error:
                if "truncated" not in str(error):
                    found.append(f"{name}: {error}")
                continue
            except BaseException as error:
                found.append(f"{name}: {error!r}")
                continue
            finally:
                use = None  # type: ignore[assignment]  # what it holds goes before the queue
            if name.endswith("get_many") and cut != "nothing":  # what was there; the error comes with the next
                expected = expected[: len(got)]
            if cut == "nothing" or got != expected:
                found.append(f"{name}: gave {str(got)[:60]}")
    return found


@pytest.mark.parametrize("cut", SIZES)
@pytest.mark.parametrize("kind", TABLE)
def test_no_call_takes_what_a_truncation_left_for_what_was_there(kind, cut, children, queue_dir):
    def work() -> None:
        wrong = faults(kind, cut, str(queue_dir))
        assert not wrong, "\n".join(wrong)

    assert children.wait(children.fork(work)) == 0


@pytest.mark.parametrize("kind", ["bounded", "growing", "slots", "overwriting", "events"])
def test_every_call_after_a_truncation_says_so(kind, children, queue_dir):
    def work() -> None:
        with queue(kind, "q") as q:
            os.truncate(queue_dir / "q", 0)
            for _ in range(3):
                for name, prepare in COMMON.items():
                    with pytest.raises(CorruptSegment, match="truncated"):
                        prepare(q)()
                    assert name
            assert "corrupt" in repr(q)

    assert children.wait(children.fork(work)) == 0


def test_every_kind_is_guarded_in_whatever_order_queues_are_opened(children, queue_dir):
    """A second handler would one day drop another kind's out of the chain: there is one for all."""

    def work() -> None:
        kinds = ["bounded", "slots", "events", "overwriting", "growing"]
        opened = [make(kind, kind) for kind in kinds]
        for first in kinds:
            for second in kinds:
                opened += [queueduct.open(first), queueduct.open(second)]
        for q in opened:
            os.truncate(queue_dir / q.name, 0)
        for q in opened:
            with pytest.raises(CorruptSegment, match="truncated"):
                q.qsize()

    assert children.wait(children.fork(work)) == 0


def test_the_last_of_thousands_of_queues_is_guarded_like_the_first(children, queue_dir, is_long):
    def work() -> None:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        wanted = min(20_000 if is_long else 4_200, (hard - 100) // 2)
        BoundedQueue.create("q", 2, slot_bytes=8, participants=4096, producers=0).close()
        handles = [BoundedQueue.open("q") for _ in range(wanted)]
        os.truncate(queue_dir / "q", 0)
        for q in (handles[-1], handles[0], handles[len(handles) // 2]):
            with pytest.raises(CorruptSegment, match="truncated"):
                q.qsize()

    assert children.wait(children.fork(work)) == 0


def look_and_be_interrupted(r: Any) -> None:
    with r.view() as array:
        os.truncate(os.path.join(os.environ["QUEUEDUCT_DIR"], "q"), 0)
        array.tobytes()
        raise KeyboardInterrupt


def test_an_interrupt_inside_a_view_stays_an_interrupt(children, queue_dir):
    def work() -> None:
        with queue("events of records", "q") as q:
            r = reader(q)
            with pytest.raises(KeyboardInterrupt):
                look_and_be_interrupted(r)

    assert children.wait(children.fork(work)) == 0
