"""put_many and get_many: what they take, what they give, and what happens when there is no room for all."""

from __future__ import annotations

import array
import sys
from collections import deque
from functools import partial

import numpy as np
import pytest

import queueduct
from queueduct import BoundedQueue
from tests.support.cases import CASES, RECORD
from tests.support.threads import Outcome, parked, results

COUNT = 64


def test_a_batch_comes_out_in_order(case):
    q = case.make(16)
    reader = case.consumer(q)
    assert q.put_many(case.items(*range(10))) == 10
    assert case.numbers(reader.get_many(100)) == list(range(10))


def test_batches_go_round_the_ring(case):
    q = case.make(8)
    reader = case.consumer(q)
    for start in range(0, 600, 5):
        assert q.put_many(case.items(*range(start, start + 5))) == 5
        assert case.numbers(reader.get_many(5)) == list(range(start, start + 5))


def test_an_empty_batch_is_zero_items_whatever_the_state(case):
    q = case.make(2)
    reader = case.consumer(q)
    assert q.put_many([]) == 0
    count = case.fill(q)
    assert q.put_many([], block=False) == 0
    assert q.qsize() == count
    assert case.number(reader.get()) == 0


def test_a_batch_that_fits_in_part_says_how_much_is_in(counted):
    q = counted.make(8)
    assert q.put_many(counted.items(*range(20)), block=False) == 8
    assert counted.numbers(q.get_many(3)) == [0, 1, 2]
    assert q.put_many(counted.items(*range(8, 20)), timeout=0.02) == 3
    assert counted.numbers(q.get_many(100)) == list(range(3, 11))


def test_full_is_raised_only_when_none_is_in(case):
    q = case.make(2)
    reader = case.consumer(q)
    count = case.fill(q)
    with pytest.raises(queueduct.Full):
        q.put_many(case.items(*range(COUNT)), block=False)
    with pytest.raises(queueduct.Full):
        q.put_many(case.items(*range(COUNT)), timeout=0.02)
    assert case.numbers(reader.get_many(10**6)) == list(range(count))


def test_a_batch_longer_than_the_queue_waits_for_room(case):
    q = case.make(4)
    reader = case.consumer(q)
    total = 2 * case.fill(case.make(4, "other")) if case.is_for_all else COUNT
    putter = Outcome(lambda: q.put_many(case.items(*range(total))))
    got = []
    while len(got) < total:
        got += case.numbers(reader.get_many(3, timeout=30))
    assert putter.result() == total
    assert got == list(range(total))


def test_get_many_gives_at_least_one_and_never_waits_to_fill(case):
    q = case.make(16)
    reader = case.consumer(q)
    getters = parked([lambda: case.numbers(reader.get_many(10))])
    q.put(case.item(0))
    assert results(getters) == [[0]]
    q.put_many(case.items(*range(4)))
    assert case.numbers(reader.get_many(3)) == [0, 1, 2]
    assert case.numbers(reader.get_many(3)) == [3]


def test_get_many_of_nothing_is_empty(case):
    reader = case.consumer(case.make(4))
    with pytest.raises(queueduct.Empty):
        reader.get_many(5, block=False)
    with pytest.raises(queueduct.Empty):
        reader.get_many(5, timeout=0.02)


@pytest.mark.parametrize("most", [0, -1, -(2**40)])
def test_get_many_of_fewer_than_one_is_refused(case, most):
    with pytest.raises(ValueError, match="max_items must be at least 1"):
        case.consumer(case.make(4)).get_many(most)


@pytest.mark.parametrize("most", [1.5, "3", None, True])
def test_get_many_of_no_integer_is_a_type_error(case, most):
    with pytest.raises(TypeError, match="max_items must be an int"):
        case.consumer(case.make(4)).get_many(most)


@pytest.mark.parametrize("most", [2**62, 2**63, 2**80])
def test_get_many_of_any_number_takes_what_is_there(case, most):
    q = case.make(4)
    reader = case.consumer(q)
    q.put_many(case.items(0, 1, 2))
    assert case.numbers(reader.get_many(most)) == [0, 1, 2]


@pytest.mark.parametrize("wrap", [tuple, iter, deque, lambda items: (item for item in items)])
def test_any_iterable_is_a_batch(case, wrap):
    q = case.make(16)
    reader = case.consumer(q)
    assert q.put_many(wrap(case.items(*range(7)))) == 7
    assert case.numbers(reader.get_many(16)) == list(range(7))


def test_the_keys_of_a_dict_are_a_batch():
    with BoundedQueue.create("q", 16) as q:
        assert q.put_many(dict.fromkeys([b"a", b"b"]).keys()) == 2
        assert q.get_many(16) == [b"a", b"b"]


def test_an_iterable_that_fails_puts_nothing(case):
    q = case.make(16)

    def broken():
        yield from case.items(0, 1, 2)
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        q.put_many(broken())
    assert q.empty()


def test_what_is_no_iterable_is_a_type_error(case):
    q = case.make(4)
    with pytest.raises((TypeError, ValueError)):
        q.put_many(object())
    assert q.empty()


def test_a_shutdown_in_the_middle_of_a_batch_says_how_much_is_in(case):
    q = case.make(4)
    reader = case.consumer(q)
    items = case.items(*range(3000 if case.is_for_all else COUNT))
    putters = parked([partial(q.put_many, items)])
    q.shutdown()
    (count,) = results(putters)
    assert 0 < count < len(items)
    if not case.is_for_all:
        assert count == 4
    assert case.numbers(reader.get_many(10**6)) == list(range(count))
    with pytest.raises(queueduct.ShutDown):
        q.put_many(items)
    with pytest.raises(queueduct.ShutDown):
        reader.get_many(1)


@pytest.mark.parametrize("name", [name for name in CASES if name.endswith("records")])
def test_a_batch_of_records_is_one_array(name):
    case = CASES[name]
    q = case.make(16)
    reader = case.consumer(q)
    q.put_many(case.items(*range(5)))
    batch = reader.get_many(16)
    assert isinstance(batch, np.ndarray)
    assert batch.dtype == RECORD
    assert batch.shape == (5,)
    assert batch.flags.writeable
    assert batch.flags.owndata


@pytest.mark.parametrize("name", [name for name in CASES if name.endswith("records")])
def test_an_array_of_the_queues_own_dtype_is_a_batch(name):
    case = CASES[name]
    q = case.make(64)
    reader = case.consumer(q)
    written = np.zeros(40, RECORD)
    written["id"] = np.arange(40)
    assert q.put_many(written) == 40
    assert (reader.get_many(64) == written).all()


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
    q = CASES["bounded, numbers"].make(16)
    assert q.put_many(values) == len(values)
    assert q.get_many(16).tolist() == list(values)


def test_a_batch_of_bytes_may_mix_buffers():
    q = CASES["bounded, bytes"].make(16)
    assert q.put_many([b"a", bytearray(b"bc"), memoryview(b"def"), np.arange(2, dtype="<u2"), b""]) == 5
    assert q.get_many(16) == [b"a", b"bc", b"def", b"\0\0\1\0", b""]


def test_a_batch_with_one_item_of_a_wrong_type_puts_nothing():
    q = CASES["bounded, bytes"].make(16)
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
