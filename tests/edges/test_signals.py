"""Signals whose handlers raise, at every call of every kind: what was put is got once, or is still there.

Between a call's return and the assignment of what it returned any handler may run, and no queue can help that. So the
calls here are made by list.extend, which appends what it gets before anything else runs.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import queueduct
from queueduct import BoundedQueue, EventQueue, GrowingQueue, OverwritingQueue, SlotQueue
from queueduct.items.views import ViewSession
from tests.edges.interrupting import Item, Struck, exit_by, handling, struck_by
from tests.support.deadline import until_parked
from tests.support.kinds import CLASSES

RECORD = np.dtype([("number", "i8"), ("rest", "S24")])
FORMS: dict[str, tuple[Any, Callable[[int], Any], Callable[[Any], int]]] = {
    "bytes": (bytes, lambda i: b"%-64d" % i, int),
    "records": (RECORD, lambda i: np.array((i, b"x"), RECORD)[()], lambda got: int(got["number"])),
    "objects": (object, Item, lambda got: got.number),
}
HANDLERS = {"KeyboardInterrupt": signal.default_int_handler, "SystemExit": exit_by, "an error": struck_by}
RAISED = (KeyboardInterrupt, SystemExit, Struck)

# A handler that raises in the callback of a weak reference, of threading's own for one, is Python's to report.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def named(kind: str, form: str, capacity: int = 256) -> Any:
    item = FORMS[form][0]
    options: dict[str, Any] = {"item": item}
    if kind == "slots":
        options["slot_bytes"] = None if form == "records" else 128
    if kind == "overwriting" and form == "bytes":
        options["message_bytes"] = 64
    if kind in ("bounded", "slots", "overwriting"):
        options["capacity"] = capacity
    return CLASSES[kind].create("q", **options)


UNNAMED: dict[str, Callable[[], Any]] = {
    "bounded": lambda: BoundedQueue(256),
    "growing": GrowingQueue,
    "events": EventQueue,
}
QUEUES = [(kind, form) for kind in CLASSES for form in FORMS] + [(kind, "unnamed") for kind in UNNAMED]


def make(kind: str, form: str) -> Any:
    return UNNAMED[kind]() if form == "unnamed" else named(kind, form)


def numbers(form: str, got: list[Any]) -> list[int]:
    number_of = FORMS["objects" if form == "unnamed" else form][2]
    return [number_of(item) for item in got]


def items(form: str, count: int) -> list[Any]:
    made = [FORMS["objects" if form == "unnamed" else form][1](i) for i in range(count)]
    return np.array(made, RECORD) if form == "records" else made  # type: ignore[return-value]  # what put_many takes


def consumer_of(q: Any) -> Any:
    return q.subscribe(start="earliest") if hasattr(q, "subscribe") else q


class Storm:
    """A signal after each of pseudo-random intervals, until the block ends; it raises while work() is under way."""

    def __init__(self, handler: Any, seed: int, shortest: float, longest: float) -> None:
        self.handler = handler
        self.chosen = random.Random(seed)
        self.bounds = (shortest, longest)
        self.is_raising = False
        self.is_over = False

    def __enter__(self) -> Storm:
        self.before = signal.signal(signal.SIGALRM, self.next_one)
        signal.setitimer(signal.ITIMER_REAL, self.bounds[1])
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over = True
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)

    def next_one(self, *arguments: Any) -> None:
        if not self.is_over:
            signal.setitimer(signal.ITIMER_REAL, self.chosen.uniform(*self.bounds))
        if self.is_raising:
            self.is_raising = False
            self.handler(*arguments)

    def weather(self, work: Callable[[], object]) -> int:
        """Does it again and again until it ends by itself; how often it was struck."""
        struck = 0
        while True:
            try:
                self.is_raising = True
                work()
                self.is_raising = False
                return struck
            except RAISED:
                struck += 1


def each_of(consumer: Any) -> Iterator[Any]:
    return iter(functools.partial(consumer.try_get, END), END)


def batches_of(consumer: Any) -> Iterator[Any]:
    return itertools.chain.from_iterable(iter(functools.partial(batch, consumer), END))


def batch(consumer: Any) -> Any:
    try:
        return consumer.get_many(9, timeout=0.02)
    except queueduct.Empty:
        return END


END = object()
GETS = {"get": each_of, "get_many": batches_of}


@pytest.mark.parametrize(("kind", "form"), QUEUES)
@pytest.mark.parametrize("get", ["get", "for"])
@pytest.mark.parametrize("handler", HANDLERS)
def test_a_storm_of_signals_loses_and_doubles_nothing(kind, form, get, handler, is_long):
    count, rounds = 120, 100 if is_long else 1
    for seed in range(rounds):
        with make(kind, form) as q:
            consumer = consumer_of(q)
            assert q.put_many(items(form, count)) in (count, None)
            q.shutdown()
            got: list[Any] = []
            source = iter(consumer) if get == "for" else each_of(consumer)

            def drain(got=got, source=source, get=get):
                try:
                    got.extend(source)
                except queueduct.ShutDown:
                    assert get == "get"

            with Storm(HANDLERS[handler], seed, 20e-6, 300e-6) as storm:
                storm.weather(drain)
            assert sorted(numbers(form, got)) == list(range(count))
        if form != "unnamed":
            queueduct.unlink("q")


class Slow(Item):
    """Its unpickling takes so long that a storm strikes it."""

    def __setstate__(self, state):
        self.__dict__.update(state)
        end = time.perf_counter() + 30e-6
        while time.perf_counter() < end:
            pass


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("handler", HANDLERS)
@pytest.mark.parametrize("size", [1, 5])
def test_a_storm_in_the_midst_of_unpickling_loses_and_doubles_nothing(kind, handler, size, is_long):
    count = 2000 if is_long else 150
    with named(kind, "objects", 4096 if is_long else 256) as q:
        consumer = consumer_of(q)
        q.put_many([Slow(i) for i in range(count)])
        q.shutdown()
        got: list[Any] = []
        batches = iter(functools.partial(consumer.get_many, size), END)

        def drain():
            with contextlib.suppress(queueduct.ShutDown):
                got.extend(itertools.chain.from_iterable(batches))

        with Storm(HANDLERS[handler], 7, 20e-6, 900e-6) as storm:
            struck = storm.weather(drain)
        assert struck > 0
        assert [item.number for item in got] == list(range(count))


@contextlib.contextmanager
def soon_struck() -> Iterator[None]:
    """A handler raises while the block waits."""
    with handling(signal.SIGALRM, struck_by):
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        yield


BLOCKING: dict[str, Callable[[Any], object]] = {
    "get": lambda c: c.get(timeout=30),
    "get_many": lambda c: c.get_many(5, timeout=30),
    "for": lambda c: next(iter(c)),
    "lease": lambda c: c.lease(5, timeout=30),
    "take": lambda c: c.take(timeout=30),
}


def is_there(kind: str, form: str, call: str) -> bool:
    if call == "lease":
        return kind != "events" and form != "unnamed"
    return call != "take" or kind == "slots"


@pytest.mark.parametrize(
    ("kind", "form", "call"), [(*queue, call) for queue in QUEUES for call in BLOCKING if is_there(*queue, call)]
)
def test_a_blocked_get_is_interrupted_at_once_and_has_taken_nothing(kind, form, call):
    with make(kind, form) as q:
        consumer = consumer_of(q)
        for _ in range(3):
            began = time.monotonic()
            with pytest.raises(Struck), soon_struck():
                BLOCKING[call](consumer)
            assert time.monotonic() - began < 5
        assert q.qsize() == 0
        q.put_many(items(form, 3))
        got = list(itertools.islice(each_of(consumer), 9))
        assert numbers(form, got) == [0, 1, 2]


PUTS: dict[str, Callable[[Any, Any], object]] = {
    "put": lambda q, some: q.put(some[0], timeout=30),
    "put_many": lambda q, some: q.put_many(some, timeout=30),
    "put_once": lambda q, some: q.put_once(some, "me", 1, timeout=30),
    "loan": lambda q, some: q.loan(timeout=30),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("kind", "call"),
    [(kind, call) for kind in ("bounded", "slots") for call in PUTS if kind == "slots" or call != "loan"],
)
def test_a_blocked_put_is_interrupted_at_once_and_what_is_in_is_whole(kind, form, call):
    with named(kind, form, 8) as q:
        if call == "loan" and form == "objects":  # which cannot be filled in place
            return
        capacity = q.capacity
        q.put_many(items(form, capacity))
        more = items(form, capacity + 3)[capacity:]
        for _ in range(3):
            with pytest.raises(Struck), soon_struck():
                PUTS[call](q, more)
        assert numbers(form, list(itertools.islice(each_of(q), 2))) == [0, 1]
        if call == "put_once":  # goes on where it was interrupted
            with pytest.raises(Struck), soon_struck():
                PUTS[call](q, more)
            q.get()
            assert PUTS[call](q, more) == 1
            assert numbers(form, list(each_of(q))) == list(range(3, capacity + 3))
        else:
            assert numbers(form, list(each_of(q))) == list(range(2, capacity))


@pytest.mark.parametrize("kind", ["bounded", "slots"])
@pytest.mark.parametrize("form", FORMS)
def test_puts_in_a_storm_are_in_once_or_not_at_all(kind, form, is_long):
    """What put has returned from is got; what was interrupted may be in, once."""
    count = 2000 if is_long else 200
    got: list[Any] = []
    done: list[int] = []
    with named(kind, form, 4) as q:
        consumer = threading.Thread(target=lambda: got.extend(q))
        consumer.start()
        until_parked(consumer)
        some = items(form, count)

        def put(i):
            q.put(some[i])
            return i

        numbered = iter(range(count))
        with Storm(struck_by, 3, 50e-6, 500e-6) as storm:
            storm.weather(lambda: done.extend(map(put, numbered)))
        q.shutdown()
        consumer.join(30)
        found = numbers(form, got)
        assert len(found) == len(set(found))
        assert set(done) <= set(found)


@pytest.mark.parametrize(("kind", "form"), QUEUES)
def test_a_batch_whose_source_raises_midway_is_not_in_at_all(kind, form):
    def source():
        yield from items(form, 5)
        raise Struck

    with make(kind, form) as q:
        consumer = consumer_of(q)
        with pytest.raises((Struck, TypeError, ValueError)):
            q.put_many(source())
        assert list(each_of(consumer)) == []


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, Struck, MemoryError])
def test_an_item_that_cannot_be_pickled_leaves_nothing_behind(kind, error):
    class Unpicklable:
        def __reduce__(self):
            raise error

    with named(kind, "objects") as q:
        consumer = consumer_of(q)
        for put in (q.put, lambda item: q.put_many([1, item, 2])):
            with pytest.raises(error):
                put(Unpicklable())
        q.put("after it")
        assert list(each_of(consumer)) == ["after it"]


def test_a_view_that_is_interrupted_leaves_the_reader_usable(monkeypatch):
    with EventQueue.create("q", item=RECORD) as q:
        reader = q.subscribe()
        q.put_many(items("records", 3))
        with pytest.raises(Struck), reader.view():
            raise Struck
        with monkeypatch.context() as patched:
            patched.setattr(ViewSession, "__setattr__", struck_at_count)  # as if a handler had run there
            with pytest.raises(Struck):
                reader.view().__enter__()
        assert reader.position == 0
        assert [int(row["number"]) for row in reader.get_many(9)] == [0, 1, 2]


def struck_at_count(session, name, value):
    if name == "_count" and session._is_entered:
        raise Struck
    object.__setattr__(session, name, value)


def test_slots_that_nobody_leased_stay_as_they_are():
    """An interrupted lease of an empty queue has nothing to give back."""
    with SlotQueue.create("q", capacity=4) as q:
        with pytest.raises(Struck), soon_struck():
            q.lease(3, timeout=30)
        assert q.try_get() is None
        assert q.stats().free == 4


def test_overwriting_counts_what_comes_again_as_there():
    with OverwritingQueue.create("q", capacity=8, item=object) as q:
        q.put_many([1, 2, 3])
        lease = q.lease(2)
        lease.give_back()
        stats = q.stats()
        assert (stats.size, stats.gets) == (3, 0)
        assert stats.puts == stats.gets + stats.overwritten + stats.torn + stats.lost_with_consumer + stats.size
