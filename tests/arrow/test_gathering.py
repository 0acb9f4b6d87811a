"""Fields gathered into columns, beside an obvious conversion of each value alone: every type, layout and register."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from queueduct import EventQueue
from queueduct.arrow import schema_of
from queueduct.arrow.gather._gatherer import ISAS, POOLED_BYTES, Gatherer, GatherPlan, use_isa
from queueduct.arrow.tables import ColumnPlan, Columns

NUMBERS = ["i1", "u1", "i2", "<u2", ">i2", "i4", ">u4", "u8", ">i8", "f2", "f4", ">f4", "f8", ">f8", "?"]
TIMES = ["M8[D]", "M8[s]", "M8[ns]", ">M8[us]", "M8[h]", "M8[7ms]", "m8[us]", "m8[D]"]
TEXTS = ["S1", "S3", "S7", "S8", "S9", "S20", "S32", "S33", "S64", "S65", "S150", "U1", "U4", "U16", "U21", ">U3"]
LETTERS = np.array(["a", "Z", "\0", "é", "€", "𝄞"])

simple = st.sampled_from([*NUMBERS, *TIMES, *TEXTS])
arrays = st.tuples(simple, st.lists(st.integers(1, 5), min_size=1, max_size=2).map(tuple))
inner = st.one_of(simple, arrays)
structs = st.lists(inner, min_size=1, max_size=3).map(
    lambda kinds: [(f"i{at}", *entry(one)) for at, one in enumerate(kinds)]
)
fields = st.lists(st.one_of(inner, inner, structs, st.tuples(structs, st.just((2,)))), min_size=1, max_size=12)


@pytest.fixture(autouse=True, scope="module")
def best_again():
    yield
    for name in ISAS:
        use_isa(name)


def entry(kind):
    return kind if isinstance(kind, tuple) else (kind,)


def filled(rng, dtype, shape, *, is_ascii):
    """Returns values of all sorts: extremes, NaT, empty texts, texts that end with NULs or have some inside."""
    values = np.zeros(shape, dtype)
    base = values.dtype
    if base.names is not None:
        for name in base.names:
            inner_dtype, *_ = base.fields[name]
            sub = inner_dtype.subdtype or (inner_dtype, ())
            values[name] = filled(rng, sub[0], (*values.shape, *sub[1]), is_ascii=is_ascii)
    elif base.kind in "SU":
        width = base.itemsize // (4 if base.kind == "U" else 1)
        letters = LETTERS[:3] if is_ascii or base.kind == "S" else LETTERS
        flat = values.reshape(-1)
        for at in range(len(flat)):
            flat[at] = "".join(rng.choice(letters, rng.integers(0, width + 1)))
    elif base.kind in "Mm":
        days = rng.integers(-20_000, 20_000, values.shape)
        values[...] = days.astype(f"{base.kind}8[D]").astype(base)
        values[rng.random(values.shape) < rng.choice([0, 0.1])] = "NaT"
    elif base.kind == "b":
        values[...] = rng.random(values.shape) < 0.5
    else:
        values[...] = np.frombuffer(rng.bytes(values.nbytes), base).reshape(values.shape)
        if base.kind == "f":
            values[np.isnan(values)] = 1.5
    return values


def plain(value, dtype, target):
    """Returns one value as pa.array takes it."""
    if dtype.subdtype is not None:
        (base, shape), kind = dtype.subdtype, target.value_type
        below = np.dtype((base, shape[1:])) if shape[1:] else base
        return [plain(one, below, kind) for one in value]
    if dtype.names is not None:
        return {
            name: plain(value[name], dtype.fields[name][0], field.type)
            for name, field in zip(dtype.names, target, strict=True)
        }
    if dtype.kind in "Mm":
        unit = "D" if pa.types.is_date32(target) else target.unit
        return None if np.isnat(value) else int(value.astype(f"{dtype.kind}8[{unit}]").astype("i8"))
    return np.float16(value) if dtype.kind == "f" and dtype.itemsize == 2 else value.item()


def obvious(records):
    schema = schema_of(records.dtype)
    columns = [
        pa.array([plain(row[name], records.dtype.fields[name][0], schema.field(name).type) for row in records],
                 schema.field(name).type)
        for name in records.dtype.names
    ]  # fmt: skip
    return pa.Table.from_arrays(columns, schema=schema)


@given(fields, st.integers(0, 2**32), st.sampled_from([0, 1, 7, 64, 300]), st.booleans(), st.booleans())
@example(["?"] * 32, 1, 300, True, False)
@example(["i1"] * 32, 1, 300, True, False)
@example(["S8", "f8", "i8"], 1, 300, True, False)
@example(["u1", "i4", "S4", "i2", "?", "M8[us]"], 1, 300, False, True)
@settings(max_examples=40, deadline=None)
def test_columns_are_what_an_obvious_conversion_makes(kinds, seed, rows, is_ascii, is_aligned):
    rng = np.random.default_rng(seed)
    dtype = np.dtype([(f"f{at}", *entry(kind)) for at, kind in enumerate(kinds)], align=is_aligned)
    records = filled(rng, dtype, rows, is_ascii=is_ascii)
    expected = obvious(records)
    plan = ColumnPlan(dtype, schema_of(dtype))
    cuts = sorted({0, rows, *rng.integers(0, rows + 1, rng.integers(0, 4)).tolist()})
    spread = np.zeros(2 * rows, dtype)[::2]  # the records of every other place
    spread[...] = records
    for isa in filter(use_isa, ISAS):
        for source in (records, spread):
            columns = Columns(plan, rows)
            for start, stop in pairwise(cuts):
                columns.add(source[start:stop])
            table = pa.Table.from_batches([columns.batch()])
            table.validate(full=True)
            assert table.equals(expected), isa
        columns = Columns(plan, rows)
        columns.add(records)
        part = columns.batch(rows // 2)
        part.validate(full=True)
        assert pa.Table.from_batches([part]).equals(expected.slice(0, rows // 2)), isa


@given(st.integers(0, 2**32), st.sampled_from([1, 2, 4, 8, 9, 30, 64, 100]), st.integers(1, 40))
@settings(max_examples=100, deadline=None)
def test_the_first_text_that_is_no_utf8_is_found(seed, width, rows):
    """Beside Python's own decoder, with bytes that are often almost UTF-8."""
    rng = np.random.default_rng(seed)
    parts = [b"a", b"\0", b"\xc3\xa9", b"\xe2\x82\xac", b"\xf0\x9d\x84\x9e", b"aaaaaaaa"]
    wrong = [b"\x80", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe0\x80\xaf", b"\xf0\x8f\xbf\xbf", b"\xc3"]
    records = np.zeros(rows, [("n", "i4"), ("t", f"S{width}")])
    bad = None
    for row in range(rows):
        choices = [parts[at] for at in rng.integers(0, len(parts), rng.integers(0, 8))]
        if rng.random() < 0.03:
            choices.insert(rng.integers(0, len(choices) + 1), wrong[rng.integers(0, len(wrong))])
        records["t"][row] = b"".join(choices)[:width]
        try:
            records["t"][row].decode()
        except UnicodeDecodeError:
            bad = row if bad is None else bad
    for _ in filter(use_isa, ISAS):
        columns = Columns(ColumnPlan(records.dtype, schema_of(records.dtype)), rows, 1000)
        columns.add(records)
        if bad is None:
            assert columns.batch().column("t").to_pylist() == [one.decode() for one in records["t"].tolist()]
        else:
            with pytest.raises(ValueError, match=f"'t' is not UTF-8.* at position {1000 + bad};"):
                columns.batch()
            if bad:
                assert columns.batch(bad).num_rows == bad


@pytest.mark.parametrize("kind", ["S8", "S20", "U3", ("S5", (2,)), "?", "M8[us]", "M8[D]", "i1"])
def test_fields_share_bytes(kind):
    """A dtype may have fields that overlap, in any order."""
    whole = np.dtype(entry(kind) if isinstance(kind, tuple) else kind)
    formats = [kind, "u1", "u2", "u1", kind]
    dtype = np.dtype({"names": list("abcde"), "formats": formats, "offsets": [3, 3, 4, 0, 3]})
    records = np.zeros(100, dtype)
    records["a"] = filled(np.random.default_rng(1), whole.base, (100, *whole.shape), is_ascii=True)
    expected = obvious(records)
    for _ in filter(use_isa, ISAS):
        columns = Columns(ColumnPlan(dtype, schema_of(dtype)), 100)
        columns.add(records)
        assert pa.Table.from_batches([columns.batch()]).equals(expected)


def test_a_day_too_far_is_named_with_its_row():
    dtype = np.dtype([("n", "i4"), ("d", "M8[D]", (2,))])
    records = np.zeros(700, dtype)
    records["d"][:, 1] = np.datetime64("NaT")
    records["d"][650, 0] = np.datetime64(2**40, "D")
    columns = Columns(ColumnPlan(dtype, schema_of(dtype)), 700)
    columns.add(records)
    with pytest.raises(ValueError, match=r"'d' is beyond what days of 4 bytes reach.* at row 650;"):
        columns.batch()
    assert columns.batch(650).column("d")[649].as_py()[1] is None


@pytest.mark.parametrize("on_full", ["wait", "drop_slowest"])
def test_runs_of_a_log_become_one_table(on_full):
    """Chunks end at any record: bits and texts go on in the middle of a byte, and nothing behind a chunk is read."""
    dtype = np.dtype([("b", "?"), ("s", "S9"), ("u", "U5"), ("t", "M8[us]"), ("w", "S3"), ("z", "S70")])
    records = filled(np.random.default_rng(5), dtype, 3000, is_ascii=False)
    with EventQueue.create("g", item=dtype, chunk_bytes=1 << 14, first_items=4, on_full=on_full) as queue:
        queue.put_many(records)
        expected = obvious(records)
        for _ in filter(use_isa, ISAS):
            with queue.subscribe(start="earliest") as reader:
                assert reader.to_arrow().equals(expected)
            assert queue.read_arrow(13, 2011).equals(expected.slice(13, 1998))
            assert pa.table(queue).equals(expected)


def test_columns_outlive_what_gathered_them():
    dtype = np.dtype([("n", "i8"), ("s", "S8")])
    for rows in (3, POOLED_BYTES // 8, 1 << 18):  # of its own memory, of Arrow's pool, and there of huge pages
        before = pa.total_allocated_bytes()
        records = np.zeros(rows, dtype)
        records["n"] = np.arange(rows)
        columns = Columns(ColumnPlan(dtype, schema_of(dtype)), rows)
        columns.add(records)
        batch = columns.batch()
        with pytest.raises(ValueError, match=f"no {rows} records are there"):
            columns.batch()
        column = batch.column("n")
        del batch, columns
        assert column.equals(pa.array(np.arange(rows)))
        del column
        assert pa.total_allocated_bytes() == before


def test_more_than_its_room_is_refused():
    plan = ColumnPlan(np.dtype("i8"), schema_of("i8"))
    columns = Columns(plan, 3)
    with pytest.raises(ValueError, match="no room for 4 records after 0: rows=3"):
        columns.add(np.zeros(4, "i8"))
    with pytest.raises(ValueError, match="no room for 2 records"):
        columns.add(np.zeros(2, "i4"))
    with pytest.raises(ValueError, match="no room for 1073741824 texts of 8 bytes in one batch of 2 GB"):
        Columns(ColumnPlan(np.dtype("S8"), schema_of("S8")), 1 << 30)
    with pytest.raises(ValueError, match="a place must lie in its memory: record 9"):
        GatherPlan(8, 0, [("copy", 8, 1, ("record", 9), ("column", 0), ("nowhere", 0))], [("values", 8, 1)], [])
    assert plan.gathered is not None
    with pytest.raises(ValueError, match="rows must not be negative"):
        Gatherer(plan.gathered, -1, pa.allocate_buffer)
