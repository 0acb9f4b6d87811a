"""put_many takes tables of every library into queues of records: by column names, unchanged, or refused by row."""

from __future__ import annotations

import asyncio
import datetime as dt
import threading

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import queueduct
import queueduct.arrow
from queueduct import BoundedQueue, EventQueue, UnfitItem
from tests.support.kinds import CLASSES
from tests.support.reading import reader_of

TICK = np.dtype([("sym", "S8"), ("px", "f8"), ("n", "i4")])
ROWS = [{"n": 1, "sym": "ACME", "px": 101.5}, {"n": 2, "sym": "INIT", "px": 7.0}]
EXPECTED = [(b"ACME", 101.5, 1), (b"INIT", 7.0, 2)]


class Stream:
    """What any other library has: the stream and nothing else."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def a_table():
    return pa.Table.from_pylist(ROWS)


def pandas_frame():
    return pytest.importorskip("pandas", reason="the extra test-arrow has pandas").DataFrame(ROWS)


def polars_frame():
    return pytest.importorskip("polars", reason="the extra test-arrow has polars").DataFrame(ROWS)


def a_relation():
    duckdb = pytest.importorskip("duckdb", reason="the extra test-arrow has DuckDB")
    connection = duckdb.connect()
    return connection.sql("select * from (values (101.5::double, 'ACME', 1), (7, 'INIT', 2)) as t(px, sym, n)")


IN_MEMORY = {
    "a table": a_table,
    "a batch": lambda: a_table().to_batches()[0],
    "structs": lambda: pa.array(ROWS),
    "pandas": pandas_frame,
    "polars": polars_frame,
    "columns": lambda: {name: a_table()[name] for name in ("n", "px", "sym")},
    "columns of polars": lambda: polars_frame().to_dict(),
    "columns of pandas": lambda: dict(pandas_frame().items()),
}
STREAMS = {
    "a reader": lambda: a_table().to_reader(max_chunksize=1),
    "a relation": a_relation,
    "any stream": lambda: Stream(a_table()),
}


def calls_of(q):
    """Each call that takes a table; put_once where the kind has it."""
    calls = [q.put_many, lambda rows: asyncio.run(q.aput_many(rows))]
    if hasattr(q, "put_once"):
        sequence = iter(range(100))
        calls.append(lambda rows: q.put_once(rows, "me", next(sequence)))
    return calls


@pytest.mark.parametrize("rows", IN_MEMORY | STREAMS)
@pytest.mark.parametrize("kind", CLASSES)
def test_every_kind_takes_the_rows_of_every_table(kind, rows):
    make = (IN_MEMORY | STREAMS)[rows]
    with CLASSES[kind].create("q", item=TICK) as q:
        reader = reader_of(q)
        for put in calls_of(q):
            assert put(make()) == 2
            assert reader.get_many(9).tolist() == EXPECTED


@pytest.mark.parametrize("kind", CLASSES)
def test_every_kind_refuses_rows_that_do_not_fit_by_row_and_value_and_puts_none(kind):
    table = pa.Table.from_pylist([*ROWS, ROWS[0] | {"sym": "GOOGLCLASSA"}])
    gap = pa.Table.from_pylist([*ROWS, ROWS[0] | {"px": None}])
    with CLASSES[kind].create("q", item=TICK) as q:
        for put in calls_of(q):
            with pytest.raises(UnfitItem, match=r"column 'sym' .* too long for S8, in row 2: 'GOOGLCLASSA'; cut it"):
                put(table)
            with pytest.raises(
                UnfitItem, match=r"column 'px' has a null, .* in row 2: None; fill or filter them first"
            ):
                put(gap)
            with pytest.raises(UnfitItem, match="missing: px; unknown: price; select and rename them first"):
                put(table.rename_columns({"px": "price"}))
        assert q.empty()


def test_the_remedies_of_tables_work():
    polars = pytest.importorskip("polars", reason="the extra test-arrow has polars")
    frame = polars.DataFrame([*ROWS, ROWS[0] | {"sym": "GOOGLCLASSA"}, ROWS[0] | {"px": None}])
    with BoundedQueue.create("q", 64, item=TICK) as q:
        with pytest.raises(
            UnfitItem, match=r"'sym' .* in row 2: 'GOOGLCLASSA'; cut it first, or give the record a wider"
        ):
            q.put_many(frame)
        frame = frame.with_columns(polars.col("sym").str.head(8))
        with pytest.raises(UnfitItem, match=r"'px' has a null, .* in row 3: None; fill or filter"):
            q.put_many(frame)
        frame = frame.drop_nulls().rename({"px": "price"})
        with pytest.raises(UnfitItem, match="missing: px; unknown: price; select and rename"):
            q.put_many(frame)
        assert q.put_many(frame.rename({"price": "px"})) == 3


def test_the_index_of_a_frame_is_not_put_and_the_error_says_how_to_put_it():
    frame = pandas_frame()
    frame.index = [7, 8]
    with BoundedQueue.create("q", 64, item=TICK) as q:
        assert q.put_many(frame) == 2
        with pytest.raises(
            UnfitItem, match=r"missing: sym; .*; an index is not put: reset_index\(\) makes a column of 's"
        ):
            q.put_many(frame.set_index("sym"))
        with pytest.raises(UnfitItem, match=r"of 'n', 'sym'$"):
            q.put_many(frame.set_index(["n", "sym"]))
        assert q.put_many(frame.set_index(["n", "sym"]).reset_index()) == 2
        assert q.get_many(9).tolist() == EXPECTED * 2


def test_a_pandas_column_is_judged_as_its_own_values():
    pandas = pytest.importorskip("pandas", reason="the extra test-arrow has pandas")
    at = pandas.to_datetime(["2024-01-01T00:00:00.000001", None])
    frame = pandas.DataFrame({"at": at, "ok": [True, False], "px": [float("nan"), 1.0], "kind": ["a", "b"]})
    frame["kind"] = frame["kind"].astype("category")
    item = np.dtype([("kind", "U1"), ("px", "f4"), ("ok", "?"), ("at", "M8[us]")])
    with BoundedQueue.create("q", 64, item=item) as q:
        assert q.put_many(frame) == 2
        assert str(q.get_many(9).tolist()) == (
            "[('a', nan, True, datetime.datetime(2024, 1, 1, 0, 0, 0, 1)), ('b', 1.0, False, None)]"
        )
        with pytest.raises(UnfitItem, match="column 'px' cannot become float32: it is "):
            q.put_many(frame.assign(px=["x", "y"]))
        with pytest.raises(UnfitItem, match=r"'ok' has a null, .* in row 1: None"):
            q.put_many(frame.assign(ok=pandas.array([True, None], "boolean")))
        assert q.empty()


@pytest.mark.parametrize("put", ["put_many", "aput_many", "put_arrow", "put_once"])
@pytest.mark.parametrize("rows", STREAMS)
def test_what_is_read_once_is_refused_with_a_limit_of_time_and_is_still_whole(rows, put):
    with BoundedQueue.create("q", 1, item=TICK) as q:
        calls = {
            "put_many": [lambda: q.put_many(stream, timeout=1), lambda: q.put_many(stream, block=False)],
            "aput_many": [lambda: asyncio.run(q.aput_many(stream, timeout=1))],
            "put_arrow": [lambda: q.put_arrow(stream, timeout=1), lambda: q.put_arrow(stream, block=False)],
            "put_once": [lambda: q.put_once(stream, "me", 1, timeout=1)],
        }
        stream = STREAMS[rows]()
        for call in calls[put]:
            with pytest.raises(
                ValueError, match=r"read only once .*; leave out block and timeout, or put pyarrow\.table"
            ):
                call()
        assert q.empty()
        table = pa.table(stream)  # what the error says
        assert q.put_many(table, timeout=0) == 1
        assert q.get()["n"] == 1
        assert q.put_many(table.slice(1), timeout=0) == 1
        assert q.get()["n"] == 2


def test_an_overwriting_queue_refuses_a_stream_with_a_limit_of_time_too():
    with queueduct.OverwritingQueue.create("q", 8, item=TICK) as q:
        for call in (
            lambda: q.put_many(Stream(a_table()), timeout=1, overwrite=False),
            lambda: q.put_many(Stream(a_table()), block=False),
            lambda: asyncio.run(q.aput_many(Stream(a_table()), timeout=1, overwrite=False)),
        ):
            with pytest.raises(ValueError, match="read only once"):
                call()
        assert q.put_many(Stream(a_table()), overwrite=False) == 2


@pytest.mark.parametrize("rows", IN_MEMORY)
def test_a_table_that_has_room_in_part_says_how_much_is_in(rows):
    table = IN_MEMORY[rows]()
    with BoundedQueue.create("q", 1, item=TICK) as q:
        assert q.put_many(table, timeout=0.01) == 1
        with pytest.raises(queueduct.Full):
            q.put_many(table, block=False)
        assert asyncio.run(taken_and_put(q, table)) == 1
        assert q.get_many(9)["n"].tolist() == [1]


async def taken_and_put(q, table):
    await q.aget()
    return await q.aput_many(table, timeout=0.01)


def test_a_stream_longer_than_the_queue_waits_for_room():
    with BoundedQueue.create("q", 8, item=[("n", "<i8")]) as q:
        stream = pa.table({"n": np.arange(1000)}).to_reader(max_chunksize=10)
        done = []
        putter = threading.Thread(target=lambda: done.append(q.put_many(stream)))
        putter.start()
        got = []
        while len(got) < 1000:
            got += q.get_many(100, timeout=30)["n"].tolist()
        putter.join(30)
        assert done == [1000]
        assert got == list(range(1000))


def test_a_stream_that_fails_puts_nothing_and_tells_its_own_error():
    def batches():
        yield a_table().to_batches()[0]
        raise RuntimeError("the disk is gone")

    with BoundedQueue.create("q", 64, item=TICK) as q:
        with pytest.raises(RuntimeError, match="the disk is gone"):
            q.put_many(pa.RecordBatchReader.from_batches(a_table().schema, batches()))
        assert q.empty()


def test_the_rows_of_a_log_go_into_another_queue():
    with EventQueue.create("log", item=TICK) as log, BoundedQueue.create("q", 64, item=TICK) as q:
        log.put_many(ROWS)
        reader = log.subscribe(start="earliest")
        assert q.put_many(log) == 2
        assert q.put_many(reader) == 2
        assert reader.lag == 0
        with pytest.raises(ValueError, match="read only once"):
            q.put_many(reader, timeout=1)
        assert q.get_many(9).tolist() == EXPECTED * 2


def test_single_values_are_taken_from_arrays_and_series_and_their_nulls_refused():
    polars = pytest.importorskip("polars", reason="the extra test-arrow has polars")
    pandas = pytest.importorskip("pandas", reason="the extra test-arrow has pandas")
    for make in (pa.array, polars.Series, lambda values: pa.chunked_array([values])):
        with BoundedQueue.create("q", 64, item="f8", replace=True) as q:
            assert q.put_many(make([1.0, 2.5])) == 2
            with pytest.raises(UnfitItem, match=r"column 'value' has a null, .*, in row 1: None"):
                q.put_many(make([1.0, None]))
            assert q.get_many(9).tolist() == [1.0, 2.5]
    with BoundedQueue.create("r", 64, item="f8") as q:
        assert q.put_many(pandas.Series([1.0, float("nan")])) == 2
        assert q.put_many(pa.table({"any": [3.0]})) == 1
        with pytest.raises(UnfitItem, match="one column: columns=a, b; select one of them"):
            q.put_many(pa.table({"a": [3.0], "b": [4.0]}))
        assert str(q.get_many(9).tolist()) == "[1.0, nan, 3.0]"


def test_a_null_in_a_column_of_a_dict_is_refused_by_its_row():
    polars = pytest.importorskip("polars", reason="the extra test-arrow has polars")
    for make in (pa.array, polars.Series):
        with BoundedQueue.create("q", 64, item=[("px", "f8")], replace=True) as q:
            with pytest.raises(UnfitItem, match=r"field 'px' of item 1 .*: None"):
                q.put_many({"px": make([1.0, None])})
            assert q.put_many({"px": make([1.0, 2.0])}) == 2


def test_a_row_that_is_null_as_a_whole_is_refused_also_where_a_time_could_be_none():
    with BoundedQueue.create("q", 64, item=[("at", "M8[us]")]) as q:
        rows = pa.array([{"at": dt.datetime(2024, 1, 1)}, None], pa.struct([("at", pa.timestamp("us"))]))
        with pytest.raises(UnfitItem, match="a row must be no null: row 1 of 2 is one; filter them first"):
            q.put_many(rows)
        assert q.put_many(rows.drop_null()) == 1


@pytest.mark.parametrize("rows", IN_MEMORY)
def test_put_takes_one_record_and_no_table(rows):
    with BoundedQueue.create("q", 64, item=TICK) as q:
        with pytest.raises((TypeError, ValueError)) as refused:
            q.put(IN_MEMORY[rows]())
        assert q.empty()
        if rows in ("a table", "a batch", "pandas", "polars"):
            assert "put takes one item" in str(refused.value)
            assert str(refused.value).endswith("use put_many for all its rows")


@pytest.mark.parametrize("rows", ["a table", "a batch", "pandas", "polars", "a relation"])
@pytest.mark.parametrize("item", [object, bytes, None])
def test_a_queue_of_other_items_never_takes_a_table_for_its_columns(rows, item):
    with BoundedQueue(64) if item is None else BoundedQueue.create("q", 64, item=item) as q:
        for put in (q.put_many, lambda rows: asyncio.run(q.aput_many(rows))):
            with pytest.raises(
                TypeError, match=r"items one after another, .*; use put to make it one item, or give a li"
            ):
                put((IN_MEMORY | STREAMS)[rows]())
        assert q.empty()
        if item is not bytes and rows != "a relation":
            q.put(IN_MEMORY[rows]())
            assert type(q.get()) is type(IN_MEMORY[rows]())
            assert q.put_many(a_table().to_pylist()) == 2
            assert q.get_many(9) == [dict(row) for row in a_table().to_pylist()]


def test_without_pyarrow_a_frame_says_what_to_install_and_its_columns_need_nothing(children):
    pytest.importorskip("polars", reason="the extra test-arrow has polars")
    code = (
        "import sys\n"
        "sys.modules['pyarrow'] = None\n"
        "import pandas, polars, queueduct\n"
        "queue = queueduct.BoundedQueue.create('q', 64, item=[('a', 'f8'), ('s', 'S2')])\n"
        "frames = [library.DataFrame({'a': [1.0], 's': ['x']}) for library in (pandas, polars)]\n"
        "for frame in frames:\n"
        "    try:\n"
        "        queue.put_many(frame)\n"
        "    except ImportError as error:\n"
        "        print(error)\n"
        "pandas, polars = frames\n"
        "print([queue.put_many(dict(pandas.items())), queue.put_many(polars.to_dict())])\n"
        "print(queue.put_many(polars.to_dicts()), queue.put_many(pandas.to_dict('records')))\n"
        "print(queue.get_many(9).tolist())\n"
    )
    needed = "queueduct.arrow needs pyarrow, which is not installed: pip install 'queueduct[arrow]'"
    assert children.run(code).splitlines() == [needed, needed, "[1, 1]", "1 1", str([(1.0, b"x")] * 4)]


VALUES = {
    "i1": (pa.int64(), st.integers(-130, 130)),
    "u2": (pa.int32(), st.integers(-2, 2**16 + 1)),
    "S3": (pa.string(), st.text("ab\u00e9", max_size=4)),
    "U3": (pa.string(), st.text("ab\u00e9", max_size=4)),
    "f4": (pa.float64(), st.sampled_from([0.0, 0.1, 1e300, -1e300, float("inf"), float("nan")])),
    "M8[s]": (pa.timestamp("ms"), st.integers(0, 3000)),
}


@given(data=st.data(), names=st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3, unique=True))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_table_goes_in_whole_or_its_first_bad_row_is_named(data, names):
    count = data.draw(st.integers(1, 6))
    columns = {}
    for name in names:
        kind, values = VALUES[name]
        columns[name] = pa.array(data.draw(st.lists(values, min_size=count, max_size=count)), kind)
    table = pa.table(columns)
    dtype = np.dtype([(name, name) for name in sorted(names)])
    fits = [fits_alone(table.slice(row, 1), dtype) for row in range(count)]
    with BoundedQueue.create("q", 8, item=dtype, replace=True) as q:
        if all(fits):
            assert q.put_many(table) == count
            assert (
                q.get_many(9).tobytes()
                == np.concatenate(
                    [queueduct.arrow.records_from(table.slice(row, 1), dtype) for row in range(count)]
                ).tobytes()
            )
        else:
            with pytest.raises(UnfitItem, match=f"in row {fits.index(False)}: "):
                q.put_many(table)
            assert q.empty()


def fits_alone(row, dtype):
    """Judged apart from the code, by what a person would say who sees the row."""
    for name in dtype.names:
        value = row[name].cast(pa.int64())[0].as_py() if name == "M8[s]" else row[name][0].as_py()
        ok = {
            "i1": lambda v: -128 <= v <= 127,
            "u2": lambda v: 0 <= v < 2**16,
            "S3": lambda v: len(v.encode()) <= 3,
            "U3": lambda v: len(v) <= 3,
            "f4": lambda v: abs(v) != 1e300,
            "M8[s]": lambda v: v % 1000 == 0,
        }[name]
        if not ok(value):
            return False
    return True
