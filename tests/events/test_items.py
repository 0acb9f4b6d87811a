"""What goes through an event queue: bytes of any length, records of any dtype, pickled objects."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import queueduct
from queueduct import EventQueue
from tests.support.ticks import TICK, drain


@pytest.fixture
def bytes_queue():
    with EventQueue.create("q", max_bytes=1 << 20, chunk_bytes=4096) as made:
        yield made


def test_bytes_of_any_length_come_out_as_they_went_in(bytes_queue):
    reader = bytes_queue.subscribe()
    given = [bytes([n % 251]) * n for n in [*range(300), 4095, 4096, 4097, 9000, 0, 0, 100_000, 1]]
    for each in given:
        bytes_queue.put(each)
        assert reader.get() == each
    bytes_queue.put_many(given)
    assert drain(reader) == given


def test_empty_items_are_items(bytes_queue):
    reader = bytes_queue.subscribe()
    bytes_queue.put(b"")
    bytes_queue.put_many([b""] * 1000)
    assert drain(reader) == [b""] * 1001


def test_an_item_larger_than_a_block_takes_several(bytes_queue):
    reader = bytes_queue.subscribe()
    long = np.random.default_rng(1).bytes(900_000)
    bytes_queue.put_many([b"before", long, b"after"])
    assert drain(reader) == [b"before", long, b"after"]
    assert bytes_queue.read(1, 2) == [long]


def test_long_items_one_after_the_other_use_the_same_room(bytes_queue):
    reader = bytes_queue.subscribe()
    for i in range(50):
        bytes_queue.put(bytes([i]) * 500_000, timeout=10)
        assert reader.get() == bytes([i]) * 500_000
        assert reader.try_get() is None
    assert bytes_queue.stats().resident_bytes < 3 << 20


def test_an_item_that_can_never_fit_is_refused_with_the_limit(bytes_queue):
    with pytest.raises(ValueError, match=r"an item of 1048577 bytes can never fit.*the limit is 1048576.*max_bytes"):
        bytes_queue.put(b"x" * ((1 << 20) + 1))
    with pytest.raises(ValueError, match="can never fit"):
        bytes_queue.put_many([b"a", b"x" * (1 << 21)])
    assert bytes_queue.end == 0


@pytest.mark.parametrize("given", [bytearray(b"abc"), memoryview(b"abc"), np.frombuffer(b"abc", "u1")], ids=type)
def test_anything_with_bytes_can_be_put(bytes_queue, given):
    reader = bytes_queue.subscribe()
    bytes_queue.put(given)
    bytes_queue.put_many([given, given])
    assert drain(reader) == [b"abc"] * 3


@pytest.mark.parametrize("given", ["abc", 5, None, [1], np.array([object()])], ids=repr)
def test_what_has_no_bytes_is_refused(bytes_queue, given):
    with pytest.raises(TypeError):
        bytes_queue.put(given)
    with pytest.raises(TypeError):
        bytes_queue.put_many([b"1", given])
    assert bytes_queue.end == 0


DTYPES = {
    "number": ("<f4", [1.5, -2.0, 0.0]),
    "big-endian": (">i4", [1, -2, 3]),
    "bool": ("?", [True, False, True]),
    "complex": ("<c16", [1 + 2j, -3j, 0]),
    "bytes": ("S5", [b"abcde", b"", b"x"]),
    "text": ("<U3", ["äöü", "", "€"]),
    "time": ("<M8[ns]", ["2024-01-02T03:04:05.123456789", "NaT", "1970-01-01"]),
    "interval": ("<m8[us]", [1, -5, 0]),
    "record": (TICK, [(1, 2.5), (3, 4.5), (5, 6.5)]),
    "aligned": (np.dtype([("a", "i1"), ("b", "<f8")], align=True), [(1, 2.5), (3, 4.5), (5, 6.5)]),
    "with strings": ([("sym", "S4"), ("text", "<U2"), ("qty", "<i2")], [(b"abcd", "xy", 1), (b"", "", 2)]),
    "sub-array": ([("a", "<i4", (2, 3)), ("b", "u1")], [([[1, 2, 3], [4, 5, 6]], 7), ([[0] * 3] * 2, 1)]),
    "nested": ([("p", [("x", "<f4"), ("y", "<f4")]), ("n", "<u2")], [((1.0, 2.0), 3), ((4.0, 5.0), 6)]),
    "with a gap": (
        np.dtype({"names": ["a", "b"], "formats": ["<i4", "<i4"], "offsets": [0, 12], "itemsize": 20}),
        [(1, 2), (3, 4)],
    ),
    "an odd size": ("S7", [b"1234567", b"x"]),
}


@pytest.mark.parametrize("name", list(DTYPES))
def test_records_of_every_dtype_come_out_as_they_went_in(name):
    dtype, values = DTYPES[name]
    given = np.array(values, dtype=dtype)
    with EventQueue.create("q", item=dtype) as q, EventQueue.open("q") as other:
        reader = other.subscribe()
        assert other.item == given.dtype
        for each in given:
            q.put(each)
        q.put_many(given)
        q.put_many(list(given))
        q.put_many(given[np.tile(np.arange(len(given)), 20)])
        for each in given:
            got = reader.get()
            assert type(got) is type(each)
            assert repr(got.tolist()) == repr(each.tolist())
        batch = reader.get_many(1000)
        assert type(batch) is np.ndarray
        assert batch.dtype == given.dtype
        assert repr(batch.tolist()) == repr(given.tolist() * 22)


def test_records_that_are_arrays_come_out_as_arrays():
    with EventQueue.create("q", item=np.dtype(("<i4", (2, 2)))) as q:
        reader = q.subscribe()
        q.put([[1, 2], [3, 4]])
        q.put_many(np.arange(40, dtype="<i4").reshape(10, 2, 2))
        assert (reader.get() == [[1, 2], [3, 4]]).all()
        batch = reader.get_many(100)
        assert batch.shape == (10, 2, 2)
        assert (batch == np.arange(40).reshape(10, 2, 2)).all()
        assert q.read(1, 3).shape == (2, 2, 2)


def test_numbers_come_out_as_numpy_scalars():
    with EventQueue.create("q", item="<i8") as q:
        reader = q.subscribe()
        q.put(5)
        assert isinstance(reader.get(), np.int64)


@pytest.mark.parametrize("given", [1.5, "x", [1, 2], np.array([1.5]), np.array([1, 2])], ids=repr)
def test_what_is_no_record_of_the_dtype_is_refused(given):
    with EventQueue.create("q", item="<i4") as q:
        with pytest.raises((TypeError, ValueError)):
            q.put(np.asarray(given) if isinstance(given, float) else given)
        assert q.end == 0


def test_a_record_that_was_got_is_the_getters_own():
    with EventQueue.create("q", item=TICK) as q:
        first, second = q.subscribe(), q.subscribe()
        q.put_many([(1, 1.0), (2, 2.0)])
        batch = first.get_many(2)
        batch["px"] = 9
        assert list(second.get_many(2)["px"]) == [1.0, 2.0]
        assert list(q.read(0, 2)["px"]) == [1.0, 2.0]


def test_objects_are_pickled_each_on_its_own():
    with EventQueue.create("q", item=object) as q:
        reader = q.subscribe()
        given = [None, 5, "x", [1, [2]], {"a": (1,)}, np.arange(3).tolist(), b"", Exception("x").args]
        for each in given:
            q.put(each)
        q.put_many(given)
        assert drain(reader) == given * 2
        assert q.read(0, len(given)) == given
        shared = []
        q.put_many([shared, shared])
        one, two = reader.get_many(2)
        assert one is not shared
        assert one is not two


class Poison:
    """Goes in, but not out."""

    def __reduce__(self):
        return int, ("not a number",)


def test_an_object_that_cannot_be_pickled_is_its_own_error_only():
    with EventQueue.create("q", item=object) as q:
        reader = q.subscribe()
        with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
            q.put(lambda: 0)
        assert q.end == 0
        q.put(Poison())
        q.put("next")
        with pytest.raises(ValueError, match="not a number"):
            reader.get()
        assert reader.get() == "next"


def test_a_queue_of_objects_can_be_refused_by_its_opener():
    EventQueue.create("q", item=object).close()
    for use in (EventQueue.open, queueduct.open):
        with pytest.raises(ValueError, match="allow_pickle=True"):
            use("q", allow_pickle=False)


def test_batches_of_all_sizes_keep_their_order():
    with EventQueue.create("q", max_bytes=1 << 22) as q:
        reader = q.subscribe()
        expected = []
        for size in [0, 1, 2, 3, 5, 8, 100, 1000, 0, 5000]:
            batch = [b"%d.%d" % (size, i) for i in range(size)]
            assert q.put_many(iter(batch)) == size
            expected += batch
        assert drain(reader) == expected
