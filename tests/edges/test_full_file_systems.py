"""Somebody else fills the file system while a queue is at work: an error with a remedy, or success, and never a loss.

Every operation of every kind meets a file system without a free page. What was acknowledged stays, nobody dies of
SIGBUS, no handle is spoilt, and with room again everything goes on.
"""

from __future__ import annotations

import errno
import itertools
import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import queueduct
from queueduct import DataLost, Empty, EventQueue, Full
from tests.edges.kinds import KINDS, item, number_of
from tests.support.children import Children, needs_root

pytestmark = needs_root

PAGES = 2048  # of 4096 bytes: eight megabytes
BEFORE = 20  # items that are in a queue when the file system is full


class Room:
    """A small file system of its own, and somebody who fills it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ballast = folder / ".ballast"

    def fill(self) -> None:
        """To the last byte."""
        with open(self.ballast, "ab", buffering=0) as ballast:
            for size in (1 << 16, 1 << 12, 1):
                with pytest.raises(OSError, match="No space left"):
                    all(ballast.write(bytes(size)) for _ in itertools.count())

    def empty(self) -> None:
        self.ballast.unlink(missing_ok=True)


@pytest.fixture(params=["tmpfs", "ext4"])
def room(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Room]:
    folder = tmp_path / "small"
    folder.mkdir()
    if request.param == "tmpfs":
        mount = ["mount", "-t", "tmpfs", "-o", f"size={PAGES * 4096}", "tmpfs", str(folder)]
    else:
        image = tmp_path / "image"
        with open(image, "wb") as file:
            file.truncate(2 * PAGES * 4096)
        made = subprocess.run(["mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", str(image)], capture_output=True)
        if made.returncode:
            pytest.skip("cannot make an ext4")
        mount = ["mount", "-o", "loop", str(image), str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip(f"cannot mount {request.param} here")
    monkeypatch.setenv("QUEUEDUCT_DIR", str(folder))
    yield Room(folder)
    subprocess.run(["umount", "-l", str(folder)], check=True)


only_memory = pytest.mark.parametrize("room", ["tmpfs"], indirect=True)


def is_refusal(error: OSError) -> bool:
    """An error that says what is missing, and what to do."""
    return error.errno == errno.ENOSPC and any(
        remedy in str(error) for remedy in ("Free some", "get items out of it", "use a smaller capacity", "are needed")
    )


class Witness:
    """A queue of one kind, what was acknowledged of it, and what must still come out."""

    def __init__(self, kind: str, room: Room) -> None:
        self.kind = KINDS[kind]
        self.room = room
        self.q = self.kind.create("q", **({"max_bytes": 1 << 20} if kind in ("growing", "events") else {}))
        self.consumer = self.kind.consumer(self.q)
        self.keeping = {"overwrite": False} if kind == "overwriting" else {}  # it would lose what it has no room for
        self.is_ordered = True
        self.next = 0
        self.expected: list[int] = []
        for _ in range(BEFORE):
            self.put()

    def put(self) -> None:
        self.q.put(item(self.next), timeout=5)
        self.acknowledge(1)

    def acknowledge(self, count: int) -> None:
        self.expected += range(self.next, self.next + count)
        self.next += count

    def refused(self, work: Callable[[], Any]) -> Any:
        """What it gives; None where it was refused for want of memory."""
        try:
            return work()
        except OSError as error:
            assert is_refusal(error), error
            return None
        except Full:
            return None

    def check(self) -> None:
        """Everything that was acknowledged comes out, in order, once; and the queue goes on."""
        got = [number_of(self.consumer.get(timeout=5)) for _ in self.expected]
        assert (got if self.is_ordered else sorted(got)) == self.expected
        with pytest.raises(Empty):
            self.consumer.get_nowait()
        self.expected = []
        for _ in range(BEFORE):
            self.put()
        assert [number_of(self.consumer.get(timeout=5)) for _ in range(BEFORE)] == self.expected
        self.expected = []

    # -- what is done while the file system is full -----------------------------------------------------

    def do_put(self) -> None:
        for _ in range(64 - BEFORE):
            if self.refused(lambda: self.q.try_put(item(self.next), **self.keeping)):
                self.acknowledge(1)

    def do_put_many(self) -> None:
        count = self.refused(
            lambda: self.q.put_many([item(self.next + i) for i in range(40)], block=False, **self.keeping)
        )
        self.acknowledge(count or 0)

    def do_growth(self) -> None:
        """More than the first part of any queue that grows has room for."""
        if isinstance(self.q, queueduct.OverwritingQueue):
            return
        while count := self.refused(lambda: self.q.put_many([item(self.next + i) for i in range(100)], block=False)):
            self.acknowledge(count)

    def do_put_once(self) -> None:
        """Refused in the middle, and repeated when there is room: each item once."""
        if not self.kind.has_put_once:
            return
        items = [item(self.next + i) for i in range(30)]
        count = self.refused(lambda: self.q.put_once(items, "producer", 1, block=False))
        if count is None:
            self.room.empty()
            self.q.put_once(items, "producer", 1, timeout=5)
        self.acknowledge(30)
        assert self.q.put_once(items, "producer", 1, timeout=5) == 0

    def do_get(self) -> None:
        for _ in range(5):
            assert number_of(self.consumer.get(timeout=5)) == self.expected.pop(0)
        self.commit()

    def commit(self) -> None:
        """What a log's reader has got need not be kept."""
        if isinstance(self.q, EventQueue):
            self.consumer.commit()

    def do_get_many(self) -> None:
        got = [number_of(each) for each in self.consumer.get_many(7, timeout=5)]
        assert got == self.expected[: len(got)]
        del self.expected[: len(got)]
        self.commit()

    def do_lease(self) -> None:
        if not self.kind.has_leases:
            return
        lease = self.refused(lambda: self.q.lease(6, timeout=5))
        if lease is None:
            return
        got = [number_of(each) for each in lease.items]
        assert got == self.expected[: len(got)]
        lease.release()
        del self.expected[: len(got)]

    def do_lease_and_give_back(self) -> None:
        if self.kind.has_leases:
            lease = self.refused(lambda: self.q.lease(len(self.expected), timeout=5))
            if lease is not None:
                lease.give_back()
                self.is_ordered = False  # they come again, perhaps behind others

    def do_clear(self) -> None:
        if isinstance(self.q, EventQueue):
            self.q.clear()
            self.expected = []

    def do_keep_last(self) -> None:
        if isinstance(self.q, EventQueue):
            self.q.keep_last(5)
            self.expected = self.expected[-5:]

    def do_subscribe(self) -> None:
        if isinstance(self.q, EventQueue):
            with self.q.subscribe("another", start="earliest") as another:
                assert [number_of(each) for each in another.get_many(5)] == self.expected[:5]
                another.commit()
            with self.q.subscribe(start="latest") as latest, pytest.raises(Empty):
                latest.get_nowait()
            self.q.unsubscribe("another")

    def do_commit(self) -> None:
        if isinstance(self.q, EventQueue):
            self.do_get_many()
            self.consumer.commit()

    def do_read(self) -> None:
        if isinstance(self.q, EventQueue):
            assert [number_of(each) for each in self.q.read(0, BEFORE)] == self.expected

    def do_sync(self) -> None:
        if isinstance(self.q, EventQueue):
            self.q.sync()

    def do_set_capacity(self) -> None:
        if isinstance(self.q, queueduct.SlotQueue):
            evicted: list[int] = []
            self.q.set_capacity(10, on_evict=lambda each: evicted.append(number_of(each)))
            assert evicted == self.expected[: len(evicted)]
            del self.expected[: len(evicted)]
            self.q.set_capacity(64)

    def do_stats(self) -> None:
        assert self.q.qsize() == len(self.expected)
        assert self.q.stats()

    def do_open(self) -> None:
        with queueduct.open("q") as again:
            assert again.qsize() == len(self.expected)

    def do_close_and_open(self) -> None:
        self.q.close()
        self.q = queueduct.open("q")
        self.consumer = self.kind.consumer(self.q)

    def do_create_another(self) -> None:
        for kind in KINDS.values():
            with pytest.raises(OSError, match="no room for a segment") as refusal:
                kind.create("another")
            assert is_refusal(refusal.value)
        assert sorted(os.listdir(self.room.folder)) == sorted({*os.listdir(self.room.folder)} - {"another"})

    def do_unlink(self) -> None:
        """Its memory goes with its last handle, and not before."""
        self.q.unlink()

    def do_shutdown(self) -> None:
        self.q.shutdown()
        assert [number_of(self.consumer.get(timeout=5)) for _ in self.expected] == self.expected
        with pytest.raises(queueduct.ShutDown):
            self.consumer.get(timeout=5)
        self.q.close()
        self.q.unlink()
        self.room.empty()
        self.__init__(next(name for name in KINDS if KINDS[name] is self.kind), self.room)  # type: ignore[misc]


OPERATIONS = [name.removeprefix("do_") for name in vars(Witness) if name.startswith("do_")]


def in_a_child(children: Children, work: Callable[[], None]) -> None:
    """A SIGBUS would end the process of the tests."""
    assert children.wait(children.fork(work)) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_no_operation_on_a_full_file_system_loses_or_spoils_anything(kind, room, children):
    def work() -> None:
        for operation in OPERATIONS:
            witness = Witness(kind, room)
            room.fill()
            try:
                getattr(witness, f"do_{operation}")()
            except BaseException:
                print(f"{operation}:")
                raise
            room.empty()
            witness.check()
            witness.q.close()
            if operation != "unlink":
                witness.q.unlink()

    in_a_child(children, work)


@pytest.mark.parametrize("kind", KINDS)
def test_operations_in_any_order_on_a_file_system_that_fills_and_empties(kind, room, children, is_long):
    """One after another on one queue, with and without room."""

    def work() -> None:
        rng = random.Random(kind)
        left = {
            "shutdown",
            "unlink",
            "put_once",
            "read",
            "close_and_open",
            "create_another",
            "open",
            "lease_and_give_back",
            "subscribe",
            "stats",
            "growth",
        }
        usable = [name for name in OPERATIONS if name not in left]
        witness = Witness(kind, room)
        end = time.monotonic() + (20 if is_long else 0.7)
        while time.monotonic() < end:
            (room.fill if rng.random() < 0.5 else room.empty)()
            for _ in range(rng.randrange(1, 6)):
                if len(witness.expected) > 12:
                    getattr(witness, f"do_{rng.choice(usable)}")()
                elif witness.q.qsize() < 40:
                    witness.do_put_many()
        room.empty()
        witness.check()

    in_a_child(children, work)


FILLER = """
import errno, os, random, sys
rng = random.Random(1)
print("here", flush=True)
while True:
    fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    try:
        while True:
            os.write(fd, bytes(rng.choice((100, 4096, 65536))))
    except OSError as error:
        assert error.errno == errno.ENOSPC
    os.close(fd)
"""


@pytest.mark.parametrize("kind", KINDS)
def test_whoever_fills_it_beside_us_costs_nobody_an_item(kind, room, children, is_long):
    filler = children.start(FILLER, room.ballast)
    assert filler.stdout is not None
    assert filler.stdout.readline() == "here\n"

    def work() -> None:
        witness = None
        while witness is None:  # there is room now and then
            try:
                witness = Witness(kind, room)
            except OSError as error:
                assert is_refusal(error), error
                if "q" in os.listdir(room.folder):  # made, and then a put was refused
                    queueduct.unlink("q")
        sequence = 0
        end = time.monotonic() + (20 if is_long else 0.7)
        while time.monotonic() < end:
            if len(witness.expected) < 40:
                witness.do_put_many()
            if witness.kind.has_put_once and len(witness.expected) < 40:
                sequence += 1
                items = [item(witness.next + i) for i in range(10)]
                putting = partial(witness.q.put_once, items, "p", sequence, timeout=1)
                while witness.refused(putting) is None:
                    assert time.monotonic() < end + 20
                witness.acknowledge(10)
            if len(witness.expected) > 20:
                witness.do_get_many()
                witness.do_lease()
        filler.kill()
        filler.wait()
        room.empty()
        witness.check()

    in_a_child(children, work)


@only_memory
def test_a_dropped_readers_view_of_a_hole_is_data_lost_and_nobody_elses_trouble(room, children):
    """The chunk was given back and nobody has memory for a page of it: nobody has truncated anything."""

    def work() -> None:
        q = EventQueue.create("q", item="u8", max_bytes=1 << 20, on_full="drop_slowest", producers=0)
        other = EventQueue.open("q")
        r = q.subscribe("durable", start="earliest")
        beside = q.subscribe("beside", start="latest")
        while q.end < 60_000:
            q.put_many(np.arange(1000, dtype="u8"))
        r.get_many(49_144)
        with pytest.raises(DataLost, match="was dropped as the slowest"), r.view() as seen:  # noqa: PT012
            while not other.stats().readers_dropped:
                other.put_many(np.arange(100, dtype="u8"))
                beside.get_many(1 << 20)
                beside.commit()
            other.keep_last(10)
            room.fill()
            seen.sum()
        # still without a page to spare: what needs none goes on, with the same handle
        position = r.position
        assert position == q.earliest
        q.put(7)
        assert r.get_many(100)[-1] == 7
        with r.view() as seen:
            assert len(seen) == 0
        room.empty()
        q.put_many(np.arange(1000, dtype="u8"))
        with r.view() as seen:
            assert seen.tolist() == list(range(len(seen)))
            assert len(seen) > 0
        assert q.subscribe(start="earliest").get_many(5).tolist()
        assert other.read(q.earliest, q.end)[-1] == 999
        assert beside.get_many(1 << 20)[-1] == 999

    in_a_child(children, work)


@only_memory
def test_a_dropped_reader_may_look_at_its_hole_again_and_again(room, children):
    """Each look is its own: what a fault put in a page's place is gone with it."""

    def work() -> None:
        q = EventQueue.create("q", item="u8", max_bytes=1 << 20, on_full="drop_slowest", producers=0)
        q.put_many(np.arange(3000, dtype="u8"))
        for turn in range(5):
            r = q.subscribe(f"reader {turn}", start="earliest")
            dropped = q.stats().readers_dropped
            with pytest.raises(DataLost), r.view() as seen:  # noqa: PT012
                assert len(seen) > 0
                while q.stats().readers_dropped == dropped:
                    q.put_many(np.arange(q.end, q.end + 1000, dtype="u8"))
                q.clear()
                room.fill()
                seen.sum()
            room.empty()
            r.close()
            q.unsubscribe(f"reader {turn}")
            q.put_many(np.arange(q.end, q.end + 3000, dtype="u8"))
            with q.subscribe(start="earliest") as fresh:
                got = fresh.get_many(1 << 20)
                assert got.tolist() == list(range(int(got[0]), int(got[0]) + len(got)))

    in_a_child(children, work)
