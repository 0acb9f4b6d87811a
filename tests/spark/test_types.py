"""Every type of a record through Arrow and back, and the refusals, which name the field."""

import numpy as np
import pyarrow as pa
import pytest

import queueduct
from queueduct.arrow.records import chosen_columns, to_items
from queueduct.spark.convert.schema import arrow_schema, record_dtype, spark_schema
from queueduct.spark.convert.to_arrow import to_batch
from queueduct.spark.datasource import QueueductSource
from tests.spark.rows import numbered

INT = np.iinfo

# dtype, values, what Spark calls it
TYPES = {
    "i1": ("i1", [-128, 127], "tinyint"),
    "i2": ("i2", [-(2**15), 2**15 - 1], "smallint"),
    "i4": ("i4", [-(2**31), 2**31 - 1], "int"),
    "i8": ("i8", [-(2**63), 2**63 - 1], "bigint"),
    "big-endian": (">i8", [1, -2], "bigint"),
    "u1": ("u1", [0, 255], "smallint"),
    "u2": ("u2", [0, 2**16 - 1], "int"),
    "u4": ("u4", [0, 2**32 - 1], "bigint"),
    "u8": ("u8", [0, 2**64 - 1], "decimal(20,0)"),
    "f2": ("f2", [-1.5, 2.25], "float"),
    "f4": ("f4", [-1.5, np.inf], "float"),
    "f8": ("f8", [-1.1, np.nan], "double"),
    "bool": ("?", [True, False], "boolean"),
    "M8[us]": ("M8[us]", ["2026-01-02T03:04:05.678901", "NaT"], "timestamp"),
    "M8[ns]": ("M8[ns]", ["2026-01-02T03:04:05.678901", "1677-10-01"], "timestamp"),
    "M8[ms]": ("M8[ms]", ["1969-12-31T23:59:59.999", "NaT"], "timestamp"),
    "M8[s]": ("M8[s]", ["2026-01-02T03:04:05", "0001-01-01"], "timestamp"),
    "M8[D]": ("M8[D]", ["2026-01-02", "NaT"], "timestamp"),
    "m8[us]": ("m8[us]", [-1, 10**15], "interval day to second"),
    "m8[s]": ("m8[s]", [-1, 86400], "interval day to second"),
    "S": ("S5", [b"", b"a\0b\xc3\xa9"], "string"),
    "U": ("U4", ["", "é€𝄞x"], "string"),
    "record": ([("a", "i4"), ("b", "S2")], [(1, b"x"), (2, b"yz")], "struct<a:int,b:string>"),
    "sub-array": (("f8", (3,)), [[1, 2, 3], [4, 5, 6]], "array<double>"),
    "sub-array of two": (("i2", (2, 2)), [[[1, 2], [3, 4]]] * 2, "array<array<smallint>>"),
    "sub-array of times": (("M8[us]", (2,)), [["2026-01-01", "NaT"]] * 2, "array<timestamp>"),
    "sub-array of records": (([("u", "U2")], (2,)), [[("a",), ("bc",)]] * 2, "array<struct<u:string>>"),
}


def records_of(dtype, values):
    records = np.zeros(len(values), np.dtype([("before", "i1"), ("x", np.dtype(dtype)), ("after", "i1")]))
    for row, value in enumerate(values):
        records["x"][row] = value
    return records


@pytest.mark.parametrize("name", TYPES)
def test_a_field_comes_back_as_it_was(name):
    dtype, values, spark_name = TYPES[name]
    records = records_of(dtype, values)
    schema = arrow_schema(records.dtype)
    assert spark_schema(schema)["x"].dataType.simpleString() == spark_name
    batch = to_batch(records, 7, schema)
    batch.validate(full=True)
    assert batch.schema.equals(schema)
    columns = chosen_columns(batch.schema.names, records.dtype, "position")
    assert to_items(batch, columns, records.dtype).tobytes() == records.tobytes()
    assert batch.column("position").to_pylist() == [7, 8]


@pytest.mark.parametrize("name", TYPES)
def test_slices_of_arrow_columns_come_back_too(name):
    dtype, values, _ = TYPES[name]
    records = records_of(dtype, values)
    batch = to_batch(records, 0, arrow_schema(records.dtype)).slice(1)
    assert to_items(batch, ["before", "x", "after"], records.dtype).tobytes() == records[1:].tobytes()


def test_values_arrive_as_what_they_mean():
    records = np.zeros(1, [("u8", "u8"), ("day", "M8[D]"), ("ns", "M8[ns]"), ("span", "m8[ms]"), ("sym", "S4")])
    records[0] = (2**64 - 1, "2026-03-01", "2026-03-01T00:00:00.123456789", 1500, b"ab")
    (row,) = to_batch(records, 0, arrow_schema(records.dtype)).to_pylist()
    assert str(row["u8"]) == "18446744073709551615"
    assert row["day"].isoformat() == "2026-03-01T00:00:00+00:00"
    assert row["ns"].isoformat() == "2026-03-01T00:00:00.123456+00:00"
    assert row["span"].total_seconds() == 1.5
    assert row["sym"] == "ab"


def test_items_that_are_no_records_are_one_column():
    assert arrow_schema(bytes).names == ["value", "position"]
    batch = to_batch([b"a", b"\xff\0"], 3, arrow_schema(bytes))
    assert to_items(batch, ["value"], bytes) == [b"a", b"\xff\0"]
    numbers = np.arange(3.0)
    batch = to_batch(numbers, 0, arrow_schema(numbers.dtype))
    columns = chosen_columns(batch.schema.names, numbers.dtype, "position")
    assert to_items(batch, columns, numbers.dtype).tolist() == [0, 1, 2]
    vectors = np.arange(6).reshape(3, 2)
    batch = to_batch(vectors, 0, arrow_schema(np.dtype(("i8", (2,)))))
    assert to_items(batch, ["value"], np.dtype(("i8", (2,)))).tolist() == vectors.tolist()


def test_strings_can_be_read_as_bytes():
    records = np.array([(b"\xff",)], [("s", "S2")])
    schema = arrow_schema(records.dtype, strings="binary")
    assert to_batch(records, 0, schema).to_pylist()[0]["s"] == b"\xff"


def test_bytes_that_are_no_text_name_the_field_the_position_and_the_remedy():
    records = np.array([(b"ok",), (b"\xff",)], [("s", "S2")])
    with pytest.raises(ValueError, match=r"'s' is not UTF-8: b'\\xff', at position 11; .*strings=binary"):
        to_batch(records, 10, arrow_schema(records.dtype))


def test_a_character_cut_in_two_is_no_text_even_if_its_halves_are_neighbours():
    records = np.array([(b"\xc3",), (b"\xa9",)], [("s", "S1")])
    with pytest.raises(ValueError, match="at position 0"):
        to_batch(records, 0, arrow_schema(records.dtype))


@pytest.mark.parametrize("kind", ["c8", "c16", "V4", "f16", "M8", "m8"])
def test_what_spark_has_no_column_for_is_refused_by_the_name_of_the_field(kind):
    with pytest.raises(TypeError, match=r"field 'in\.bad'"):
        arrow_schema(np.dtype([("ok", "i4"), ("in", [("bad", kind)])]))


def test_pickled_objects_are_refused():
    with pytest.raises(TypeError, match="item=object"):
        arrow_schema(object)
    with queueduct.EventQueue.create("objects", item=object) as queue:
        queue.put({})
        with pytest.raises(TypeError, match="item=object"):
            QueueductSource({"queue": "objects"}).schema()


def test_a_field_called_position_asks_for_another_name_of_the_column():
    dtype = np.dtype([("position", "i8")])
    with pytest.raises(ValueError, match="positionColumn"):
        arrow_schema(dtype)
    assert arrow_schema(dtype, position_column="at").names == ["position", "at"]


def test_a_time_beyond_microseconds_is_refused_and_does_not_wrap():
    records = np.array([("300000-01-01",)], [("t", "M8[D]")])
    with pytest.raises(ValueError, match="'t' is beyond"):
        to_batch(records, 0, arrow_schema(records.dtype))


def column(values, kind=None):
    return pa.record_batch([pa.array(values, kind)], names=["x"])


@pytest.mark.parametrize(
    ("values", "kind", "dtype", "why"),
    [
        ([1, None], pa.int64(), "i8", "has a null"),
        ([300], pa.int64(), "i1", "does not fit int8"),
        ([-1], pa.int64(), "u4", "does not fit uint32"),
        ([1.5], pa.float64(), "i4", "does not fit int32"),
        (["7"], pa.string(), "i4", "cannot become int32"),
        ([True], pa.bool_(), "i4", "cannot become int32"),
        ([1], pa.int32(), "?", "cannot become bool"),
        (["too long"], pa.string(), "S3", "length 8, too long for S3"),
        (["too long"], pa.string(), "U3", "length 8, too long for U3"),
        ([b"a\0"], pa.binary(), "S3", "ends with a NUL byte"),
        ([b"\xff"], pa.binary(), "U3", "not UTF-8"),
        ([5], pa.int64(), "S3", "must be string or binary"),
        ([[1, 2]], pa.list_(pa.int64()), ("i8", (3,)), "3 elements in each row: one has 2"),
        ([5], pa.int64(), "M8[us]", "cannot become datetime64"),
        ([1], pa.timestamp("us"), "M8[s]", "does not fit"),
        ([1], pa.timestamp("us"), "M8[D]", "does not fit"),
    ],
)
def test_rows_that_do_not_fit_the_record_exactly_are_refused_by_column(values, kind, dtype, why):
    with pytest.raises(ValueError, match=rf"column 'x' .*{why}"):
        to_items(column(values, kind), ["x"], np.dtype([("x", np.dtype(dtype))]))


def test_columns_must_be_the_fields_and_may_bring_the_position_along():
    dtype = numbered(0, 1).dtype
    assert chosen_columns(["number", "ts", "px", "sym", "position"], dtype, "position") == list(dtype.names)
    with pytest.raises(ValueError, match="missing: px; unknown: price"):
        chosen_columns(["sym", "price", "ts", "number"], dtype, "position")
    with pytest.raises(ValueError, match="one column"):
        chosen_columns(["a", "b"], bytes, "position")


def test_a_record_for_rows_takes_lengths_from_the_record_they_came_of():
    known = numbered(0, 1).dtype
    assert record_dtype(spark_schema(arrow_schema(known)), known) == np.dtype([*known.descr, ("position", "i8")])
    with pytest.raises(TypeError, match="'sym' has no fixed size"):
        record_dtype(spark_schema(arrow_schema(known)), np.dtype([("other", "i8")]))
