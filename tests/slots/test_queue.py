"""SlotQueue with copies: put, get, batches, overwriting and a capacity that changes."""

from __future__ import annotations

import threading
from itertools import chain

import numpy as np
import pytest

import queueduct
from queueduct import Full, SlotQueue
from tests.support.deadline import until_parked


@pytest.fixture
def q():
    with SlotQueue.create("q", 4, slot_bytes=32) as made:
        yield made


def all_of(q):
    found = []
    while (item := q.try_get()) is not None:
        found.append(item)
    return found


@pytest.mark.parametrize("capacity", [1, 2, 3, 5, 8, 100])
def test_any_number_of_slots_works(capacity):
    with SlotQueue.create("q", capacity) as q:
        assert q.capacity == q.slots == capacity
        for turn in range(3):
            assert q.put_many([b"%d" % i for i in range(capacity + 2)], block=False) == capacity
            assert q.full()
            assert q.get_many(capacity + 2) == [b"%d" % i for i in range(capacity)]
            assert q.empty(), turn


@pytest.mark.parametrize("length", [0, 1, 31, 32])
def test_bytes_keep_their_length(q, length):
    q.put(b"x" * 32)
    q.put(b"y" * length)
    q.get()
    assert q.get() == b"y" * length


def test_an_item_longer_than_a_slot_is_refused_and_takes_no_slot(q):
    message = "an item of 33 bytes does not fit into a slot of 'q': the limit is slot_bytes=32"
    for put in (q.put, q.try_put, lambda item: q.put_many([b"1", item]), lambda item: q.put(item, overwrite=True)):
        with pytest.raises(ValueError, match=message):
            put(b"x" * 33)
    assert q.stats().free == 4


@pytest.mark.parametrize("item", ["text", 1, None, np.array([object()])])
def test_what_is_not_bytes_is_refused(q, item):
    with pytest.raises(TypeError):
        q.put(item)
    assert q.stats().free == 4


def test_a_long_copy_goes_through_whole():
    with SlotQueue.create("long", 2, slot_bytes=1 << 20) as q:
        item = np.random.default_rng(1).bytes(1 << 20)
        q.put(item)
        q.put(memoryview(item)[:100_000])
        assert q.get() == item
        assert q.get() == item[:100_000]


def test_records_in_batches_are_one_array():
    dtype = np.dtype([("id", "<u4"), ("half", "<f8")])
    with SlotQueue.create("records", 8, item=dtype) as q:
        records = np.array([(i, i / 2) for i in range(6)], dtype)
        assert q.put_many(records) == 6
        got = q.get_many(10)
        assert got.dtype == dtype
        assert (got == records).all()


def test_batches_of_arrays_have_one_dimension_more():
    with SlotQueue.create("arrays", 8, item=np.dtype(("<i4", (2, 3)))) as q:
        frames = np.arange(18, dtype="<i4").reshape(3, 2, 3)
        assert q.put_many(frames) == 3
        got = q.get_many(10)
        assert got.shape == (3, 2, 3)
        assert (got == frames).all()


# -- overwriting ----------------------------------------------------------------------------------------


def test_an_overwriting_put_returns_the_evicted_item(q):
    assert [q.put(b"%d" % i, overwrite=True) for i in range(7)] == [None] * 4 + [b"0", b"1", b"2"]
    assert q.stats().evicted == 3
    assert all_of(q) == [b"3", b"4", b"5", b"6"]


@pytest.mark.parametrize(
    ("item", "make", "number"),
    [
        (object, lambda i: {"id": i}, lambda item: item["id"]),
        ("<i8", int, int),
        (np.dtype(("<i4", (2, 2))), lambda i: [[i, i], [i, i]], lambda item: int(item[1][0])),
    ],
    ids=["objects", "numbers", "arrays"],
)
def test_an_evicted_item_is_whole_whatever_it_is(item, make, number):
    with SlotQueue.create("q", 2, item=item) as q:
        assert q.put(make(1), overwrite=True) is None
        assert q.put(make(2), overwrite=True) is None
        assert number(q.put(make(3), overwrite=True)) == 1
        assert [number(each) for each in q.get_many(9)] == [2, 3]


def test_an_item_to_be_delivered_again_is_the_first_to_be_evicted(q):
    q.put_many([b"1", b"2", b"3", b"4"])
    q.take().give_back()
    assert q.put(b"5", overwrite=True) == b"1"
    assert all_of(q) == [b"2", b"3", b"4", b"5"]


def test_an_overwriting_put_waits_when_every_slot_is_in_somebodys_hands(q):
    slots = [q.loan() for _ in range(4)]
    with pytest.raises(Full):
        q.put(b"1", block=False, overwrite=True)
    with pytest.raises(Full):
        q.put(b"1", timeout=0.01, overwrite=True)
    thread = threading.Thread(target=q.put, args=(b"1",), kwargs={"overwrite": True})
    thread.start()
    until_parked(thread)
    slots[2].cancel()
    thread.join(30)
    assert q.get() == b"1"


def test_overwriting_is_asked_for_by_name(q):
    with pytest.raises(TypeError):
        q.put(b"1", True, None, True)


def test_under_overwriting_puts_every_item_is_got_or_evicted_exactly_once():
    """2 overwriting producers of 3,000 and 2 consumers on 3 slots; nobody loses or doubles anything."""
    with SlotQueue.create("race", 3, item="<u8") as q:
        found: list[list[int]] = [[] for _ in range(4)]

        def produce(mine, parity):
            for i in range(3000):
                evicted = q.put(2 * i + parity, overwrite=True)
                if evicted is not None:
                    mine.append(int(evicted))

        def consume(mine):
            mine.extend(int(item) for item in q)

        producers = [threading.Thread(target=produce, args=(found[i], i)) for i in range(2)]
        consumers = [threading.Thread(target=consume, args=(found[2 + i],)) for i in range(2)]
        for thread in producers + consumers:
            thread.start()
        for thread in producers:
            thread.join(60)
        q.shutdown()
        for thread in consumers:
            thread.join(60)
        assert sorted(chain(*found)) == list(range(6000))
        assert q.stats().evicted == len(found[0]) + len(found[1])
        assert q.stats().free == 3


class Unreadable:
    """Pickles, and cannot be unpickled."""

    def __reduce__(self):
        return int, ("no number",)


def test_an_evicted_item_that_cannot_be_unpickled_comes_as_its_error():
    """The put has succeeded: if it raised, it would be repeated."""
    with SlotQueue.create("q", 1, item=object) as q:
        q.put(Unreadable())
        assert isinstance(q.put("new", overwrite=True), ValueError)
        assert q.get_many(9) == ["new"]


def test_a_smaller_capacity_evicts_all_that_is_too_much_readable_or_not():
    with SlotQueue.create("q", 4, item=object) as q:
        evicted = []
        q.put_many([1, Unreadable(), 3, 4])
        q.set_capacity(1, on_evict=evicted.append)
        assert [type(each) for each in evicted] == [int, ValueError, int]
        assert q.get_many(9) == [4]


# -- capacity -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("capacity", [0, -1, 5, 1 << 64])
def test_a_capacity_outside_is_refused(q, capacity):
    with pytest.raises(ValueError, match=f"capacity must be between 1 and the queue's 4 slots: capacity={capacity}"):
        q.set_capacity(capacity)
    assert q.capacity == 4


@pytest.mark.parametrize("capacity", [True, 2.0, "2", None])
def test_a_capacity_that_is_no_int_is_refused(q, capacity):
    with pytest.raises(TypeError, match="capacity must be an int"):
        q.set_capacity(capacity)


def test_an_on_evict_that_cannot_be_called_is_refused_before_anything_changes(q):
    q.put_many([b"1", b"2", b"3"])
    with pytest.raises(TypeError, match="on_evict must be callable or None: on_evict=5"):
        q.set_capacity(2, on_evict=5)
    assert (q.capacity, q.qsize(), q.stats().evicted) == (4, 3, 0)


@pytest.mark.parametrize("capacity", [1, 2, 3, 4])
def test_a_capacity_is_how_many_items_fit_for_every_handle(q, capacity):
    other = SlotQueue.open("q")
    q.set_capacity(capacity)
    for handle in (q, other):
        assert (handle.capacity, handle.slots) == (capacity, 4)
        assert handle.put_many([b"x"] * 9, block=False) == capacity
        assert handle.full()
        with pytest.raises(Full):
            handle.loan(0)
        assert len(handle.get_many(9)) == capacity
    other.close()


def test_a_smaller_capacity_evicts_the_oldest_first(q):
    q.put_many([b"1", b"2", b"3", b"4"])
    evicted: list[bytes] = []
    q.set_capacity(4, on_evict=evicted.append)
    assert evicted == []
    q.set_capacity(2, on_evict=evicted.append)
    assert evicted == [b"1", b"2"]
    q.set_capacity(1)
    assert q.stats().evicted == 3
    assert all_of(q) == [b"4"]


def test_a_larger_capacity_wakes_those_who_wait_for_room(q):
    q.set_capacity(1)
    q.put(b"1")
    threads = [threading.Thread(target=q.put, args=(b"2",)) for _ in range(3)]
    for thread in threads:
        thread.start()
    until_parked(*threads)
    q.set_capacity(4)
    for thread in threads:
        thread.join(30)
    assert q.qsize() == 4


def test_an_on_evict_that_raises_leaves_a_queue_that_works(q):
    q.put_many([b"1", b"2", b"3", b"4"])
    with pytest.raises(ZeroDivisionError):
        q.set_capacity(1, on_evict=lambda item: 1 / 0)
    assert q.capacity == 1
    assert not q.try_put(b"5")
    evicted: list[bytes] = []
    q.set_capacity(1, on_evict=evicted.append)
    assert evicted == [b"2", b"3"]
    assert all_of(q) == [b"4"]
    q.set_capacity(4)
    assert q.put_many([b"x"] * 9, block=False) == 4


def test_slots_in_hands_stay_there_and_count_when_they_come_back(q):
    loans = [q.loan() for _ in range(3)]
    q.put(b"1")
    evicted: list[bytes] = []
    q.set_capacity(2, on_evict=evicted.append)
    assert evicted == [b"1"]
    for loan in loans:
        loan.publish(length=0)
    assert q.qsize() == 3
    assert not q.try_put(b"2")
    assert q.get() == b""
    assert not q.try_put(b"2")
    assert q.get() == b""
    assert q.try_put(b"2")
    assert not q.try_put(b"3")


def test_with_a_smaller_capacity_an_overwriting_put_evicts_at_that_number(q):
    q.set_capacity(2)
    assert [q.put(b"%d" % i, overwrite=True) for i in range(4)] == [None, None, b"0", b"1"]


def test_a_capacity_that_changes_under_load_loses_and_doubles_nothing():
    """2 producers of 1,000, 2 consumers, and somebody who sets the capacity from 1 to 8 all the time."""
    with SlotQueue.create("load", 8, item="<u8") as q:
        got: list[list[int]] = [[], []]
        evicted: list[int] = []

        def produce(parity):
            for i in range(1000):
                q.put(2 * i + parity)

        def consume(mine):
            mine.extend(int(item) for item in q)

        producers = [threading.Thread(target=produce, args=(i,)) for i in range(2)]
        consumers = [threading.Thread(target=consume, args=(mine,)) for mine in got]
        for thread in producers + consumers:
            thread.start()
        turn = 0
        while any(thread.is_alive() for thread in producers):
            turn += 1
            q.set_capacity(1 + turn * 5 % 8, on_evict=lambda item: evicted.append(int(item)))
            stats = q.stats()
            assert stats.free + stats.loaned + stats.queued + stats.leased == 8
        q.set_capacity(8)
        q.shutdown()
        for thread in consumers:
            thread.join(60)
        assert sorted([*got[0], *got[1], *evicted]) == list(range(2000))
        assert q.stats().free == 8


# -- how it is made -------------------------------------------------------------------------------------


def test_without_a_name_there_is_none():
    with pytest.raises(TypeError, match=r"a SlotQueue has a name: use SlotQueue.create\(name"):
        SlotQueue(4)


@pytest.mark.parametrize("capacity", [0, -1, (1 << 20) + 1])
def test_a_number_of_slots_outside_is_refused(capacity):
    with pytest.raises(ValueError, match=f"capacity must be between 1 and 1048576: capacity={capacity}"):
        SlotQueue.create("q", capacity)
    assert queueduct.queues() == []


@pytest.mark.parametrize("slot_bytes", [0, -1, (1 << 32) + 1])
def test_a_size_of_slots_outside_is_refused(slot_bytes):
    with pytest.raises(ValueError, match=f"slot_bytes must be between 1 and 4294967296: slot_bytes={slot_bytes}"):
        SlotQueue.create("q", 4, slot_bytes=slot_bytes)


def test_slots_that_no_memory_holds_are_refused():
    with pytest.raises(ValueError, match=r"capacity \* slot_bytes must be at most"):
        SlotQueue.create("q", 1 << 20, slot_bytes=1 << 32)


def test_stats_add_up(q):
    q.put_many([b"1", b"2"])
    with q.loan(), q.take():
        stats = q.stats()
    assert (stats.free, stats.loaned, stats.queued, stats.leased) == (1, 1, 1, 1)
    assert (stats.slots, stats.capacity, stats.puts, stats.slot_bytes) == (4, 4, 2, 32)
    assert (stats.participants, stats.participants_limit, stats.is_shut_down) == (1, 256, False)
