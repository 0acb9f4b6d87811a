"""What queues say of themselves: a field that several kinds have means the same in each of them."""

from __future__ import annotations

import itertools
import os
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import queueduct
from tests.support.kinds import CLASSES

STATS = {
    "bounded": queueduct.BoundedStats,
    "growing": queueduct.GrowingStats,
    "events": queueduct.EventStats,
    "overwriting": queueduct.OverwritingStats,
    "slots": queueduct.SlotStats,
}
COUNTERS = (
    "items_put",
    "bytes_put",
    "items_got",
    "bytes_got",
    "waits_for_room",
    "waits_for_items",
    "waited_seconds",
)
TIMES = Counter(field for stats in STATS.values() for field in stats._fields)
COMMON = {field for field, times in TIMES.items() if times > 1}
SIZES: dict[str, dict[str, int]] = {
    "bounded": {"capacity": 16, "slot_bytes": 64},
    "growing": {"max_bytes": 1 << 20, "slot_bytes": 64},
    "events": {"max_bytes": 1 << 20},
    "overwriting": {"capacity": 16, "message_bytes": 64},
    "slots": {"capacity": 16, "slot_bytes": 64},
}
WITH_LEASES = [kind for kind, stats in STATS.items() if "leased" in stats._fields]


class Done(NamedTuple):
    """What has been done with a queue."""

    kind: str
    put: int = 0
    got: int = 0
    """Got by get, or leased and released."""
    held: int = 0
    """On lease."""
    left: int = 0
    """Given back, or left by a dead consumer."""
    again: int = 0
    """Delivered again."""
    is_shut_down: bool = False


SAYS: dict[str, Callable[[Done], Any]] = {
    "capacity": lambda done: 16,
    "size": lambda done: done.put if done.kind == "events" else done.put - done.got - done.held,
    "leased": lambda done: done.held,
    "redelivered": lambda done: done.again,
    "puts": lambda done: done.put,
    "push_position": lambda done: done.put,
    "pop_position": lambda done: done.got + done.held + done.left,
    "tombstones": lambda done: 0,
    "slot_bytes": lambda done: 64,
    "max_bytes": lambda done: 1 << 20,
    "is_shut_down": lambda done: done.is_shut_down,
    "participants": lambda done: (done.put > 0) + (done.held > 0 and done.kind != "slots"),
    "participants_limit": lambda done: 7,
    "items_put": lambda done: done.put,
    "bytes_put": lambda done: 64 * done.put,
    "items_got": lambda done: done.got,
    "bytes_got": lambda done: 64 * done.got,
    "waits_for_room": lambda done: 0,
    "waits_for_items": lambda done: 0,
    "waited_seconds": lambda done: 0,
}
"""What each common field says after that. The bytes of memory are asked of the file."""


@pytest.fixture(params=list(STATS))
def q(request: pytest.FixtureRequest) -> Iterator[Any]:
    with CLASSES[request.param].create("q", item=bytes, participants=7, **SIZES[request.param]) as made:
        yield made


def item(number: int) -> bytes:
    return b"%064d" % number


def check(q: Any, queue_dir: Path, done: Done) -> None:
    said = q.stats()._asdict()
    common = {field: value for field, value in said.items() if field in SAYS}
    assert common == {field: SAYS[field](done) for field in common}
    assert said["resident_bytes"] == os.stat(queue_dir / "q").st_blocks * 512


def test_every_common_field_has_one_meaning() -> None:
    assert set(SAYS) | {"resident_bytes"} == COMMON


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(STATS, 2)))
def test_common_fields_come_first_and_in_one_order(one: str, other: str) -> None:
    mine, theirs = STATS[one]._fields, STATS[other]._fields
    assert [field for field in mine if field in theirs] == [field for field in theirs if field in mine]
    is_common = [field in COMMON for field in mine[: -len(COUNTERS)]]
    assert is_common == sorted(is_common, reverse=True)
    assert mine[-len(COUNTERS) :] == COUNTERS


def test_common_fields_count_puts_gets_and_the_end(q: Any, queue_dir: Path) -> None:
    check(q, queue_dir, Done(q.kind))
    q.put_many([item(number) for number in range(10)])
    check(q, queue_dir, Done(q.kind, put=10))
    consumer = q.subscribe(start="earliest") if q.kind == "events" else q
    for _ in range(3):
        consumer.get()
    check(q, queue_dir, Done(q.kind, put=10, got=3))
    q.shutdown()
    check(q, queue_dir, Done(q.kind, put=10, got=3, is_shut_down=True))


@pytest.mark.parametrize("q", WITH_LEASES, indirect=True)
def test_common_fields_tell_what_is_leased_from_what_comes_again(q: Any, queue_dir: Path) -> None:
    q.put_many([item(number) for number in range(10)])
    lease = q.lease(4)
    check(q, queue_dir, Done(q.kind, put=10, held=4))
    lease.release(2)  # two wait for another consumer
    check(q, queue_dir, Done(q.kind, put=10, got=2, left=2))
    again = q.lease(2)
    assert again.is_redelivered
    check(q, queue_dir, Done(q.kind, put=10, got=2, held=2, again=2))
    again.release()
    check(q, queue_dir, Done(q.kind, put=10, got=4, again=2))


@pytest.mark.parametrize("q", WITH_LEASES, indirect=True)
def test_what_a_killed_consumer_had_is_not_leased_but_comes_again(q: Any, queue_dir: Path) -> None:
    q.put_many([item(number) for number in range(10)])
    if (child := os.fork()) == 0:
        held = q.lease(3)
        os.kill(os.getpid(), signal.SIGKILL if held.is_held else signal.SIGTERM)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    check(q, queue_dir, Done(q.kind, put=10, left=3))
    with q.lease(3) as again:
        assert again.is_redelivered
        check(q, queue_dir, Done(q.kind, put=10, held=3, again=3))


def test_positions_of_a_ring_count_slots_and_messages_got_count_leases() -> None:
    with queueduct.BoundedQueue.create("b", 16, slot_bytes=16) as ring, queueduct.OverwritingQueue.create("o") as feed:
        ring.put_many([bytes(40), b"", b""])
        ring.get()
        held = ring.lease(1)
        assert (ring.stats().push_position, ring.stats().pop_position, held.is_held) == (5, 4, True)
        for number in range(5):
            feed.put(item(number))
        feed.get()
        with feed.lease(2):
            assert (feed.stats().puts, feed.stats().gets, feed.stats().size) == (5, 3, 2)


def test_a_slot_is_free_or_loaned_or_in_the_queue_or_leased() -> None:
    with queueduct.SlotQueue.create("s", 8, item=bytes) as q:
        q.put_many([b"1", b"2", b"3"])
        with q.take(), q.loan():
            stats = q.stats()
            assert (stats.free, stats.loaned, stats.queued, stats.leased, stats.slots) == (4, 1, 2, 1, 8)
        q.shutdown(immediate=True)
        assert (q.stats().queued, q.stats().size, q.qsize()) == (3, 0, 0)


def test_the_table_of_fields_is_that_of_the_code() -> None:
    page = (Path(__file__).parents[2] / "docs/queues/bounded.md").read_text().split("## What stats() says\n")[1]
    rows = re.findall(r"^\| `(\w+)` \| .* \| ([\w, ]+) \|$", page.split("\n## ")[0], re.MULTILINE)
    told = {field: set(STATS) if kinds == "all" else set(kinds.split(", ")) for field, kinds in rows}
    assert told == {field: {kind for kind in STATS if field in STATS[kind]._fields} for field in COMMON}
    assert len(rows) == len(told)
