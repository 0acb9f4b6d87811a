"""Growing segments that are none, or not any more: refused by field and value, and left as they were."""

from __future__ import annotations

import os
import struct

import pytest

import queueduct
from queueduct import CorruptSegment, GrowingQueue
from queueduct.native import _layout
from tests.support.children import open_descriptors
from tests.support.raw import CLOSED_BIT, LINE_BYTES, RawGrowing

SHRINKING_BIT = 1 << 62
STEPS = 4
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


def snapshot(path):
    status = os.stat(path)
    return path.read_bytes(), status.st_mtime_ns, status.st_size, status.st_mode, status.st_ino


def refused(path, message):
    """Every way to open it gives the same clean error, the file is as it was, and no descriptor is left."""
    before, descriptors = snapshot(path), open_descriptors()
    messages = set()
    for use in (queueduct.open, GrowingQueue.open, lambda name: GrowingQueue.create(name, exist_ok=True)):
        with pytest.raises(CorruptSegment, match=message) as caught:
            use("q")
        messages.add(str(caught.value))
    assert queueduct.queues() == []
    assert len(messages) == 1
    assert snapshot(path) == before
    assert open_descriptors() == descriptors


def make(**options):
    """Sub-queues of 8, 32, 128 and 512 slots."""
    sizes = {"slot_bytes": 32, "first_bytes": 256, "steps": STEPS, "participants": 4, "producers": 2}
    return GrowingQueue.create("q", **{**sizes, **options})


@pytest.fixture
def made(queue_dir):
    """A sound segment of bytes, with an item in it."""
    with make() as q:
        q.put(b"item")
    return queue_dir / "q"


HEADER_FAULTS = {
    # field: values that it must not have
    "magic": [b"QUEUDUCL", bytes(8)],
    "layout_version": [0, 1, 2**32 - 1],
    "byte_order": [0x04030201, 0],
    "kind": [0, 1, 6, 2**32 - 1],
    "item_kind": [0, 2, 3, 4, 2**32 - 1],
    "total_bytes": [0, 4096, 2**63, 2**64 - 1],
    "capacity": [0, 1, 511, 1024, 2**63, 2**64 - 1],
    "slot_bytes": [0, 33, 2**32, 2**32 + 1, 2**63, 2**64 - 1],
    "participants": [0, 200, 2**14 + 1, 2**32 - 1],
    "producers": [0, 200, 2**12 + 1, 2**32 - 1],
    "item_text_bytes": [0, 4, 6, 2**20 + 1, 2**32 - 1],
    "item_text_offset": [0, 256, 513, 2**64 - 1],
    "control_offset": [0, 512, 4097, 8192, 2**64 - 8],
    "participants_offset": [0, 4096, 2**63],
    "producers_offset": [0, 4096, 2**63],
    "generations_offset": [1, 8192, 2**64 - 8],
    "lengths_offset": [1, 8192],
    "payload_offset": [1, 8192],
    "first_bytes": [0, 1, 512, 2**32, 2**32 + 1, 2**63, 2**64 - 1],
    "max_bytes": [1, 4096, 2**48 + 1, 2**63, 2**64 - 1],
    "steps": [0, 3, 5, 16, 17, 2**32 - 1],
    "padding": [1, 2**32 - 1],
    "levels_offset": [0, 4096, 2**64 - 128],
    "regions_offset": [0, 4096, 2**64 - 4096],
    "reserved": [b"\1" + bytes(91), bytes(91) + b"\x80"],
    "unused": [b"\1" + bytes(215), bytes(215) + b"\x80"],
}
# a size that is possible, but another than the rest was made for, shows in what follows from it
FOLLOWS = {
    "item_kind": "item_kind|item_text",
    "item_text_bytes": "item_text",
    "first_bytes": "first_bytes|capacity",
    "steps": "steps|capacity",
}


@pytest.mark.parametrize(
    ("field", "value"),
    [(field, value) for field, values in HEADER_FAULTS.items() for value in values],
    ids=lambda value: value if isinstance(value, str) else repr(value)[:24],
)
def test_a_field_that_is_wrong_is_refused_by_its_name(made, field, value):
    """Also when the checksum is right: whoever wrote it may have meant it."""
    with RawGrowing("q") as raw:
        raw.set_field(field, value)
        raw.sign() if raw.field("item_text_bytes") < 3000 else None
    refused(made, f"{FOLLOWS.get(field, field)}|(offset|total_bytes) must be|the file has")


def test_every_field_of_the_header_is_tried():
    untried = {"segment_id", "boot_id", "created_ns", "creator_pid", "checksum"}  # any value is one that can be
    assert _layout.GROWING_FIELDS.keys() - HEADER_FAULTS.keys() == untried


@pytest.mark.parametrize("keep", [0, 1, 511, 4096, -4096, -1])
def test_a_file_that_is_too_short_is_refused(made, keep):
    os.truncate(made, keep if keep >= 0 else made.stat().st_size + keep)
    refused(made, "too short for a header|the file has .* bytes, total_bytes=|item_text")


# -- in use ---------------------------------------------------------------------------------------------

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


@pytest.mark.parametrize("stage", [0x0001, 0x0400, 0xFFFF, 0x00FF, 0x0102 << 8 | 0xFF, 2**64 - 1])
def test_levels_that_cannot_be_are_noticed_in_use(stage):
    with make() as q:
        for i in range(20):
            q.put(b"%d" % i)
        with RawGrowing("q") as raw:
            raw.set_word(raw.field("control_offset"), stage)
        errors = errors_of(q)
        assert errors
        assert all(f"stage={stage:#x}" in error for error in errors)
        assert all("recreate the queue" in error for error in errors)


@pytest.mark.parametrize("level", range(2))
@pytest.mark.parametrize("word", LEVEL_WORDS)
@pytest.mark.parametrize(
    "value", [0, 1, 7, 2**22, 2**40, 2**58 - 1, SHRINKING_BIT, CLOSED_BIT, CLOSED_BIT | SHRINKING_BIT | 9, 2**64 - 1]
)
def test_whatever_stands_in_the_words_of_a_level_every_call_ends(level, word, value):
    """With items in the first level and in the second, which is written."""
    with make() as q:
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
    with make() as q:
        with RawGrowing("q") as raw:
            struct.pack_into("<Q", raw.memory, raw.field("control_offset") + 4 * LINE_BYTES, 2**64 - 1)
        for i in range(100):
            q.put(b"%d" % i)
        assert [int(q.get()) for _ in range(100)] == list(range(100))
        assert q.stats().grown == 2
