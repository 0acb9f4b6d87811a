"""put_many and get_many: what they take, what they give, and what happens when there is no room for all."""

from __future__ import annotations

import array
import sys
import threading
from collections import deque

import numpy as np
import pytest

import queueduct
from queueduct import BoundedQueue
from tests.support.deadline import until_parked

RECORD = np.dtype([("a", "<i4"), ("b", "<f8")])


def local(capacity):
    return BoundedQueue(capacity), [object() for _ in range(64)]


def of_bytes(capacity):
    return BoundedQueue.create("q", capacity), [b"%d" % i for i in range(64)]


def of_objects(capacity):
    return BoundedQueue.create("q", capacity, item=object, slot_bytes=64), [(i, str(i)) for i in range(64)]


def of_records(capacity):
    return BoundedQueue.create("q", capacity, item=RECORD), [(i, i / 2) for i in range(64)]


def of_numbers(capacity):
    return BoundedQueue.create("q", capacity, item="<i8"), list(range(64))


KINDS = [local, of_bytes, of_objects, of_records, of_numbers]


def as_list(batch):
    return batch.tolist() if isinstance(batch, np.ndarray) else batch


@pytest.mark.parametrize("make", KINDS)
class TestEveryKind:
    def test_a_batch_comes_out_in_order(self, make):
        q, items = make(16)
        assert q.put_many(items[:10]) == 10
        assert as_list(q.get_many(100)) == items[:10]

    def test_batches_go_round_the_ring(self, make):
        q, items = make(8)
        for start in range(0, 60, 5):
            assert q.put_many(items[start : start + 5]) == 5
            assert as_list(q.get_many(5)) == items[start : start + 5]

    def test_an_empty_batch_is_zero_items_whatever_the_state(self, make):
        q, items = make(2)
        assert q.put_many([]) == 0
        q.put_many(items[:2])
        assert q.put_many([], block=False) == 0
        assert q.qsize() == 2

    def test_a_batch_that_fits_in_part_says_how_much_is_in(self, make):
        q, items = make(8)
        assert q.put_many(items[:20], block=False) == 8
        assert as_list(q.get_many(3)) == items[:3]
        assert q.put_many(items[8:20], timeout=0.02) == 3
        assert as_list(q.get_many(100)) == items[3:11]

    def test_full_is_raised_only_when_none_is_in(self, make):
        q, items = make(2)
        q.put_many(items[:2])
        with pytest.raises(queueduct.Full):
            q.put_many(items[2:], block=False)
        with pytest.raises(queueduct.Full):
            q.put_many(items[2:], timeout=0.02)
        assert as_list(q.get_many(9)) == items[:2]

    def test_a_batch_longer_than_the_queue_waits_for_room(self, make):
        q, items = make(4)
        result = []
        putter = threading.Thread(target=lambda: result.append(q.put_many(items)))
        putter.start()
        got = []
        while len(got) < len(items):
            got += as_list(q.get_many(3))
        putter.join(30)
        assert result == [64]
        assert got == items

    def test_get_many_gives_at_least_one_and_never_waits_to_fill(self, make):
        q, items = make(16)
        got = []
        getter = threading.Thread(target=lambda: got.append(as_list(q.get_many(10))))
        getter.start()
        until_parked(getter)
        q.put(items[0])
        getter.join(30)
        assert got == [items[:1]]
        q.put_many(items[:4])
        assert as_list(q.get_many(3)) == items[:3]
        assert as_list(q.get_many(3)) == items[3:4]

    def test_get_many_of_nothing_is_empty(self, make):
        q, _ = make(4)
        with pytest.raises(queueduct.Empty):
            q.get_many(5, block=False)
        with pytest.raises(queueduct.Empty):
            q.get_many(5, timeout=0.02)

    @pytest.mark.parametrize("most", [0, -1, -(2**40)])
    def test_get_many_of_fewer_than_one_is_refused(self, make, most):
        q, _ = make(4)
        with pytest.raises(ValueError, match="max_items must be at least 1"):
            q.get_many(most)

    @pytest.mark.parametrize("most", [1.5, "3", None, True])
    def test_get_many_of_no_integer_is_a_type_error(self, make, most):
        q, _ = make(4)
        with pytest.raises(TypeError, match="max_items must be an int"):
            q.get_many(most)

    @pytest.mark.parametrize("most", [2**62, 2**63, 2**80])
    def test_get_many_of_any_number_takes_what_is_there(self, make, most):
        q, items = make(4)
        q.put_many(items[:3])
        assert as_list(q.get_many(most)) == items[:3]

    @pytest.mark.parametrize(
        "wrap", [tuple, iter, deque, lambda items: (item for item in items), lambda items: dict.fromkeys(items).keys()]
    )
    def test_any_iterable_is_a_batch(self, make, wrap):
        q, items = make(16)
        assert q.put_many(wrap(items[:7])) == 7
        assert as_list(q.get_many(16)) == items[:7]

    def test_an_iterable_that_fails_puts_nothing(self, make):
        q, items = make(16)

        def broken():
            yield from items[:3]
            raise RuntimeError("no more")

        with pytest.raises(RuntimeError, match="no more"):
            q.put_many(broken())
        assert q.empty()

    def test_what_is_no_iterable_is_a_type_error(self, make):
        q, _ = make(4)
        with pytest.raises((TypeError, ValueError)):
            q.put_many(object())
        assert q.empty()

    def test_a_shutdown_in_the_middle_of_a_batch_says_how_much_is_in(self, make):
        q, items = make(4)
        result = []
        putter = threading.Thread(target=lambda: result.append(q.put_many(items)))
        putter.start()
        until_parked(putter)
        q.shutdown()
        putter.join(30)
        assert result == [4]
        assert as_list(q.get_many(9)) == items[:4]
        with pytest.raises(queueduct.ShutDown):
            q.put_many(items)
        with pytest.raises(queueduct.ShutDown):
            q.get_many(1)


def test_a_batch_of_records_is_one_array():
    q, items = of_records(16)
    q.put_many(items[:5])
    batch = q.get_many(16)
    assert isinstance(batch, np.ndarray)
    assert batch.dtype == RECORD
    assert batch.shape == (5,)
    assert batch.flags.writeable
    assert batch.flags.owndata


def test_an_array_of_the_queues_own_dtype_is_a_batch():
    q, _ = of_records(64)
    written = np.zeros(40, RECORD)
    written["a"] = np.arange(40)
    assert q.put_many(written) == 40
    assert (q.get_many(64) == written).all()


@pytest.mark.parametrize(
    "values",
    [
        np.arange(6, dtype="<i8")[::2],
        np.arange(6, dtype=">i8"),
        np.arange(6, dtype="i1"),
        array.array("q", range(6)),
        range(6),
        memoryview(array.array("i", range(6))),
    ],
    ids=["strided", "big-endian", "narrow", "array.array", "range", "memoryview"],
)
def test_numbers_in_any_form_are_a_batch(values):
    q, _ = of_numbers(16)
    assert q.put_many(values) == len(values)
    assert q.get_many(16).tolist() == list(values)


def test_a_batch_of_bytes_may_mix_buffers():
    q, _ = of_bytes(16)
    assert q.put_many([b"a", bytearray(b"bc"), memoryview(b"def"), np.arange(2, dtype="<u2"), b""]) == 5
    assert q.get_many(16) == [b"a", b"bc", b"def", b"\0\0\1\0", b""]


def test_a_batch_with_one_item_of_a_wrong_type_puts_nothing():
    q, _ = of_bytes(16)
    with pytest.raises(TypeError, match="takes bytes, not str"):
        q.put_many([b"a", "b", b"c"])
    with pytest.raises(TypeError, match="bytes or a contiguous buffer, not int"):
        q.put_many([b"a", 5, b"c"])
    assert q.empty()


def test_a_batch_whose_list_is_emptied_meanwhile_is_put_as_it_was_or_in_part(children):
    """Another thread empties the list while put_many waits: the batch must not follow it into freed memory.

    What is copied is the batch as it was given; references are put as long as the list has them.
    """
    out = children.run(
        """
import threading, queueduct
from tests.support.deadline import until_parked
for make in (lambda: queueduct.BoundedQueue.create("q", 2), lambda: queueduct.BoundedQueue(2)):
    q = make()
    expected = [b"item %d" % i + bytes(40) for i in range(500)]
    given = [bytes(bytearray(item)) for item in expected]
    counts = []
    def put():
        counts.append(q.put_many(given))
        q.shutdown()
    putter = threading.Thread(target=put)
    putter.start()
    until_parked(putter)
    given.clear()
    rubbish = [bytes(bytearray(b"x" * len(expected[0]))) for _ in range(5000)]
    got = list(q)
    putter.join(30)
    print(got == expected[:counts[0]], counts[0])
"""
    )
    assert out.splitlines() == ["True 500", "True 2"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="only from 3.12 on a Python class can be a buffer")
def test_a_batch_that_changes_while_it_is_read_does_no_harm(children):
    """An item that changes the list it is in, from the code that gives its bytes."""
    out = children.run(
        """
import queueduct
q = queueduct.BoundedQueue.create("q", 64)
items = []
class Growing:
    def __buffer__(self, flags):
        items.extend(bytes(8) for _ in range(100000))
        return memoryview(b"b")
class Shrinking:
    def __buffer__(self, flags):
        items.clear()
        return memoryview(b"b")
for evil in (Growing, Shrinking):
    items[:] = [b"a", evil(), b"c"]
    print(q.put_many(items), q.get_many(10) == [b"a", b"b", b"c"])
"""
    )
    assert out.splitlines() == ["3 True"] * 2


@pytest.mark.parametrize("shape", [(4,), (2, 2), (1,)])
def test_a_batch_of_arrays_has_one_more_dimension(shape):
    with BoundedQueue.create("q", 16, item=np.dtype(("<i4", shape))) as q:
        written = np.arange(5 * np.prod(shape), dtype="<i4").reshape(5, *shape)
        assert q.put_many(written) == 5
        assert (q.get_many(16) == written).all()
        q.put(written[3])
        assert (q.get() == written[3]).all()


def test_part_of_an_item_is_no_batch():
    with BoundedQueue.create("q", 16, item=np.dtype(("<i4", (3,)))) as q:
        with pytest.raises(ValueError, match=r"items of shape \(n, 3\): shape=\(4,\)"):
            q.put_many(np.arange(4, dtype="<i4"))
        with pytest.raises(ValueError, match=r"one item, of shape \(3,\): shape=\(2,\)"):
            q.put([1, 2])
        assert q.empty()
