"""What the bounded queue's seed says, row by row, on the raw bytes of a segment."""

from __future__ import annotations

import queue
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queueduct
from queueduct import BoundedQueue
from queueduct.native import _layout
from tests.support.deadline import until_parked
from tests.support.raw import POP, PUBLISHED, PUSH, RawSegment, claim_as_the_dead


def makers():
    return [
        pytest.param(lambda capacity: BoundedQueue(capacity), id="local"),
        pytest.param(lambda capacity: BoundedQueue.create("q", capacity), id="named"),
    ]


@pytest.mark.parametrize("make", makers())
@pytest.mark.parametrize(
    ("capacity", "remedy"),
    [
        (0, "at least 1: capacity=0; try 1"),
        (-1, "at least 1: capacity=-1; try 1"),
        (-(2**70), f"at least 1: capacity={-(2**70)}; try 1"),
        (2**32 + 1, f"at most {1 << 32}: capacity={2**32 + 1}; try {1 << 32}"),
        (2**63, f"at most {1 << 32}: capacity={2**63}; try {1 << 32}"),
        (2**64 + 2, f"at most {1 << 32}: capacity={2**64 + 2}; try {1 << 32}"),
    ],
)
def test_a_capacity_below_1_or_above_the_limit_is_refused_with_the_nearest_one(make, capacity, remedy):
    with pytest.raises(ValueError, match="capacity must be") as caught:
        make(capacity)
    assert remedy in str(caught.value)
    assert queueduct.queues() == []


@pytest.mark.parametrize("make", makers())
@pytest.mark.parametrize("capacity", [1, 2, 3, 5, 7, 10, 100, 1000])
def test_every_capacity_holds_as_many_items_as_it_says_in_order(make, capacity):
    with make(capacity) as q:
        assert q.capacity == capacity
        for _ in range(5):  # laps that begin at other slots
            for i in range(capacity):
                assert q.try_put(b"%d" % i)
            assert q.full()
            assert q.try_put(b"too many") is False
            assert q.qsize() == capacity
            assert [q.try_get() for _ in range(capacity)] == [b"%d" % i for i in range(capacity)]
            assert q.try_get() is None
            q.put(b"shift")
            assert q.get() == b"shift"


@pytest.mark.parametrize("make", makers())
@pytest.mark.parametrize("capacity", [1, 2, 3, 5, 7])
def test_a_batch_longer_than_the_queue_goes_through_it_in_pieces(make, capacity):
    with make(capacity) as q:
        items = [b"%d" % i for i in range(500)]
        putting = threading.Thread(target=q.put_many, args=(items,))
        putting.start()
        got = []
        while len(got) < len(items):
            some = q.get_many(1000, timeout=30)
            assert 1 <= len(some) <= capacity
            got += some
        putting.join()
        assert got == items
        assert q.empty()


@pytest.mark.parametrize("capacity", [1, 2, 3, 5])
def test_an_item_as_long_as_the_ring_goes_through_and_a_longer_one_is_refused(capacity):
    with BoundedQueue.create("q", capacity, slot_bytes=8) as q:
        for lap in range(3 * capacity):
            item = bytes([lap]) * (8 * capacity)
            q.put(item)
            assert q.full()
            assert q.try_put(b"x") is False
            assert q.get() == item
            q.put(b"shift")
            assert q.get() == b"shift"
        limit = f"can never fit into .*the limit is {8 * capacity} bytes .*capacity={capacity}.*larger capacity or slot"
        for put in (q.put, q.try_put, lambda item: q.put_many([b"a", item])):
            with pytest.raises(ValueError, match=limit):
                put(bytes(8 * capacity + 1))
        assert q.empty()


@pytest.mark.parametrize("capacity", [1, 3, 5])
def test_a_dead_participants_slots_come_back_at_every_capacity(capacity):
    with BoundedQueue.create("q", capacity, item="<u8") as q:
        q.put_many(np.arange(capacity, dtype="<u8"))
        claim_as_the_dead("q", 5, POP, 0, capacity)
        assert sorted(int(q.get(timeout=30)) for _ in range(capacity)) == list(range(capacity))
        claim_as_the_dead("q", 5, PUSH, capacity, capacity)
        for value in range(3 * capacity):
            q.put(value, timeout=30)
            assert q.get(timeout=30) == value
        stats = q.stats()
        assert (stats.tombstones, stats.redelivered, stats.size) == (capacity, capacity, 0)


@pytest.mark.parametrize("make", makers())
@pytest.mark.parametrize("capacity", [True, False, 8.0, "8", b"8", None, [8]])
def test_a_capacity_that_is_no_integer_is_a_type_error(make, capacity):
    with pytest.raises(TypeError, match=r"capacity must be an int|BoundedQueue\(\) makes a queue between threads"):
        make(capacity)
    assert queueduct.queues() == []


@pytest.mark.parametrize("make", makers())
def test_a_capacity_may_be_anything_with_an_index(make):
    assert make(np.int32(8)).capacity == 8


@pytest.mark.parametrize("make", makers())
def test_one_is_the_smallest_capacity_and_holds_one_item(make):
    with make(1) as q:
        for _ in range(3):
            assert [q.try_put(b"a"), q.try_put(b"b")] == [True, False]
            assert [q.try_get(), q.try_get()] == [b"a", None]


@pytest.mark.parametrize("field", ["slot_bytes", "participants"])
@pytest.mark.parametrize(
    ("value", "error"), [(0, ValueError), (-1, ValueError), (2**40, ValueError), (True, TypeError), (1.5, TypeError)]
)
def test_other_sizes_are_checked_too(field, value, error):
    with pytest.raises(error, match=field):
        BoundedQueue.create("q", 8, **{field: value})
    assert queueduct.queues() == []


def test_sizes_whose_product_is_beyond_any_address_space_are_refused():
    with pytest.raises(ValueError, match=r"capacity \* slot_bytes must be at most"):
        BoundedQueue.create("q", 1 << 32, slot_bytes=1 << 20)


@pytest.mark.parametrize("capacity", [1, 2, 3, 16, 1000])
def test_the_generation_of_slot_i_starts_at_i(capacity):
    with BoundedQueue.create("q", capacity), RawSegment("q") as raw:
        assert raw.generations() == list(range(capacity))
        assert (raw.push_position, raw.pop_position) == (0, 0)


def test_generations_of_a_queue_too_long_for_one_write_start_right_as_well():
    capacity = 1 << 18
    with BoundedQueue.create("q", capacity, slot_bytes=1), RawSegment("q") as raw:
        at = raw.field("generations_offset")
        assert (np.frombuffer(raw.memory[at : at + 8 * capacity], "<u8") == np.arange(capacity)).all()


def test_the_header_says_what_the_layout_documents():
    with BoundedQueue.create("q", 16, item="f8", participants=3, producers=5), RawSegment("q") as raw:
        assert raw.memory[:8] == _layout.MAGIC
        assert raw.field("kind") == 1
        assert (raw.field("capacity"), raw.field("slot_bytes"), raw.field("participants")) == (16, 8, 3)
        assert raw.field("producers") == 5
        offsets = _layout.bounded_layout(16, 8, 3, 5, raw.field("item_text_bytes"), False)
        assert {name: raw.field(name) for name in offsets} == offsets
        assert raw.field("total_bytes") == len(raw.memory)


@pytest.mark.parametrize("capacity", [1, 3, 4])
def test_a_push_at_p_sets_generation_p_published_and_a_pop_p_plus_capacity(capacity):
    with BoundedQueue.create("q", capacity, item="<u8") as q, RawSegment("q") as raw:
        expected = list(range(capacity))
        for position in range(3 * capacity):
            index = position % capacity
            assert expected[index] == position  # a push needs this
            q.put(position + 100)
            expected[index] = PUBLISHED | position
            assert raw.generations() == expected
            assert (raw.push_position, raw.pop_position) == (position + 1, position)
            assert int.from_bytes(raw.slot(index), "little") == position + 100
            assert q.get() == position + 100
            expected[index] = position + capacity
            assert raw.generations() == expected
            assert (raw.push_position, raw.pop_position) == (position + 1, position + 1)


def test_a_slow_readers_slot_is_never_overwritten():
    """A live reader has claimed position 0 and reads on: its slot stays published, and a lap later a put waits."""
    with BoundedQueue.create("q", 4, item="<u8") as q, RawSegment("q") as raw:
        q.put_many([10, 11, 12, 13])
        raw.pop_position = 1  # claimed, not released
        assert q.get_many(4).tolist() == [11, 12, 13]
        assert q.try_put(14) is False
        with pytest.raises(queueduct.Full):
            q.put(14, timeout=0.01)
        assert raw.generations()[0] == PUBLISHED
        assert int.from_bytes(raw.slot(0), "little") == 10
        raw.set_generation(0, 4)  # the reader is done
        q.put(14)
        assert q.get() == 14


def test_a_slow_writers_slot_is_never_read():
    """A live writer has claimed position 0 and writes on: gets wait for it, and do not pass it by."""
    reader = BoundedQueue.create("q", 4, item="<u8")
    writer = BoundedQueue.open("q")
    writer.qsize()
    assert writer.try_get() is None  # joins: now the line's lock is held, so its owner lives
    with RawSegment("q") as raw:
        assert raw.participants_used == 1
        claim_as_the_dead("q", 0, PUSH, 0, 1)
        reader.put(11)
        assert reader.try_get() is None
        with pytest.raises(queueduct.Empty):
            reader.get(timeout=0.3)  # long enough for a look at who is dead
        raw.set_generation(0, PUBLISHED)  # the writer is done
        assert reader.get_many(4).tolist() == [0, 11]
    assert reader.stats().tombstones == 0
    reader.close()
    writer.close()


@pytest.mark.parametrize("make", makers())
def test_full_is_false_and_empty_is_nothing_for_those_who_try(make):
    with make(2) as q:
        nothing = object()
        assert q.try_get() is None
        assert q.try_get(nothing) is nothing
        assert q.try_put(b"1") is True
        assert q.try_put(b"2") is True
        assert q.try_put(b"3") is False
        assert q.full()
        assert q.try_get(nothing) == b"1"


@pytest.mark.parametrize("make", makers())
def test_nowait_forms_raise_the_standard_librarys_own_errors(make):
    with make(2) as q:
        with pytest.raises(queue.Empty):
            q.get_nowait()
        q.put_nowait(b"1")
        q.put_nowait(b"2")
        with pytest.raises(queue.Full):
            q.put_nowait(b"3")


@pytest.mark.parametrize("make", makers())
def test_put_and_get_wait_until_their_timeout(make):
    with make(2) as q:
        start = time.monotonic()
        with pytest.raises(queueduct.Empty):
            q.get(timeout=0.15)
        assert time.monotonic() - start >= 0.15
        q.put_many([b"1", b"2"])
        start = time.monotonic()
        with pytest.raises(queueduct.Full):
            q.put(b"3", timeout=0.15)
        assert time.monotonic() - start >= 0.15


@pytest.mark.parametrize("make", makers())
def test_a_waiting_get_is_woken_by_a_put_and_a_waiting_put_by_a_get(make):
    with make(2) as q:
        got = []
        getter = threading.Thread(target=lambda: got.append(q.get()))
        getter.start()
        until_parked(getter)
        q.put(b"1")
        getter.join(30)
        assert got == [b"1"]
        q.put_many([b"2", b"3"])
        putter = threading.Thread(target=q.put, args=(b"4",))
        putter.start()
        until_parked(putter)
        assert q.get() == b"2"
        putter.join(30)
        assert q.get_many(9) == [b"3", b"4"]


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 2**32)),
        st.tuples(st.just("get"), st.just(0)),
        st.tuples(st.just("put_many"), st.integers(0, 12)),
        st.tuples(st.just("get_many"), st.integers(1, 12)),
    ),
    max_size=60,
)


@given(operations=OPERATIONS, capacity=st.sampled_from([1, 3, 7, 8]))
@settings(max_examples=60, deadline=None)
def test_positions_rise_and_generations_are_next_to_them(operations, capacity):
    """Whatever is done: push and pop positions only rise, and each slot is free or published for the p next to it."""
    q = BoundedQueue.create("positions", capacity, item="<u8")
    try:
        with RawSegment("positions") as raw:
            before = (0, 0)
            for operation, argument in operations:
                if operation == "put":
                    q.try_put(argument)
                elif operation == "get":
                    q.try_get()
                elif operation == "put_many":
                    q.put_many(np.arange(argument, dtype="<u8"), timeout=0) if not q.full() or argument == 0 else None
                elif not q.empty():
                    q.get_many(argument)
                now = (raw.push_position, raw.pop_position)
                assert now[0] >= before[0]
                assert now[1] >= before[1]
                assert 0 <= now[0] - now[1] <= capacity
                published = range(now[1], now[0])
                free = range(now[0], now[1] + capacity)
                expected = {p % capacity: PUBLISHED | p for p in published} | {p % capacity: p for p in free}
                assert raw.generations() == [expected[i] for i in range(capacity)]
                before = now
    finally:
        q.close()
        q.unlink()


@pytest.mark.parametrize("capacity", [1, 3, 4, 1000])
def test_positions_near_the_end_of_their_range_still_work(capacity):
    """62 bits: nobody will get there by putting, but the arithmetic holds."""
    with BoundedQueue.create("q", capacity, item="<u8") as q, RawSegment("q") as raw:
        start = (1 << 62) - 2000
        raw.push_position = raw.pop_position = start
        for position in range(start, start + capacity):
            raw.set_generation(position % capacity, position)
        for value in range(20):
            q.put(value)
            assert q.get() == value
        assert raw.push_position == start + 20
