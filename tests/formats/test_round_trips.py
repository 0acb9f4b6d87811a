"""Every format gives back what it was given, through a real queue."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import queueduct
from queueduct import formats
from tests.formats.records import arrays, bits

SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def trip(name, item, items, *, is_file=False, strings="string"):
    """What a queue has after the items went through the format."""
    out = io.BytesIO()
    writer = formats.writer(name, out, item, strings=strings, is_file=is_file)
    writer.write(items[:2])
    writer.write(items[2:])
    writer.close()
    with queueduct.BoundedQueue.create(None, 64, item=item, slot_bytes=4096 if item is bytes else None) as queue:
        for batch in formats.batches(name, io.BytesIO(out.getvalue()), item, 3):
            queue.put_many(batch.items)
        return queue.get_many(64, block=False)


@pytest.mark.parametrize("name", ["jsonl", "csv", "raw"])
def test_records_come_back_to_the_last_bit(name):
    @SETTINGS
    @given(arrays())
    def check(given):
        dtype, records = given
        assert bits(trip(name, dtype, records)) == bits(records)

    check()


@pytest.mark.parametrize("is_file", [True, False])
@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_records_come_back_through_columns(name, is_file):
    pytest.importorskip("pyarrow", reason="an extra: make test installs it")

    @SETTINGS
    @given(arrays(is_columnar=True))
    def check(given):
        dtype, records = given
        assert bits(trip(name, dtype, records, is_file=is_file, strings="binary")) == bits(records)

    check()


@pytest.mark.parametrize("name", ["jsonl", "csv", "parquet", "arrow"])
def test_bytes_come_back_whatever_is_in_them(name):
    if name in ("parquet", "arrow"):
        pytest.importorskip("pyarrow", reason="an extra: make test installs it")

    @SETTINGS
    @given(
        st.lists(
            st.binary(max_size=300) | st.sampled_from([b"", b"base64:", b"base64:YQ==", b'"', b"\r\n", b"\0"]),
            min_size=1,
            max_size=20,
        )
    )
    def check(items):
        assert trip(name, bytes, items) == items

    check()


def test_a_lone_carriage_return_is_a_character_like_any_other():
    records = np.array([("\r", b"\r"), ("a\rb", b""), ("", b"\n"), ('"', b'"",')], [("u", "U3"), ("s", "S3")])
    assert bits(trip("csv", records.dtype, records)) == bits(records)
    for single in (records["u"], records["s"]):
        assert bits(trip("csv", single.dtype, single)) == bits(single)


def test_lines_are_items_and_a_newline_in_one_is_refused():
    items = [b"one", b"", b"\xff\r", b"three words here"]
    assert trip("lines", bytes, items) == items
    with pytest.raises(ValueError, match="must not have a newline in it: b'a\\\\nb'; use the format jsonl"):
        trip("lines", bytes, [b"a\nb"])


def test_a_raw_file_is_one_item_of_bytes():
    data = bytes(range(256)) * 9
    (batch,) = formats.batches("raw", io.BytesIO(data), bytes, 3)
    assert (batch.items, batch.place(0)) == ([data], "row 1")


def test_json_values_are_those_that_a_reader_expects():
    item = np.dtype([("sym", "S8"), ("px", "f4"), ("ts", "M8[us]"), ("span", "m8[s]"), ("on", "?"), ("at", "f8", (2,))])
    records = np.array(
        [
            (b"ACME", 0.1, "2026-01-05T09:30", 90, True, [1, np.inf]),
            (b"\xff", np.nan, "NaT", "NaT", False, [-np.inf, -0.0]),
        ],
        item,
    )
    out = io.BytesIO()
    formats.writer("jsonl", out, item).write(records)
    assert out.getvalue().decode().splitlines() == [
        '{"sym": "ACME", "px": 0.1, "ts": "2026-01-05T09:30:00.000000", "span": 90, "on": true, '
        '"at": [1.0, "Infinity"]}',
        '{"sym": {"base64": "/w=="}, "px": "NaN", "ts": null, "span": null, "on": false, "at": ["-Infinity", -0.0]}',
    ]
    out = io.BytesIO()
    writer = formats.writer("csv", out, item)
    writer.write(records)
    writer.close()
    assert out.getvalue().decode().splitlines() == [
        "sym,px,ts,span,on,at",
        'ACME,0.1,2026-01-05T09:30:00.000000,90,true,"[1.0, ""Infinity""]"',
        'base64:/w==,NaN,,,false,"[""-Infinity"", -0.0]"',
    ]


@pytest.mark.parametrize("name", ["jsonl", "csv"])
@pytest.mark.parametrize("kind", ["c16", "g", "M8"])
def test_a_type_without_values_is_refused_with_the_name_of_its_field(name, kind):
    item = np.dtype([("a", [("inner", kind)])])
    if item["a"]["inner"].itemsize == 8 and kind == "g":
        return  # where a long double is a double
    with pytest.raises(
        TypeError, match=r"field 'a.inner' has a type that \w+ has no value for: .*; use the format raw"
    ):
        formats.writer(name, io.BytesIO(), item)


def test_every_ending_names_a_format_that_is_there():
    assert set(formats.ENDINGS.values()) == {*formats.FORMATS} - {"table"}
    assert formats.format_of_file("a/B.JSONL") == "jsonl"
    assert formats.format_of_file("jobs") is None


@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_without_pyarrow_the_error_says_what_to_install(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for work in (
        lambda: formats.writer(name, io.BytesIO(), bytes),
        lambda: formats.batches(name, io.BytesIO(), bytes, 1),
    ):
        with pytest.raises(ImportError, match=r"need pyarrow, which is not installed: pip install .*; or use jsonl"):
            work()
