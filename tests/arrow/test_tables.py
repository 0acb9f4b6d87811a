"""Records become columns and columns records: every type, exactly, or an error that names the field."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

import queueduct
from queueduct.arrow import records_from, schema_of, table_from

EDGES = {
    "i1": [-128, 127],
    "i2": [-(2**15), 7],
    "i4": [-(2**31), 2**31 - 1],
    "i8": [-(2**63), 2**63 - 1],
    "u1": [0, 255],
    "u2": [0, 2**16 - 1],
    "u4": [0, 2**32 - 1],
    "u8": [0, 2**64 - 1],
    "f2": [0.5, np.inf],
    "f4": [0.1, np.nan],
    "f8": [0.1, -np.inf],
    "?": [True, False],
    ">i4": [1, -2],
    ">f8": [0.1, 1e300],
    "M8[Y]": ["1970", "2026"],
    "M8[M]": ["2026-03", "NaT"],
    "M8[W]": ["2026-03-05", "NaT"],
    "M8[D]": ["2026-03-01", "0001-01-01"],
    "M8[h]": ["2026-03-01T05", "NaT"],
    "M8[m]": ["2026-03-01T05:01", "1900-01-01T00:00"],
    "M8[s]": ["2026-03-01T05:01:02", "NaT"],
    "M8[ms]": ["2026-03-01T05:01:02.003", "NaT"],
    "M8[us]": ["2026-03-01T05:01:02.000003", "NaT"],
    "M8[ns]": ["2026-03-01T05:01:02.000000003", "NaT"],
    ">M8[us]": ["2026-03-01T05:01:02.000003", "NaT"],
    "M8[15m]": ["2026-03-01T05:15", "NaT"],
    "m8[W]": [1, "NaT"],
    "m8[D]": [1, -1],
    "m8[h]": [1, -1],
    "m8[m]": [1, -1],
    "m8[s]": [1, "NaT"],
    "m8[ms]": [1, -1],
    "m8[us]": [1, -1],
    "m8[ns]": [1, -1],
    "S1": [b"", b"x"],
    "S5": [b"a\0b", b"\xc3\xa9abc"],
    "S8": [b"", b"12345678"],
    "S9": [b"", b"123456789"],
    "S200": [b"x" * 200, b"y"],
    "U4": ["", "é€𝄞x"],
    ">U4": ["ab", "é€𝄞x"],
}
SHAPES = {
    "record": ([("a", "i4"), ("b", "S2"), ("t", "M8[us]")], [(1, b"x", "NaT"), (2, b"yz", "2026-01-01")]),
    "aligned record": (np.dtype([("a", "i1"), ("b", "f8")], align=True), [(1, 2.5), (2, 3.5)]),
    "record of no bytes": ([("a", "i4"), ("b", "S0")], [(1, b""), (2, b"")]),
    "sub-array": (("f8", (3,)), [[1, 2, 3], [4, 5, 6]]),
    "sub-array of two": (("i2", (2, 3)), [[[1, 2, 3], [3, 4, 5]]] * 2),
    "sub-array of times": (("M8[us]", (2,)), [["2026-01-01", "NaT"]] * 2),
    "sub-array of text": (("U2", (2,)), [["a", "éb"]] * 2),
    "sub-array of records": (([("u", "U2"), ("n", "i8")], (2,)), [[("a", 1), ("bc", 2)]] * 2),
}


def records_of(dtype, values):
    records = np.zeros(len(values), np.dtype([("before", "i1"), ("x", np.dtype(dtype)), ("after", "i1")]))
    for row, value in enumerate(values):
        records["x"][row] = value
    return records


@pytest.mark.parametrize(("dtype", "values"), [*EDGES.items(), *SHAPES.values()], ids=[*EDGES, *SHAPES])
def test_a_field_comes_back_as_it_was(dtype, values):
    records = records_of(dtype, values)
    table = table_from(records)
    table.validate(full=True)
    assert table.schema == schema_of(records.dtype)
    assert records_from(table, records.dtype).tobytes() == records.tobytes()
    assert records_from(table.slice(1), records.dtype).tobytes() == records[1:].tobytes()
    assert records_from(table.slice(2), records.dtype).tolist() == []
    strided = np.zeros(4, records.dtype)[::2]
    strided[...] = records
    assert str(records_from(table_from(strided), records.dtype).tolist()) == str(records.tolist())


@pytest.mark.parametrize(("dtype", "values"), EDGES.items(), ids=EDGES)
def test_items_that_are_no_records_are_the_column_value(dtype, values):
    records = records_of(dtype, values)["x"].copy()
    table = table_from(records)
    assert table.column_names == ["value"]
    assert records_from(table, records.dtype).tobytes() == records.tobytes()


def test_values_arrive_as_what_they_mean():
    dtype = [("u8", "u8"), ("day", "M8[D]"), ("hour", "M8[h]"), ("ms", "M8[ms]"), ("span", "m8[ms]"), ("sym", "S4")]
    records = np.zeros(2, dtype)
    records[0] = (2**64 - 1, "2026-03-01", "2026-03-01T05", "2026-03-01T00:00:00.123", 1500, b"ab")
    records[1] = (0, "NaT", "NaT", "NaT", "NaT", b"")
    assert table_from(records).to_pylist() == [
        {
            "u8": 2**64 - 1,
            "day": datetime.date(2026, 3, 1),
            "hour": datetime.datetime(2026, 3, 1, 5),
            "ms": datetime.datetime(2026, 3, 1, 0, 0, 0, 123000),
            "span": datetime.timedelta(seconds=1.5),
            "sym": "ab",
        },
        {"u8": 0, "day": None, "hour": None, "ms": None, "span": None, "sym": ""},
    ]


def test_the_schema_says_what_can_be_null():
    schema = schema_of(np.dtype([("n", "i8"), ("t", "M8[us]"), ("v", "f4", (2,))]))
    assert [str(field.type) for field in schema] == [
        "int64",
        "timestamp[us]",
        "fixed_size_list<item: float not null>[2]",
    ]
    assert [field.nullable for field in schema] == [False, True, False]
    assert schema_of(bytes) == pa.schema([pa.field("value", pa.binary(), nullable=False)])


def test_single_numbers_are_not_copied():
    numbers = np.arange(1000.0)
    buffer = table_from(numbers).column(0).chunk(0).buffers()[1]
    assert buffer.address == numbers.__array_interface__["data"][0]


def test_no_items_are_an_empty_table_with_all_columns():
    dtype = np.dtype([("sym", "S4"), ("t", "M8[us]"), ("v", "f4", (2,)), ("b", "?"), ("r", [("x", "i4")])])
    table = table_from(np.zeros(0, dtype))
    assert table.num_rows == 0
    assert table.schema == schema_of(dtype)
    assert records_from(table, dtype).tolist() == []
    assert table_from([]).column_names == ["value"]
    assert records_from(pa.table({"sym": [], "t": [], "v": [], "b": [], "r": []}), dtype).tolist() == []


def test_a_list_of_bytes_is_one_binary_column():
    table = table_from([b"a", b"\xff\0"])
    assert table.schema == schema_of(bytes)
    assert records_from(table, bytes) == [b"a", b"\xff\0"]
    assert records_from(pa.table({"any": ["text"]}), bytes) == [b"text"]


def test_bytes_that_are_no_text_name_the_field_the_row_and_a_remedy_that_works():
    records = np.array([(b"ok",), (b"\xff",)], [("s", "S2")])
    with pytest.raises(ValueError, match=r"'s' is not UTF-8: b'\\xff', at row 1; .*strings=binary"):
        table_from(records)
    assert table_from(records, strings="binary").column("s").to_pylist() == [b"ok", b"\xff"]


def test_a_character_cut_in_two_is_no_text_even_if_its_halves_are_neighbours():
    with pytest.raises(ValueError, match="at row 0"):
        table_from(np.array([(b"\xc3",), (b"\xa9",)], [("s", "S1")]))


@pytest.mark.parametrize("point", [0xD800, 0xDFFF, 0x110000, 0xFFFFFFFF])
def test_code_points_that_are_none_are_refused(point):
    records = np.zeros(3, [("s", "U2")])
    records["s"][0] = "é"
    records.view("u4").reshape(3, 2)[1, 0] = point
    with pytest.raises(ValueError, match="'s' is not Unicode, at row 1"):
        table_from(records)


@pytest.mark.parametrize("kind", ["c8", "c16", "V4", "f16", "M8", "m8", "M8[ps]", "M8[as]", "m8[ps]", "m8[Y]", "m8[M]"])
def test_what_arrow_has_no_column_for_is_refused_by_the_name_of_the_field(kind):
    with pytest.raises(TypeError, match=r"field 'in\.bad'"):
        schema_of(np.dtype([("ok", "i4"), ("in", [("bad", kind)])]))
    with pytest.raises(TypeError, match=r"field 'bad'"):
        records_from(pa.table({"bad": [1]}), np.dtype([("bad", kind)]))


@pytest.mark.parametrize(("kind", "value"), [("M8[D]", 2**31), ("M8[Y]", 10**7), ("M8[h]", 2**62), ("m8[W]", 2**62)])
def test_a_time_out_of_reach_is_refused_and_does_not_wrap(kind, value):
    records = np.array([0, value, np.iinfo("i8").min]).view(kind)
    with pytest.raises(ValueError, match=r"'value' is beyond what .* reach: .*, at row 1"):
        table_from(records)


def test_python_objects_are_refused():
    with pytest.raises(TypeError, match="item=object"):
        schema_of(object)
    with pytest.raises(TypeError, match="item=object"):
        records_from(pa.table({"a": [1]}), object)
    with pytest.raises(TypeError, match="Python objects"):
        table_from(np.array([object()]))
    with pytest.raises(TypeError, match="bytes only"):
        table_from([b"a", "b"])
    with pytest.raises(TypeError, match="get_many returns either"):
        table_from(7)
    with pytest.raises(ValueError, match="strings must be"):
        schema_of(bytes, strings="text")


@pytest.mark.parametrize(
    ("values", "kind", "dtype", "why"),
    [
        ([1, None], pa.int64(), "i8", "has a null"),
        ([None], pa.null(), "i8", "has a null"),
        ([300], pa.int64(), "i1", "does not fit int8"),
        ([-1], pa.int64(), "u4", "does not fit uint32"),
        ([1.5], pa.float64(), "i4", "does not fit int32"),
        ([1e300], pa.float64(), "f4", "beyond float32: 1e"),
        ([float("nan")], pa.float64(), "i4", "does not fit int32"),
        (["7"], pa.large_string(), "i4", "cannot become int32"),
        ([True], pa.bool_(), "i4", "cannot become int32"),
        ([1], pa.timestamp("us"), "i8", "cannot become int64"),
        ([1], pa.int32(), "?", "cannot become bool"),
        (["too long"], pa.string_view(), "S3", "length 8, too long for S3"),
        (["too long"], pa.string(), "U3", "length 8, too long for U3"),
        ([b"a\0"], pa.binary(), "S3", "ends with a NUL byte"),
        ([b"\xff"], pa.large_binary(), "U3", "not UTF-8"),
        ([5], pa.int64(), "S3", "must be string or binary"),
        ([[1, 2]], pa.list_(pa.int64()), ("i8", (3,)), "3 elements in each row: one has 2"),
        ([[1, 2]], pa.list_(pa.int64(), 2), ("i8", (3,)), "3 elements in each row: one has 2"),
        ([[1, None]], pa.list_(pa.int64(), 2), ("i8", (2,)), "has a null"),
        ([5], pa.int64(), "M8[us]", "cannot become datetime64"),
        ([5], pa.duration("us"), "M8[us]", "cannot become datetime64"),
        ([1], pa.timestamp("us"), "M8[s]", "does not fit"),
        ([1], pa.timestamp("us"), "M8[D]", "does not fit"),
        ([2**62], pa.timestamp("s"), "M8[ns]", "does not fit"),
        ([2**30], pa.date32(), "M8[ns]", "does not fit"),
    ],
)
def test_rows_that_do_not_fit_the_record_exactly_are_refused_by_column(values, kind, dtype, why):
    table = pa.table({"x": pa.array(values, kind)})
    with pytest.raises(ValueError, match=rf"column 'x' .*{why}"):
        records_from(table, np.dtype([("x", np.dtype(dtype))]))


@pytest.mark.parametrize(
    ("values", "kind", "dtype"),
    [
        (["ab", "c"], pa.large_string(), "S2"),
        (["ab", "é"], pa.string_view(), "U2"),
        (["ab", "ab"], pa.dictionary(pa.int8(), pa.string()), "S2"),
        ([b"ab", b"cd"], pa.binary(2), "S2"),
        ([7, 8], pa.int64(), "u1"),
        ([7.0, 8.0], pa.float64(), "i2"),
        ([7, 8], pa.decimal128(20, 0), "u8"),
        ([0.1, float("nan")], pa.float64(), "f4"),
        ([0, 1], pa.date64(), "M8[D]"),
        ([0, 86400], pa.timestamp("s", tz="Europe/Berlin"), "M8[D]"),
        ([0, None], pa.timestamp("ns"), "M8[us]"),
        ([[1, 2], [3, 4]], pa.large_list(pa.int64()), ("i4", (2,))),
    ],
)
def test_other_forms_of_the_same_values_are_taken(values, kind, dtype):
    array = pa.array(values, kind)
    if pa.types.is_date64(kind):
        array = pa.array([0, 86_400_000], pa.int64()).view(kind)
        values = [0, 1]
    records = records_from(pa.table({"x": array}), np.dtype([("x", np.dtype(dtype))]))
    expected = records_of(dtype, [0, 1] if "M8" in str(dtype) else values)["x"]
    if values[1] is None:
        expected[1] = "NaT"
    np.testing.assert_array_equal(records["x"], expected)


def test_columns_are_found_by_name_and_must_be_the_fields():
    dtype = np.dtype([("a", "i8"), ("b", "f8")])
    assert records_from(pa.table({"b": [1.0], "a": [2]}), dtype).tolist() == [(2, 1.0)]
    with pytest.raises(ValueError, match="missing: b; unknown: c"):
        records_from(pa.table({"a": [1], "c": [2]}), dtype)
    with pytest.raises(ValueError, match="a name of its own: a"):
        records_from(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), dtype)
    with pytest.raises(ValueError, match="one column"):
        records_from(pa.table({"a": [1], "b": [2]}), bytes)
    with pytest.raises(ValueError, match=r"missing: y; unknown: z"):
        records_from(pa.table({"r": [{"z": 1}]}), np.dtype([("r", [("y", "i8")])]))


def test_streams_arrays_and_batches_are_taken_and_other_things_are_not():
    dtype = np.dtype([("a", "i8")])
    batch = pa.record_batch({"a": [1, 2]})
    for data in (
        batch,
        pa.Table.from_batches([batch, batch]),
        pa.RecordBatchReader.from_batches(batch.schema, [batch]),
    ):
        assert set(records_from(data, dtype)["a"].tolist()) == {1, 2}

    class OnlyAnArray:
        def __arrow_c_array__(self, requested_schema=None):
            return batch.__arrow_c_array__(requested_schema)

    assert records_from(OnlyAnArray(), dtype)["a"].tolist() == [1, 2]
    with pytest.raises(TypeError, match=r"dict; for lists, dicts and arrays use put_many"):
        records_from({"a": [1]}, dtype)


def test_a_pandas_frame_leaves_its_index_at_home_and_keeps_nan():
    pandas = pytest.importorskip("pandas", reason="pandas comes with the extra spark: make test installs it")
    frame = pandas.DataFrame({"px": [1.0, np.nan, 3.0], "sym": ["a", "b", "c"], "n": [1, 2, 3]})
    dtype = np.dtype([("sym", "S2"), ("px", "f8"), ("n", "i4")])
    assert str(records_from(frame[frame.n > 1], dtype).tolist()) == "[(b'b', nan, 2), (b'c', 3.0, 3)]"
    with pytest.raises(ValueError, match=r"'sym' has a null, .*, in row 1: None; fill or filter"):
        records_from(frame.assign(sym=["a", None, "b"]), dtype)
    with pytest.raises(ValueError, match="'sym' has values of several types"):
        records_from(frame.assign(sym=["a", 1, "b"]), dtype)


def test_a_polars_frame_is_taken():
    polars = pytest.importorskip("polars", reason="polars reads the queues in the tests: make test installs it")
    frame = polars.DataFrame({"px": [1.0, None], "sym": ["a", "b"]})
    dtype = np.dtype([("sym", "S2"), ("px", "f8")])
    assert records_from(frame.fill_null(0), dtype).tolist() == [(b"a", 1.0), (b"b", 0.0)]
    assert records_from(frame.head(1).cast({"sym": polars.Categorical}), dtype).tolist() == [(b"a", 1.0)]
    with pytest.raises(ValueError, match=r"'px' has a null, .*, in row 1: None; fill or filter"):
        records_from(frame, dtype)


@pytest.mark.parametrize("kind", [("f4", (2, 3)), ("M8[us]", (4,)), ("S3", (2,))], ids=str)
def test_items_that_are_arrays_are_a_column_of_lists(kind):
    item = np.dtype(kind)
    frames = np.zeros(3, item)
    frames[1] = np.ones(item.shape, "i8").astype(item.base)
    with queueduct.EventQueue.create("frames", item=item) as log:
        reader = log.subscribe()
        log.put_many(frames)
        tables = [table_from(frames), table_from(frames[::-1])[::-1], reader.to_arrow(), log.read_arrow(0, 3)]
    for table in tables:
        assert table.equals(tables[0])
        assert records_from(table, item).tolist() == frames.tolist()
