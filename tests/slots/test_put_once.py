"""put_once into slots, beyond what every kind promises: what the words of a killed producer's line mean."""

from __future__ import annotations

import numpy as np
import pytest

import queueduct
from queueduct import CorruptSegment, SlotQueue
from tests.support.put_once import drained
from tests.support.raw import RawSlots

HELD, STRAY = 1, 6
IDLE, INTENDED, CLAIMED = 0, 1, 2


@pytest.fixture
def q():
    with SlotQueue.create("q", 8, slot_bytes=64) as made:
        yield made


def line_word(raw, word):
    """Where a word of the first producer's line lies."""
    return raw.field("producers_offset") + 128 + 8 * word


def slot_word(raw, slot):
    return raw.field("lines_offset") + 128 * slot


def word_of(generation, owner, state):
    return generation << 18 | owner << 3 | state


def killed(raw, slot, kept, *, phase=INTENDED, total=3, done=2):
    """As a producer leaves its line that was killed in the middle of a put."""
    raw.set_word(line_word(raw, 0), 1 << 32 | 8)  # an owner long gone
    raw.set_word(line_word(raw, 1), 1 << 63 | phase << 61 | total << 30 | done)
    raw.set_word(line_word(raw, 4), slot)
    raw.set_word(line_word(raw, 6), kept)


@pytest.mark.parametrize(("state", "missing"), [(HELD, 0), (STRAY, 1)])
@pytest.mark.parametrize("is_used_again", [False, True])
def test_what_was_not_cut_is_in_whatever_became_of_its_slot(q, state, missing, is_used_again):
    items = [b"a", b"b", b"c"]
    assert q.put_once(items, "p", 1) == 3
    with RawSlots("q") as raw:
        word = raw.word(slot_word(raw, 2))  # held, arriving, queued: two generations later
        assert word == word_of(3, 0, 3)
        killed(raw, 2, word_of(1, 1, state))
        if is_used_again:
            for _ in range(30):
                q.put(b"x", overwrite=True)
            drained(q)
        assert q.put_once(items, "p", 1) == missing
        assert raw.word(line_word(raw, 1)) == 1 << 63 | 3 << 30 | 3
        assert raw.memory[line_word(raw, 8) : line_word(raw, 16)] == b"p".ljust(64, b"\0")


@pytest.mark.parametrize(
    ("slot", "kept", "others"),
    [
        pytest.param(8, word_of(1, 1, HELD), {}, id="no such slot"),
        pytest.param(2**63, word_of(1, 1, HELD), {}, id="no slot at all"),
        pytest.param(2, word_of(1, 0, HELD), {}, id="held by nobody"),
        pytest.param(2, word_of(1, 1, 4), {}, id="a word that is not held"),
        pytest.param(2, word_of(3, 1, HELD), {}, id="a word of now that it is not"),
        pytest.param(2, word_of(2**45, 1, HELD), {}, id="a word of later"),
        pytest.param(2, word_of(1, 1, HELD), {"phase": CLAIMED}, id="a phase that slots do not have"),
        pytest.param(2, word_of(1, 1, HELD), {"done": 3}, id="all is done"),
        pytest.param(2, word_of(1, 1, HELD), {"done": 2**30 - 1}, id="more than all is done"),
    ],
)
def test_a_line_that_contradicts_the_slots_is_a_clean_error(q, slot, kept, others):
    items = [b"x"] * 3
    q.put_once(items, "p", 1)
    with RawSlots("q") as raw:
        killed(raw, slot, kept, **others)
        with pytest.raises(CorruptSegment, match="the producer 'p' contradicts"):
            q.put_once(items, "p", 1)
        q.forget_producer("p")
        drained(q)
        assert q.put_once(items, "p", 1) == 3


@pytest.mark.parametrize("owner", [1, 8, 300], ids=["alive", "never there", "not in the table"])
def test_a_slot_that_nobody_can_recover_is_an_error_and_no_wait_for_ever(q, owner):
    items = [b"x"] * 3
    q.put_once(items, "p", 1)
    with RawSlots("q") as raw:
        raw.set_word(slot_word(raw, 5), word_of(9, owner, HELD))
        killed(raw, 5, word_of(9, owner, HELD))
        with pytest.raises(CorruptSegment, match="the producer 'p' contradicts"):
            q.put_once(items, "p", 1)


def test_frames_are_put_once_as_they_are():
    frames = np.arange(60, dtype="<f4").reshape(3, 4, 5)
    with SlotQueue.create("frames", 8, item=np.dtype(("<f4", (4, 5)))) as q:
        assert q.put_once(frames, "camera", 0) == 3
        assert q.put_once(frames, "camera", 0) == 0
        np.testing.assert_array_equal(q.get_many(9), frames)
        with pytest.raises(ValueError, match="begun with 3 items: 1 items"):
            q.put_once(frames[:1], "camera", 0)


def test_what_was_put_once_and_evicted_counts_as_put():
    with SlotQueue.create("q", 2, item="i8") as q:
        assert q.put_once([1, 2], "p", 0) == 2
        assert q.put(3, overwrite=True) == 1
        q.set_capacity(1)
        assert q.put_once([1, 2], "p", 0) == 0
        assert drained(q) == [3]


def test_capacity_limits_it_like_any_put():
    with SlotQueue.create("q", 8, item="i8") as q:
        q.set_capacity(3)
        with pytest.raises(queueduct.Full, match="3 of 5 items"):
            q.put_once(range(5), "p", 0, block=False)
        assert drained(q) == [0, 1, 2]
        assert q.put_once(range(5), "p", 0) == 2


def test_an_item_longer_than_a_slot_is_refused_and_leaves_nothing_behind(q):
    with pytest.raises(ValueError, match="an item of 65 bytes does not fit into a slot"):
        q.put_once([b"a", b"x" * 65], "p", 0)
    assert (q.qsize(), q.producers()) == (0, [])


def test_a_queue_of_before_without_producers_is_still_read():
    with SlotQueue.create("q", 4, producers=0) as q:
        q.put(b"a")
        with RawSlots("q") as raw:
            assert (raw.field("producers"), raw.field("producers_offset")) == (0, 0)
        with SlotQueue.open("q") as other:
            assert other.get() == b"a"
            with pytest.raises(queueduct.TooManyProducers):
                other.put_once([b"a"], "p", 1)
