"""Segments of events that are none, or not any more: refused by field and value, and left as they were."""

from __future__ import annotations

import os

import pytest

import queueduct
from queueduct import CorruptSegment, EventQueue
from tests.support.children import open_descriptors
from tests.support.raw import RawEvents


def snapshot(path):
    status = os.stat(path)
    return path.read_bytes(), status.st_mtime_ns, status.st_size, status.st_mode, status.st_ino


def refused(path, message):
    """Every way to open it gives the same clean error, the file is as it was, and no descriptor is left."""
    before, descriptors = snapshot(path), open_descriptors()
    messages = set()
    for use in (queueduct.open, EventQueue.open, lambda name: EventQueue.create(name, exist_ok=True)):
        with pytest.raises(CorruptSegment, match=message) as caught:
            use("q")
        messages.add(str(caught.value))
    assert queueduct.queues() == []
    assert len(messages) == 1
    assert snapshot(path) == before
    assert open_descriptors() == descriptors


@pytest.fixture
def made(queue_dir):
    """A sound segment of bytes, with an item in it."""
    with EventQueue.create("q", max_bytes=8192, participants=4, readers=4, producers=2) as q:
        q.put(b"item")
    return queue_dir / "q"


HEADER_FAULTS = {
    # field: values that it must not have
    "magic": [b"QUEUDUCL", bytes(8)],
    "layout_version": [0, 1, 2**32 - 1],
    "byte_order": [0x04030201, 0],
    "kind": [0, 1, 2, 6, 2**32 - 1],
    "item_kind": [0, 2, 3, 4, 2**32 - 1],
    "total_bytes": [0, 4096, 2**63, 2**64 - 1],
    "capacity": [0, 1, 69, 2**24, 2**24 + 1, 2**63, 2**64 - 1],
    "slot_bytes": [0, 2**32, 2**32 + 1, 2**63, 2**64 - 1],
    "participants": [0, 5, 2**14 + 1, 2**32 - 1],
    "producers": [0, 64, 2**12 + 1, 2**32 - 1],
    "item_text_bytes": [0, 4, 6, 2**20 + 1, 2**32 - 1],
    "item_text_offset": [0, 256, 513, 2**64 - 1],
    "control_offset": [0, 512, 4097, 8192, 2**64 - 8],
    "participants_offset": [0, 4096, 2**63],
    "producers_offset": [0, 4096, 2**63],
    "generations_offset": [1, 8192, 2**64 - 8],
    "lengths_offset": [1, 8192],
    "payload_offset": [1, 8192],
    "max_bytes": [0, 2**48, 2**63, 2**64 - 1],
    "block_bytes": [0, 1, 4095, 4097, 8192, 2**32, 2**63, 2**64 - 4096],
    "first_items": [0, 2**24 + 1, 2**63],
    "chunk_lines": [0, 1, 3, 127, 64, 512, 2**26, 2**63],
    "readers": [0, 5, 2**12 + 1, 2**32 - 1],
    "on_full": [0, 4, 2**32 - 1],
    "sync": [0, 4, 2**32 - 1],
    "padding": [1, 2**32 - 1],
    "readers_offset": [0, 4096, 2**64 - 128],
    "chunks_offset": [0, 4096, 2**64 - 64],
    "blocks_offset": [0, 4096, 2**64 - 4],
    "arena_offset": [0, 4096, 2**64 - 4096],
    "reserved": [b"\1" + bytes(91), bytes(91) + b"\x80"],
    "unused": [b"\1" + bytes(167), bytes(167) + b"\x80"],
}


@pytest.mark.parametrize(
    ("field", "value"),
    [(field, value) for field, values in HEADER_FAULTS.items() for value in values],
    ids=lambda value: value if isinstance(value, str) else repr(value)[:24],
)
def test_a_field_that_is_wrong_is_refused_by_its_name(made, field, value):
    """Also when the checksum is right: whoever wrote it may have meant it."""
    with RawEvents("q") as raw:
        raw.set_field(field, value)
        raw.sign() if raw.field("item_text_bytes") < 3000 else None
    # a size that is possible, but another than the rest was made for, shows in what follows from it
    name = {
        "slot_bytes": "slot_bytes|max_bytes",
        "item_text_bytes": "item_text",
        "item_kind": "item_kind|item_text",
        "kind": "kind|capacity|max_bytes",
    }.get(field, field)
    refused(made, rf"{name}|(offset|total_bytes) must be|the file has")


@pytest.mark.parametrize(
    "field",
    [
        "segment_id",
        "boot_id",
        "created_ns",
        "creator_pid",
        "checksum",
        "slot_bytes",
        "max_bytes",
        "first_items",
        "on_full",
        "sync",
        "sync_interval_ns",
    ],
)
def test_the_checksum_covers_what_no_other_rule_finds(made, field):
    with RawEvents("q") as raw:
        raw.memory[raw.fields[field][0]] ^= 3 if field in ("on_full", "sync") else 2
    refused(made, "checksum must be|must be between")


@pytest.mark.parametrize("value", [0, 1, 2**63, 2**64 - 1])
def test_an_interval_that_nobody_could_have_asked_for_is_refused(made, value):
    with RawEvents("q") as raw:
        raw.set_field("sync_interval_ns", value)
        raw.sign()
    refused(made, f"sync_interval_ns must be between .*: sync_interval_ns={value}")


def test_chunks_for_which_the_limit_has_no_room_are_refused(made):
    """first_items and max_bytes are possible each by itself, and not together."""
    with RawEvents("q") as raw:
        raw.set_field("first_items", 2**20)
        raw.sign()
    refused(made, "max_bytes|first_items")


@pytest.mark.parametrize("keep", [0, 1, 255, 256, 511, 512, 516, 4095, 4096, 8192, -4096, -1])
def test_a_file_that_is_too_short_is_refused(made, keep):
    size = made.stat().st_size
    os.truncate(made, keep if keep >= 0 else size + keep)
    refused(made, "too short for a header|the file has .* bytes, total_bytes=|item_text")


@pytest.mark.parametrize("more", [1, 4096, 1 << 30])
def test_a_file_that_is_too_long_is_refused(made, more):
    os.truncate(made, made.stat().st_size + more)
    with pytest.raises(CorruptSegment, match="the file has"):
        queueduct.open("q")


def test_a_header_that_changes_after_opening_changes_nothing(made):
    """Every size was copied once."""
    with queueduct.open("q") as q:
        reader = q.subscribe(start="earliest")
        with RawEvents("q") as raw:
            raw.memory[:512] = b"\xff" * 512
        assert q.capacity == 8192
        assert reader.get() == b"item"
        for i in range(100):
            q.put(b"%d" % i)
            assert reader.get() == b"%d" % i
        with pytest.raises(CorruptSegment, match="magic"):
            queueduct.open("q")


def use_a_truncated_file(how, size, item):
    """In a process of its own. It ends well if the call works or is refused as it should."""
    value = 1.5 if item == "f8" else b"x" * 50
    q = EventQueue.create("q", item=item, max_bytes=1 << 20)
    reader = q.subscribe()
    q.put_many([value] * 3000)
    reader.get_many(10)
    os.truncate(os.path.join(os.environ["QUEUEDUCT_DIR"], "q"), size)
    refusals = 0
    for call in (how, how, "put", "get"):
        try:
            USES[call](q, reader, value)
        except CorruptSegment as error:
            assert "truncated" in str(error)
            refusals += 1
        except (queueduct.ShutDown, queueduct.QueueClosed, queueduct.Empty, queueduct.Full, queueduct.DataLost):
            pass
    assert refusals or how in ("close", "shutdown", "clear") or size > 0, "nobody noticed"


USES = {
    "put": lambda q, r, value: q.put(value, timeout=0.2),
    "put_many": lambda q, r, value: q.put_many([value] * 500, timeout=0.2),
    "get": lambda q, r, value: r.get(timeout=0.2),
    "get_many": lambda q, r, value: r.get_many(500, timeout=0.2),
    "read": lambda q, r, value: q.read(0, q.end),
    "clear": lambda q, r, value: q.clear(),
    "subscribe": lambda q, r, value: q.subscribe(),
    "readers": lambda q, r, value: q.readers(),
    "stats": lambda q, r, value: q.stats(),
    "shutdown": lambda q, r, value: q.shutdown(),
    "close": lambda q, r, value: q.close(),
}


@pytest.mark.parametrize("item", [bytes, "f8"])
@pytest.mark.parametrize("size", [0, 60_000])
@pytest.mark.parametrize("how", list(USES))
def test_a_file_truncated_while_it_is_mapped_is_an_error_and_not_the_end(children, how, size, item):
    assert children.wait(children.fork(lambda: use_a_truncated_file(how, size, item))) == 0
