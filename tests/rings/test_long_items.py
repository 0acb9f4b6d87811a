"""Items longer than a slot take several, in one step; the payload is one circle."""

from __future__ import annotations

import mmap
import os
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queueduct
from queueduct import BoundedQueue
from tests.support.deadline import until_parked
from tests.support.raw import RawSegment

SLOT = 16
CAPACITY = 8


@pytest.fixture
def q():
    with BoundedQueue.create("q", CAPACITY, slot_bytes=SLOT) as made:
        yield made


def pattern(length: int, seed: int = 0) -> bytes:
    """Bytes that tell their place, so that a shifted or torn copy shows."""
    return bytes((seed * 31 + i * 7) % 251 for i in range(length))


@pytest.mark.parametrize(
    ("length", "slots"),
    [(0, 1), (1, 1), (SLOT - 1, 1), (SLOT, 1), (SLOT + 1, 2), (2 * SLOT, 2), (5 * SLOT + 3, 6), (CAPACITY * SLOT, 8)],
)
def test_an_item_takes_as_many_slots_as_it_needs(q, length, slots):
    item = pattern(length)
    q.put(item)
    assert q.stats().push_position == slots
    assert q.qsize() == 1
    assert q.get() == item
    assert q.stats().pop_position == slots
    assert q.empty()


def test_the_head_carries_the_length_and_the_others_their_distance(q):
    q.put(b"x")
    q.put(pattern(3 * SLOT))
    with RawSegment("q") as raw:
        continuation = 1 << 31
        assert [raw.length(i) for i in range(4)] == [1, 3 * SLOT, continuation | 1, continuation | 2]


@pytest.mark.parametrize("start", range(CAPACITY))
@pytest.mark.parametrize("length", [SLOT + 1, 3 * SLOT, 7 * SLOT + 5, CAPACITY * SLOT])
def test_an_item_across_the_wrap_comes_out_whole(q, start, length):
    for _ in range(start):
        q.put(b"")
        q.get()
    item = pattern(length, start)
    q.put(item)
    assert q.get() == item


def test_an_item_that_fills_the_whole_ring_leaves_no_room(q):
    q.put(bytes(CAPACITY * SLOT))
    assert q.full()
    assert q.try_put(b"") is False
    assert q.qsize() == 1


@pytest.mark.parametrize("put", ["put", "try_put", "put_nowait"])
def test_an_item_that_can_never_fit_is_refused_with_size_limit_and_option(q, put):
    with pytest.raises(ValueError, match="can never fit") as caught:
        getattr(q, put)(bytes(CAPACITY * SLOT + 1))
    for part in ("129 bytes", "the limit is 128 bytes", "slot_bytes=16", "capacity=8", "larger capacity or slot_bytes"):
        assert part in str(caught.value)
    assert q.empty()


def test_a_batch_with_an_item_that_can_never_fit_puts_nothing(q):
    with pytest.raises(ValueError, match="can never fit"):
        q.put_many([b"a", bytes(CAPACITY * SLOT + 1), b"b"])
    assert q.empty()
    assert q.stats().push_position == 0


def test_a_pickled_object_that_can_never_fit_is_refused_as_well():
    with BoundedQueue.create("objects", 2, item=object, slot_bytes=32) as objects:
        with pytest.raises(ValueError, match="can never fit"):
            objects.put("x" * 100)
        objects.put("x")
        assert objects.get() == "x"


def test_an_item_longer_than_a_length_word_can_say_is_refused(tmp_path, monkeypatch):
    """Two slots of more than 2 GiB, on a disk, where room is only reserved."""
    free = os.statvfs(tmp_path)
    if free.f_bavail * free.f_frsize < 6 << 30:
        pytest.skip("needs 6 GiB of disk")
    monkeypatch.setenv("QUEUEDUCT_DIR", str(tmp_path))
    length = 1 << 31
    with BoundedQueue.create("huge", 2, slot_bytes=length + 4096) as huge, mmap.mmap(-1, length) as item:
        with pytest.raises(ValueError, match=r"can never fit.*the limit is 2147483647 bytes"):
            huge.put(item)
        with pytest.raises(ValueError, match=r"can never fit.*the limit is 2147483647 bytes"):
            huge.put_many([item])
        huge.put(b"small")
        assert huge.get() == b"small"


def test_a_long_item_waits_until_all_its_slots_are_free(q):
    for i in range(6):
        q.put(bytes([i]))
    item = pattern(4 * SLOT)
    assert q.try_put(item) is False
    putter = threading.Thread(target=q.put, args=(item,))
    putter.start()
    until_parked(putter)
    for i in range(2):
        assert q.get() == bytes([i])
    putter.join(30)
    assert q.get_many(100) == [bytes([i]) for i in range(2, 6)] + [item]


def test_long_and_short_items_keep_their_order(q):
    written = [pattern(n, n) for n in (0, 1, SLOT + 1, 40, 3, 2 * SLOT, SLOT, 7)]
    for item in written[:4]:
        q.put(item)
    assert q.qsize() == 4
    assert [q.get() for _ in range(4)] == written[:4]
    assert q.put_many(written[4:]) == 4
    assert q.get_many(4) == written[4:]


def test_qsize_counts_items_not_slots(q):
    q.put(bytes(3 * SLOT))
    q.put(b"")
    q.put(bytes(2 * SLOT))
    assert (q.qsize(), len(q), q.stats().size) == (3, 3, 3)
    assert q.stats().push_position == 6
    assert not q.full()


def test_a_megabyte_goes_through_with_the_copies_outside_the_gil():
    item = os.urandom(1 << 20)
    with BoundedQueue.create("large", 1024, slot_bytes=4096) as large:
        for _ in range(5):
            large.put(item)
            large.put(b"between")
            assert large.get() == item
            assert large.get() == b"between"


@given(
    lengths=st.lists(st.integers(0, CAPACITY * SLOT), min_size=1, max_size=40),
    reads=st.lists(st.integers(1, 9), min_size=1, max_size=40),
)
@settings(max_examples=80, deadline=None)
def test_any_mixture_of_lengths_comes_out_as_it_went_in(lengths, reads):
    written, read = [], []
    with BoundedQueue.create("mixture", CAPACITY, slot_bytes=SLOT) as mixture:
        try:
            pending = [pattern(length, i) for i, length in enumerate(lengths)]
            turn = 0
            while len(read) < len(lengths):
                rest = pending[len(written) :]
                if rest:
                    try:
                        written += rest[: mixture.put_many(rest[: turn % 5 + 1], block=False)]
                    except queueduct.Full:
                        assert not mixture.empty()
                if not mixture.empty():
                    read += mixture.get_many(reads[turn % len(reads)])
                turn += 1
            assert read == pending
        finally:
            mixture.unlink()
