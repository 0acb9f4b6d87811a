"""Words of a ring that cannot be, found in use: a clean error or the right items, never a hang."""

from __future__ import annotations

import struct

import pytest

import queueduct
from queueduct import BoundedQueue, CorruptSegment
from queueduct.native import _layout
from tests.rings.faults import BOUNDED, make_growing
from tests.support.raw import CLOSED_BIT, LINE_BYTES, PUBLISHED, RawGrowing, RawSegment


@pytest.fixture
def made():
    """A sound segment of bytes, with an item in it."""
    with BOUNDED.make() as q:
        q.put(b"item")


CONTROL_FAULTS = {
    # (push position, pop position): what a queue of 16 can never have
    "pop beyond push": (3, 5),
    "pop far beyond push": (3, 2**40),
    "push too far ahead": (1 + 17, 1),
    "push very far ahead": (2**50, 1),
    "push near the end": (2**63 - 1, 2**63 - 2),
    "both elsewhere": (12345, 12345),
}


@pytest.mark.parametrize("item", [bytes, "S16", object])
@pytest.mark.parametrize(("push", "pop"), list(CONTROL_FAULTS.values()), ids=list(CONTROL_FAULTS))
def test_positions_that_cannot_be_are_noticed_in_use(item, push, pop):
    """Never a hang, never an item that was not put: each call gives an item that was, or a clean error."""
    with BoundedQueue.create("q", 16, item=item) as q:
        for i in range(3):
            q.put(b"%d" % i)
        with RawSegment("q") as raw:
            raw.push_position, raw.pop_position = push, pop
        errors = []
        calls = [q.try_get, lambda: q.get(timeout=0.3), lambda: q.get_many(5, timeout=0.3)]
        calls += [
            lambda: q.try_put(b"x"),
            lambda: q.put(b"x", timeout=0.3),
            lambda: q.put_many([b"x"] * 20, timeout=0.3),
        ]
        for call in calls:
            try:
                call()
            except CorruptSegment as error:
                errors.append(str(error))
            except (queueduct.Empty, queueduct.Full):
                pass
        assert errors
        assert all("push_position=" in error for error in errors)
        assert 0 <= q.qsize() <= 16
        q.stats()


@pytest.mark.parametrize("length", [33, 16 * 32 + 1, 2**31 - 1, 2**31, 2**31 | 5, 2**32 - 1])
def test_a_length_beyond_its_slot_is_noticed_in_use(made, length):
    with queueduct.open("q") as q:
        q.put(b"second")
        with RawSegment("q") as raw:
            raw.set_length(0, length)
        try:
            got = q.get(timeout=0.3)
        except (CorruptSegment, queueduct.Empty):
            return
        assert len(got) <= 16 * 32


@pytest.mark.parametrize("generation", [1, 2, 17, 2**40, PUBLISHED | 1, CLOSED_BIT | 2, 2**64 - 1, 3 << 62])
def test_a_generation_that_cannot_be_is_noticed_in_use(made, generation):
    with queueduct.open("q") as q:
        with RawSegment("q") as raw:
            raw.set_generation(0, generation)
        for call in (lambda: q.get(timeout=0.3), lambda: q.get_many(3, timeout=0.3)):
            with pytest.raises((CorruptSegment, queueduct.Empty)):
                call()


def test_a_number_of_participants_in_use_beyond_the_table_is_not_believed(made):
    with queueduct.open("q") as q:
        with RawSegment("q") as raw:
            struct.pack_into("<I", raw.memory, raw.field("control_offset") + 512, 2**32 - 1)
        assert q.stats().participants <= 4
        assert q.get() == b"item"
        q.put(b"1")


# -- growing ----------------------------------------------------------------------------------------------

SHRINKING_BIT = 1 << 62
# words of a level's three lines
LEVEL_WORDS = {
    "push_position": 0,
    "pop_position": LINE_BYTES,
    "opening": 2 * LINE_BYTES,
    "planned": 2 * LINE_BYTES + 8,
    "prepared": 2 * LINE_BYTES + 16,
    "reset_position": 2 * LINE_BYTES + 24,
    "reset_slots": 2 * LINE_BYTES + 32,
}

CALLS = [
    lambda q: q.try_get(),
    lambda q: q.get(timeout=0.01),
    lambda q: q.get_many(5, timeout=0.01),
    lambda q: q.lease(5, timeout=0.01).release(),
    lambda q: q.try_put(b"x"),
    lambda q: q.put(b"x" * 100, timeout=0.01),
    lambda q: q.put_many([b"x"] * 100, timeout=0.01),
    lambda q: q.put_once([b"x"] * 20, "p", 1, timeout=0.01),
    lambda q: (q.qsize(), q.full(), q.stats(), q.unreleased(range(50)), repr(q)),
]


def errors_of(q):
    """What the calls have to say. Never a hang, and nothing that was not put."""
    errors = []
    for call in CALLS:
        try:
            found = call(q)
        except CorruptSegment as error:
            errors.append(str(error))
        except (queueduct.Empty, queueduct.Full, queueduct.ShutDown):
            pass
        else:
            items = found if isinstance(found, list) else [found] if isinstance(found, bytes) else []
            assert all(item.strip(b"x") == b"" or item.isdigit() for item in items)
    return errors


@pytest.mark.parametrize("level_range", [0x0001, 0x0400, 0xFFFF, 0x00FF, 0x0102 << 8 | 0xFF, 2**64 - 1])
def test_levels_that_cannot_be_are_noticed_in_use(level_range):
    with make_growing() as q:
        for i in range(20):
            q.put(b"%d" % i)
        with RawGrowing("q") as raw:
            raw.set_word(raw.field("control_offset"), level_range)
        errors = errors_of(q)
        assert errors
        assert all(f"level_range={level_range:#x}" in error for error in errors)
        assert all("recreate the queue" in error for error in errors)


@pytest.mark.parametrize("level", range(2))
@pytest.mark.parametrize("word", LEVEL_WORDS)
@pytest.mark.parametrize(
    "value", [0, 1, 7, 2**22, 2**40, 2**58 - 1, SHRINKING_BIT, CLOSED_BIT, CLOSED_BIT | SHRINKING_BIT | 9, 2**64 - 1]
)
def test_whatever_stands_in_the_words_of_a_level_every_call_ends(level, word, value):
    """With items in the first level and in the second, which is written."""
    with make_growing() as q:
        for i in range(20):
            q.put(b"%d" % i)
        with RawGrowing("q") as raw:
            at = raw.field("levels_offset") + level * _layout.LEVEL_BYTES
            raw.set_word(at + LEVEL_WORDS[word], value)
        for error in errors_of(q) + errors_of(q):
            assert "contradict" in error
        q.shutdown()
        errors_of(q)


def test_a_lock_of_upkeep_that_names_nobody_stops_nobody():
    with make_growing() as q:
        with RawGrowing("q") as raw:
            struct.pack_into("<Q", raw.memory, raw.field("control_offset") + 4 * LINE_BYTES, 2**64 - 1)
        for i in range(100):
            q.put(b"%d" % i)
        assert [int(q.get()) for _ in range(100)] == list(range(100))
        assert q.stats().grown == 2
