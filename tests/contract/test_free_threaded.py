"""Threads that use, read and close the same handle at once, with a GIL or without.

Allowed: what each call documents. Never: a crash, a reference that is lost or dropped twice, memory that stays mapped.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import sysconfig
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from queueduct import (
    BoundedQueue,
    DataLost,
    Empty,
    EventQueue,
    Full,
    GrowingQueue,
    OverwritingQueue,
    QueueClosed,
    ReaderInUse,
    ShutDown,
    SlotQueue,
    TooManyReaders,
)
from tests.support.deadline import until, until_parked

HAS_GIL = not sysconfig.get_config_var("Py_GIL_DISABLED")
EXPECTED = (Full, Empty, QueueClosed, ShutDown, DataLost, TooManyReaders, ReaderInUse)
LOCAL: dict[str, Callable[[], Any]] = {
    "bounded": lambda: BoundedQueue(8),
    "growing": GrowingQueue,
    "events": lambda: EventQueue(max_bytes=1 << 16, on_full="drop_slowest"),
}
NAMED: dict[str, Callable[[], Any]] = {
    "bounded": lambda: BoundedQueue.create("q", 8, slot_bytes=64),
    "growing": lambda: GrowingQueue.create("q"),
    "overwriting": lambda: OverwritingQueue.create("q", 8),
    "slots": lambda: SlotQueue.create("q", 8, slot_bytes=64),
    "events": lambda: EventQueue.create("q", max_bytes=1 << 18, on_full="drop_slowest"),
}
pytestmark = pytest.mark.usefixtures("short_turns")


class Thing:
    """An item that knows whether it is whole."""

    def __init__(self) -> None:
        self.whole = "whole"


def together(*works: Callable[[], object]) -> None:
    """Each in a thread of its own, all at once; the first error that none of the calls documents fails the test."""
    barrier = threading.Barrier(len(works))
    errors: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        barrier.wait()
        try:
            work()
        except EXPECTED:
            pass
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def until_closed(*calls: Callable[[], object]) -> Callable[[], None]:
    """Make the calls in turn until the handle is closed."""

    def work() -> None:
        for _ in range(20_000):
            for call in calls:
                try:
                    call()
                except QueueClosed:
                    return
                except EXPECTED:
                    pass

    return work


def use_and_close(q: Any, new: Callable[[], Any]) -> None:
    try:
        for _ in range(100):
            q.try_put(new())
    finally:
        q.close()


def calls_of(q: Any, new: Callable[[], Any]) -> list[list[Callable[[], object]]]:
    """What threads may do with a queue, a list for each."""

    def looks() -> object:
        return q.qsize(), q.stats(), repr(q), q.full(), q.capacity, q.closed

    if not isinstance(q, EventQueue):
        calls = [
            [lambda: q.try_put(new()), lambda: q.put_many([new(), new()], timeout=0)],
            [lambda: q.try_get(), lambda: q.get_many(4, timeout=0)],
            [looks],
        ]
        if q.name is not None:
            calls.append([lambda: q.lease(2, timeout=0).release(), lambda: q.lease(2, timeout=0).give_back()])
        return calls

    def read() -> None:
        reader = q.subscribe(start="earliest")
        try:
            reader.try_get()
            reader.get_many(100, timeout=0)
            q.read(q.earliest, q.end)
        finally:
            reader.close()

    return [[lambda: q.put(new()), lambda: q.put_many([new(), new()])], [read], [read], [looks, q.clear]]


def is_open(path: Path) -> bool:
    """Has this process the file mapped, or a descriptor of it?"""
    descriptors = []
    for each in Path("/proc/self/fd").iterdir():
        try:
            descriptors.append(os.readlink(each))
        except OSError:  # the listing's own
            continue
    return str(path) in Path("/proc/self/maps").read_text() or str(path) in descriptors


# -- the handle -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(LOCAL))
def test_a_queue_of_references_that_is_closed_in_use_drops_each_of_them_once(kind, is_long):
    things: weakref.WeakSet[Thing] = weakref.WeakSet()

    def new() -> Thing:
        thing = Thing()
        things.add(thing)
        return thing

    for _ in range(300 if is_long else 15):
        q = LOCAL[kind]()
        threads = [until_closed(*calls) for calls in calls_of(q, new)]
        together(*threads, lambda q=q: use_and_close(q, new), lambda q=q: use_and_close(q, new))
        assert q.closed
        with pytest.raises(QueueClosed):
            q.put(new())
        del threads

    def are_gone() -> bool:
        gc.collect()
        return not things

    until(are_gone, "the end of all items")
    with pytest.raises(TypeError, match="initialised once"):
        q.__init__()


@pytest.mark.parametrize("kind", list(NAMED))
def test_a_named_queue_closed_in_use_lets_its_memory_go(kind, queue_dir, is_long):
    item = b"%064d" % 7
    path = queue_dir / "q"
    for _ in range(200 if is_long else 8):
        q = NAMED[kind]()
        threads = [until_closed(*calls) for calls in calls_of(q, lambda: item)]
        together(*threads, lambda q=q: use_and_close(q, lambda: item), lambda q=q: use_and_close(q, lambda: item))
        del threads
        until(lambda: not is_open(path), "the end of the mapping")
        q.unlink()


@pytest.mark.parametrize("kind", list(NAMED))
def test_a_handle_is_let_go_while_the_thread_that_opened_it_sleeps(kind, queue_dir):
    handles: list[Any] = []
    elsewhere = BoundedQueue(2)

    def open_it() -> None:
        handles.append(NAMED[kind]())
        elsewhere.get()

    opener = threading.Thread(target=open_it)
    opener.start()
    until(lambda: handles, "the handle")
    until_parked(opener)
    handles[0].close()
    try:
        assert not is_open(queue_dir / "q")
    finally:
        elsewhere.put(None)
        opener.join()


@pytest.mark.parametrize("kind", [*LOCAL, "alternating"])
def test_queues_within_queues_end_on_a_small_stack(kind, children):
    children.run(
        f"""
import threading, queueduct
KINDS = dict(bounded=lambda: queueduct.BoundedQueue(2), growing=queueduct.GrowingQueue, events=queueduct.EventQueue)
kinds = list(KINDS.values()) if {kind!r} == "alternating" else [KINDS[{kind!r}]]
def nest():
    outer = kinds[0]()
    for n in range(1000 if {kind!r} == "growing" else 3000):
        inner, outer = outer, kinds[n % len(kinds)]()
        outer.put([inner])
        del inner
    del outer
threading.stack_size(256 * 1024)
thread = threading.Thread(target=nest)
thread.start()
thread.join()
"""
    )


# -- references -------------------------------------------------------------------------------------------


def test_references_read_by_position_beside_a_clear_are_whole(is_long):
    q = EventQueue(max_bytes=1 << 16, on_full="drop_slowest")
    is_over = threading.Event()

    def put() -> None:
        for _ in range(400 if is_long else 40):
            q.put_many([Thing() for _ in range(50)])
            q.clear() if _ % 3 == 0 else q.keep_last(10)
        is_over.set()

    def read() -> None:
        while not is_over.is_set():
            try:
                found = q.read(q.earliest, q.end)
            except (DataLost, ValueError):  # what was cleared between the two looks
                continue
            assert all(thing.whole == "whole" for thing in found)

    def follow() -> None:
        with q.subscribe(start="earliest") as reader:
            while not is_over.is_set():
                try:
                    found = [reader.get(timeout=0.01), *reader.get_many(20, timeout=0.01)]
                except EXPECTED:
                    continue
                assert all(thing.whole == "whole" for thing in found)

    together(put, read, read, follow, follow)


def test_items_are_counted_as_before_when_everything_is_over():
    item = Thing()
    before = sys.getrefcount(item)
    for make in LOCAL.values():
        use_up(make(), item)
    until(lambda: gc.collect() >= 0 and sys.getrefcount(item) == before, "the end of all references")


def use_up(q: Any, item: Any) -> None:
    """Do everything with it, and leave items in it."""

    def put() -> None:
        for _ in range(200):
            q.try_put(item)
        q.shutdown(immediate=True)
        q.close()

    together(put, *(until_closed(*calls) for calls in calls_of(q, lambda: item)))


@pytest.mark.parametrize("make", [*LOCAL.values(), NAMED["bounded"]], ids=[*LOCAL, "named"])
def test_a_list_that_changes_while_it_is_put_gives_items_that_were_in_it(make):
    q = make()
    get = get_of(q)
    items: list[bytes] = []
    is_over = threading.Event()

    def change() -> None:
        for n in range(400):
            items.extend(b"%064d" % (n + k) for k in range(20))
            del items[: n % 30]
            items.clear() if n % 7 == 0 else items.reverse()
        is_over.set()

    def put_them() -> None:
        while not is_over.is_set():
            try:
                q.put_many(items, timeout=0)
            except Full:
                pass
            except ValueError as error:
                assert "changed size" in str(error)
            for got in get():
                assert len(got) == 64

    together(change, put_them, put_them)


def get_of(q: Any) -> Callable[[], list[Any]]:
    """What takes from it all that is there."""
    getter = q.subscribe(start="earliest") if isinstance(q, EventQueue) else q

    def get() -> list[Any]:
        try:
            return list(getter.get_many(1000, timeout=0))
        except (Empty, DataLost):
            return []

    return get


# -- what a queue hands out -------------------------------------------------------------------------------


@pytest.mark.parametrize("is_local", [True, False], ids=["references", "bytes"])
def test_a_reader_that_several_threads_use_gives_each_item_once(is_local):
    q = EventQueue() if is_local else EventQueue.create("q")
    total = 3000
    got: list[list[int]] = []

    def read(reader: Any) -> None:
        mine: list[int] = []
        got.append(mine)
        for each in reader:
            mine.append(int(each))

    with q, q.subscribe(start="earliest") as reader:
        q.put_many([b"%d" % n for n in range(total)])
        q.shutdown()
        together(*[lambda: read(reader)] * 4)
    assert sorted(n for mine in got for n in mine) == list(range(total))
    assert all(mine == sorted(mine) for mine in got)


@pytest.mark.parametrize("kind", ["bounded", "growing", "overwriting", "slots"])
def test_a_lease_is_released_by_one_of_the_threads_that_try(kind):
    with NAMED[kind]() as q:
        for n in range(30):
            q.put(b"%064d" % n)
            lease = q.lease(1)
            released: list[int] = []

            def release(lease: Any = lease, released: list[int] = released) -> None:
                try:
                    lease.release()
                except ValueError as error:
                    assert "is over" in str(error)
                else:
                    released.append(1)

            together(*[release] * 4)
            assert released == [1]
            assert q.empty()


@pytest.mark.parametrize("ends", ["publish", "cancel", "release", "give_back"])
def test_a_slot_is_given_back_by_one_of_the_threads_that_try(ends):
    with NAMED["slots"]() as q:
        for n in range(30):
            if ends in ("release", "give_back"):
                q.put(b"%064d" % n)
            slot = q.take() if ends in ("release", "give_back") else q.loan()
            ended: list[int] = []

            def end(slot: Any = slot, ended: list[int] = ended) -> None:
                try:
                    bytes(slot.view[:1])
                    getattr(slot, ends)()
                except (ValueError, BufferError):
                    pass  # it is over, or another thread looks at it just now
                else:
                    ended.append(1)

            together(*[end] * 4)
            if not ended:
                getattr(slot, ends)()
                ended.append(1)
            assert ended == [1]
            assert (q.stats().loaned, q.stats().leased) == (0, 0)
            if ends in ("publish", "give_back"):
                q.get(timeout=0)
            assert q.stats().free == q.slots


@pytest.mark.parametrize(
    "make", [LOCAL["bounded"], NAMED["bounded"], LOCAL["events"]], ids=["local", "named", "reader"]
)
def test_loops_in_several_threads_get_each_item_once(make):
    q = make()
    getter = q.subscribe() if isinstance(q, EventQueue) else q
    total = 400
    got: list[bytes] = []

    async def take() -> None:
        while True:
            try:
                got.append(await getter.aget(timeout=20))
            except ShutDown:
                return

    def put() -> None:
        for n in range(total):
            q.put(b"%d" % n)
        q.shutdown()

    together(put, *[lambda: asyncio.run(take())] * 3)
    assert sorted(map(int, got)) == list(range(total))


# -- the interpreter --------------------------------------------------------------------------------------


@pytest.mark.skipif(HAS_GIL, reason="a Python that has a GIL cannot do without")
def test_no_module_turns_the_gil_on(children, monkeypatch):
    monkeypatch.delenv("PYTHON_GIL", raising=False)
    printed = children.run(
        """
import importlib, pkgutil, sys, queueduct
modules = [each.name for each in pkgutil.walk_packages(queueduct.__path__, "queueduct.") if ".spark" not in each.name]
for name in modules:
    importlib.import_module(name)
print(sys._is_gil_enabled(), sum(hasattr(sys.modules[name], "__file__") and sys.modules[name].__file__.endswith(".so")
                                 for name in modules))
"""
    )
    is_enabled, compiled = printed.split()
    assert is_enabled == "False"
    assert int(compiled) > 20
