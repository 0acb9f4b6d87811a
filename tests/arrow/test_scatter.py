"""Columns become records in one of two ways, at once or converted one by one: both give the same bytes and errors."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import queueduct.arrow
from queueduct import UnfitItem
from queueduct.arrow.records import fill
from queueduct.arrow.scatter.fields import blank, scattered

TEXTS = ["", "a", "abcdefgh", "abc\x00d", "x" * 7, "IBM"] * 7000
COLUMNS = {
    "i1": pa.array(np.arange(42000) % 100, pa.int8()),
    "u2": pa.array(np.arange(42000), pa.uint16()),
    "f2": pa.array(np.arange(42000).astype("f2")),
    "f4": pa.array(np.arange(42000) / 3, pa.float32()),
    "i8": pa.array(np.arange(42000) - 7),
    "M8[us]": pa.array(np.arange(42000), pa.timestamp("us", "UTC")),
    "m8[ns]": pa.array(np.arange(42000), pa.duration("ns")),
    "S8": pa.array(TEXTS),
    "S9": pa.array(TEXTS, pa.binary()),
    "U8": pa.array(TEXTS),
    "U9": pa.array(TEXTS).dictionary_encode(),
    "S10": pa.array(TEXTS).dictionary_encode(),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("start", [0, 3])
def test_a_column_is_written_at_once_as_it_is_converted(name, start):
    array = COLUMNS[name].slice(start)
    dtype = np.dtype([("before", "i1"), ("it", name), ("after", "i4")])
    here, there = np.zeros(len(array), dtype), np.zeros(len(array), dtype)
    assert scattered(here[["it"]], [array]) == [True]
    fill(there["it"], array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array, "it")
    assert here.tobytes() == there.tobytes()
    if name[0] in "SU":
        values = [value.encode() if isinstance(value, str) else value for value in array.to_pylist()]
        assert np.char.encode(here["it"]).tolist() == values if name[0] == "U" else here["it"].tolist() == values


@pytest.mark.parametrize(
    ("dtype", "array"),
    [
        ("f8", pa.array([1.0, None])),
        ("f8", pa.array([1, 2])),
        (">f8", pa.array([1.0, 2.0])),
        ("M8[us]", pa.array([1, None], pa.timestamp("us"))),
        ("M8[ms]", pa.array([1, 2], pa.timestamp("us"))),
        ("M8[2us]", pa.array([2, 4], pa.timestamp("us"))),
        ("m8[us]", pa.array([2, 4], pa.timestamp("us"))),
        ("?", pa.array([True, False])),
        ("S2", pa.array(["abc", "d"])),
        ("S2", pa.array([b"a\x00", b"d"])),
        ("S2", pa.array(["a", None])),
        ("U2", pa.array(["\u00e9", "b"])),
        ("U2", pa.array([b"a", b"b"])),
        ("U1", pa.array(["ab", "b"]).dictionary_encode()),
        ("f8", pa.array(["1"])),
        ("S3", pa.array([1])),
        (("f8", 2), pa.array([[1.0, 2.0]])),
    ],
)
def test_a_column_that_needs_more_is_left_to_the_conversion(dtype, array):
    assert scattered(blank(len(array), np.dtype([("it", dtype)])), [array]) == [False]


def test_what_lies_between_fields_is_zero_and_nothing_else_is_left_of_earlier_memory():
    gaps = np.dtype({"names": ["a", "b"], "formats": ["i1", "f8"], "offsets": [0, 8], "itemsize": 24})
    for dtype in (gaps, np.dtype([("in", gaps)]), np.dtype([("in", gaps, (2,))])):
        for _ in range(20):
            blank(1000, np.dtype("S24"))[:] = b"\xff" * 24
            assert not blank(1000, dtype).view("u1").any()
    table = pa.table({"s": ["a", "", "abc"], "x": [1.0, 2.0, 3.0]})
    dtype = np.dtype([("s", "S11"), ("x", "f8")])
    for _ in range(20):
        blank(3, dtype).view("u1")[:] = 255
        assert (
            queueduct.arrow.records_from(table, dtype).tobytes()
            == np.array([(b"a", 1), (b"", 2), (b"abc", 3)], dtype).tobytes()
        )


def test_an_array_whose_offsets_lie_is_refused_and_nothing_beyond_it_is_read():
    for lies in ([0, 5, 1 << 20], [0, 9, 3], [-5, 0, 1]):
        offsets = np.array([0, 5, 10], np.int32)
        array = pa.Array.from_buffers(pa.binary(), 2, [None, pa.py_buffer(offsets), pa.py_buffer(b"abcdefghij")])
        offsets[:] = lies  # pyarrow has looked at them before
        for dtype in ("S8", "S5"):
            assert scattered(np.zeros(2, dtype), [array]) == [False]
    chosen = pa.DictionaryArray.from_arrays(pa.array([0, 7], pa.int32()), pa.array(["a", "b"]), safe=False)
    assert scattered(np.zeros(2, "S8"), [chosen]) == [False]


def test_a_text_of_the_dictionary_that_no_row_has_needs_not_fit():
    texts = pa.DictionaryArray.from_arrays(pa.array([0, 0, 2], pa.int32()), pa.array(["a", "too long", "c"]))
    dtype = np.dtype([("s", "S3"), ("n", "i8")])
    rows = queueduct.arrow.records_from(pa.table({"s": texts, "n": [1, 2, 3]}), dtype)
    assert rows.tolist() == [(b"a", 1), (b"a", 2), (b"c", 3)]
    wide = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), texts.dictionary)
    with pytest.raises(UnfitItem, match="column 's' has a value of length 8, too long for S3, in row 1: 'too long'"):
        queueduct.arrow.records_from(pa.table({"s": wide, "n": [1, 2]}), dtype)
