"""Arrays of another dtype, and masked ones, go into a queue unchanged or are refused, alone and further in."""

from __future__ import annotations

import array
import warnings

import numpy as np
import pytest

from queueduct import BoundedQueue


def test_memory_of_another_type_is_judged_as_an_array_is():
    with BoundedQueue.create("q", 8, item="<i4") as q:
        for given_ in (array.array("d", [1.5]), memoryview(array.array("d", [1.5]))):
            with pytest.raises(TypeError, match="cannot put items of dtype float64 as int32"):
                q.put_many(given_)
        with pytest.raises(ValueError, match="must come through unchanged"):
            q.put_many(array.array("q", [2**40]))
        assert q.put_many(array.array("q", [1, 2])) == 2


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("<f8", np.array([2**53 + 1])),
        ("<f8", np.array([2**63 - 1])),
        ("<f4", np.array([2**24 + 1], "<i4")),
        ("M8[ns]", np.array(["3000-01-01"], "M8[us]")),
        ("m8[ns]", np.array([10**15], "m8[s]")),
        ([("a", "<f8")], np.array([(2**53 + 1,)], [("a", "<i8")])),
        ("m8[s]", np.array([-(2**63)])),
        ("m8[s]", np.array([2**63 + 5], "<u8")),
    ],
    ids=repr,
)
def test_an_array_that_numpy_calls_safe_to_convert_is_refused_if_that_changes_it(dtype, values):
    with BoundedQueue.create("q", 4, item=dtype) as q:
        with pytest.raises(ValueError, match="must come through unchanged"):
            q.put_many(values)
        assert q.empty()


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("S21", np.array([1, 2])),
        ("S5", np.array([True])),
        ("U32", np.array([1.5])),
        ("S3", bytearray(b"abc")),  # bytes that are numbers to numpy
        ("V8", np.array([1.5])),
        ("V8", np.array([b"abcdefgh"])),
        ("V8", np.array([b"abc"], "V3")),
        ("m8[s]", np.array([True])),
        ([("a", "<f8", (3,))], np.array([(1.0,)], [("a", "<f8")])),
        ([("a", "<f8", (1,))], np.array([(1.0,)], [("a", "<f8")])),
        ([("a", "<f8")], np.array([([1.0],)], [("a", "<f8", (1,))])),
        ([("a", [("x", "<f8")])], np.array([(1.0,)], [("a", "<f8")])),
        ([("a", "<f8")], np.array([((1.0,),)], [("a", [("x", "<f8")])])),
        ([("a", "S21")], np.array([(1,)], [("a", "<i8")])),
    ],
    ids=repr,
)
def test_an_array_of_another_kind_or_shape_is_refused(dtype, values):
    with BoundedQueue.create("q", 4, item=dtype) as q:
        with pytest.raises((TypeError, ValueError)):
            q.put_many(values)
        with pytest.raises((TypeError, ValueError)):
            q.put(values[0])
        assert q.empty()


def test_whole_numbers_of_numpy_count_a_fields_unit():
    with BoundedQueue.create("q", 8, item=">m8[s]") as q:
        q.put_many(np.array([5, -7]))
        q.put_many(np.array([9], "u4"))
        assert q.get_many(4).astype("i8").tolist() == [5, -7, 9]


ROW = np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])
RECORDS = np.ma.array([(1, 2.0), (3, 4.0)], mask=[(0, 1), (0, 0)], dtype=[("a", "<i4"), ("b", "<f8")])


@pytest.mark.parametrize(
    ("dtype", "items"),
    [
        (("<f8", (3,)), [ROW]),
        (("<f8", (3,)), [np.ma.array([1.0, 2.0, 3.0]), ROW]),
        (("<f4", (3,)), [ROW]),
        (("<f8", (1,)), [ROW[1:2]]),
        (("<f8", (2, 3)), [[ROW, ROW]]),
        ([("k", "<i4"), ("row", "<f8", (3,))], [(1, ROW)]),
        (RECORDS.dtype, list(RECORDS)),
        (RECORDS.dtype, [RECORDS[0]]),
        ([("a", "<i8"), ("b", "<f8")], [RECORDS[0]]),
        ([("z", "<i4"), ("r", RECORDS.dtype)], [(1, RECORDS[0])]),
        ([("z", "<i4"), ("r", RECORDS.dtype, (2,))], [(1, RECORDS)]),
        ("<f8", list(ROW)),
        ("<i8", [np.ma.masked]),
        ("S4", [np.ma.masked]),
    ],
    ids=repr,
)
def test_a_masked_value_is_no_value_further_in_either(dtype, items):
    """numpy takes what lies behind the mask."""
    with BoundedQueue.create("q", 4, item=dtype) as q, warnings.catch_warnings(action="ignore"):
        with pytest.raises((TypeError, ValueError)):
            q.put_many(items)
        with pytest.raises((TypeError, ValueError)):
            q.put_once(items, "me", 1)
        assert q.empty()


def test_what_has_a_mask_that_masks_nothing_is_put():
    with BoundedQueue.create("q", 4, item=("<f8", (3,))) as q, BoundedQueue.create("r", 4, item=RECORDS.dtype) as r:
        q.put_many([np.ma.array([1.0, 2.0, 3.0])])
        assert q.get().tolist() == [1, 2, 3]
        r.put_many([RECORDS[1]])
        assert r.get().item() == (3, 4)


def test_a_masked_value_is_no_value():
    masked = np.ma.array([1, 2, 3], mask=[0, 1, 0], dtype="<i4")
    with BoundedQueue.create("q", 8, item="<i4") as q:
        with pytest.raises(ValueError, match=r"fill it with filled\(\), or leave it out with compressed\(\)"):
            q.put_many(masked)
        assert q.put_many(masked.compressed()) == 2
        assert q.put_many(masked.filled(9)) == 3
        assert q.get_many(9).tolist() == [1, 3, 1, 9, 3]
