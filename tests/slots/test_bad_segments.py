"""Segments of slots that are none, or not any more: refused by field and value, and left as they were."""

from __future__ import annotations

import os
import struct

import numpy as np
import pytest

import queueduct
from queueduct import CorruptSegment, SlotQueue
from queueduct.native import _slots_layout
from tests.support.children import open_descriptors
from tests.support.raw import RawSlots


def snapshot(path):
    status = os.stat(path)
    return path.read_bytes(), status.st_mtime_ns, status.st_size, status.st_mode, status.st_ino


def refused(path, message):
    """Every way to open it gives the same clean error, the file is as it was, and no descriptor is left."""
    before, descriptors = snapshot(path), open_descriptors()
    messages = set()
    for use in (queueduct.open, SlotQueue.open, lambda name: SlotQueue.create(name, exist_ok=True)):
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
    with SlotQueue.create("q", 4, participants=4) as q:
        q.put(b"item")
    return queue_dir / "q"


HEADER_FAULTS = {
    # field: values that it must not have
    "magic": [b"QUEUDUCL", bytes(8)],
    "layout_version": [0, 1, 2**32 - 1],
    "byte_order": [0x04030201, 0],
    "kind": [0, 1, 2, 5, 6, 2**32 - 1],
    "item_kind": [0, 2, 3, 4, 2**32 - 1],
    "total_bytes": [0, 4096, 2**63, 2**64 - 1],
    "capacity": [0, 1000, 2**20 + 1, 2**63, 2**64 - 1],
    "slot_bytes": [0, 129, 2**32, 2**32 + 1, 2**63, 2**64 - 1],
    "participants": [0, 50, 2**14 + 1, 2**32 - 1],
    "producers": [0, 1, 64, 2**12 + 1, 2**32 - 1],
    "item_text_bytes": [0, 4, 6, 2**20 + 1, 2**32 - 1],
    "item_text_offset": [0, 256, 2**64 - 1],
    "control_offset": [0, 512, 4097, 8192, 2**64 - 8],
    "participants_offset": [0, 4096, 2**63],
    "producers_offset": [0, 1, 4096, 2**63],
    "generations_offset": [1, 8192, 2**64 - 8],
    "lengths_offset": [1, 8192],
    "payload_offset": [0, 1, 8192, 2**64 - 8],
    "slot_stride": [0, 1, 64, 256, 2**63],
    "free_cells_offset": [0, 4096, 2**64 - 8],
    "used_cells_offset": [0, 4096, 2**64 - 8],
    "lines_offset": [0, 4096, 2**64 - 128],
    "reserved": [b"\1" + bytes(91), bytes(91) + b"\x80"],
    "unused": [b"\1" + bytes(95), bytes(95) + b"\x80"],
}


@pytest.mark.parametrize(
    ("field", "value"),
    [(field, value) for field, values in HEADER_FAULTS.items() for value in values],
    ids=lambda value: value if isinstance(value, str) else repr(value)[:24],
)
def test_a_field_that_is_wrong_is_refused_by_its_name(made, field, value):
    """Also when the checksum is right: whoever wrote it may have meant it."""
    with RawSlots("q") as raw:
        raw.set_field(field, value)
        raw.sign() if raw.field("item_text_bytes") < 3000 else None
    # a size that is possible, but another than the rest was made for, shows in what follows from it
    name = {
        "item_text_bytes": "item_text",
        "item_kind": "item_kind|item_text",
        "kind": "kind|capacity|max_bytes|slot_bytes|participants|readers|item_text|offset|on_full|steps",
    }.get(field, field)
    refused(made, rf"{name}|(offset|total_bytes|slot_stride) must be|the file has")


@pytest.mark.parametrize("field", ["segment_id", "boot_id", "created_ns", "creator_pid", "checksum"])
def test_the_checksum_covers_what_no_other_rule_finds(made, field):
    with RawSlots("q") as raw:
        raw.memory[raw.fields[field][0]] ^= 2
    refused(made, "checksum must be")


@pytest.mark.parametrize("size", [0, 100, 256, 383, 400, 4096])
def test_a_file_that_is_too_short_is_refused(made, size):
    os.truncate(made, size)
    refused(made, "too short|the file has|item_text|checksum")


def test_a_file_that_is_truncated_while_it_is_open_is_an_error_and_no_crash(made):
    with SlotQueue.open("q") as q:
        q.put(b"1")
        os.truncate(made, 4096)
        with pytest.raises(CorruptSegment, match="was truncated while it was in use"):
            q.put_many([b"2"] * 4, timeout=0)


# -- in use ---------------------------------------------------------------------------------------------


def test_a_new_segment_looks_as_it_is_documented():
    with SlotQueue.create("new", 3, item=np.dtype("<u4")), RawSlots("new") as raw:
        assert raw.free_cells() == [0, 1, 2]  # (0,0), (0,1), (0,2): two bits of index
        assert raw.used_cells() == [0, 0, 0]
        control = {
            "free head": _slots_layout.FREE_HEAD_AT,
            "free tail": _slots_layout.FREE_TAIL_AT,
            "used head": _slots_layout.USED_HEAD_AT,
            "used tail": _slots_layout.USED_TAIL_AT,
        }
        words = {name: raw.word(raw.control_offset(at)) for name, at in control.items()}
        assert words == {"free head": 0, "free tail": 4, "used head": 4, "used tail": 4}
        assert list(control.values()) == [0, 128, 256, 384]
        assert raw.word(raw.control_offset(_slots_layout.CAPACITY_AT)) == 3
        assert raw.field("slot_stride") == 128
        assert [raw.word(raw.slot_line(i)) for i in range(3)] == [0, 0, 0]


def test_a_slot_line_says_whose_it_is_how_long_and_which():
    with SlotQueue.create("q", 4) as q, RawSlots("q") as raw:
        q.put(b"first")
        q.put(b"item")
        word, length, position = struct.unpack_from("<QQQ", raw.memory, raw.slot_line(1))
        assert (word & 7, word >> 3 & 0x7FFF, length, position) == (3, 0, 4, 1)
        with q.loan() as slot:
            word = raw.word(raw.slot_line(slot.index))
            assert (word & 7, word >> 3 & 0x7FFF) == (1, 1)


def test_a_length_beyond_the_slot_is_not_believed(made):
    with SlotQueue.open("q") as q, RawSlots("q") as raw:
        raw.set_word(raw.slot_line(0) + 8, 65)
        with pytest.raises(CorruptSegment, match="contradict each other"):
            q.get()


@pytest.mark.parametrize("queue", ["free", "used"])
def test_an_index_beyond_the_slots_is_not_believed(queue):
    with SlotQueue.create("q", 3) as q, RawSlots("q") as raw:
        q.put(b"1")
        at = raw.field(f"{queue}_cells_offset") + (8 if queue == "free" else 0)
        raw.set_word(at, raw.word(at) | 3)
        with pytest.raises(CorruptSegment, match="contradict each other"):
            q.put(b"2") if queue == "free" else q.get()


def test_a_capacity_that_nobody_set_is_not_believed(made):
    with SlotQueue.open("q") as q, RawSlots("q") as raw:
        for value in (0, 5, 2**64 - 1):
            raw.set_word(raw.control_offset(_slots_layout.CAPACITY_AT), value)
            assert q.capacity == 4
            assert q.put_many([b"x"] * 9, timeout=0) == 3
            assert len(q.get_many(3)) == 3
