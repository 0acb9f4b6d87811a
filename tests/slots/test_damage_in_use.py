"""Words of a segment of slots, as they are documented; and those that cannot be, found in use: a clean error."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from queueduct import CorruptSegment, SlotQueue
from queueduct.native import _layout
from tests.slots.faults import SLOTS
from tests.support.raw import RawSlots


@pytest.fixture
def made():
    """A sound segment of bytes, with an item in it."""
    with SLOTS.make() as q:
        q.put(b"item")


def test_a_new_segment_looks_as_it_is_documented():
    with SlotQueue.create("new", 3, item=np.dtype("<u4")), RawSlots("new") as raw:
        assert raw.free_cells() == [0, 1, 2]  # (0,0), (0,1), (0,2): two bits of index
        assert raw.used_cells() == [0, 0, 0]
        control = {
            "free head": _layout.FREE_HEAD_AT,
            "free tail": _layout.FREE_TAIL_AT,
            "used head": _layout.USED_HEAD_AT,
            "used tail": _layout.USED_TAIL_AT,
        }
        words = {name: raw.word(raw.control_offset(at)) for name, at in control.items()}
        assert words == {"free head": 0, "free tail": 4, "used head": 4, "used tail": 4}
        assert list(control.values()) == [0, 128, 256, 384]
        assert raw.word(raw.control_offset(_layout.CAPACITY_AT)) == 3
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
            raw.set_word(raw.control_offset(_layout.CAPACITY_AT), value)
            assert q.capacity == 4
            assert q.put_many([b"x"] * 9, timeout=0) == 3
            assert len(q.get_many(3)) == 3
