"""Values that Python made go into a record unchanged, or are refused with the name of their field."""

from __future__ import annotations

import array
import asyncio
import datetime as dt
import enum
import math
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import queueduct
from queueduct import BoundedQueue, UnfitItem
from tests.support.kinds import CLASSES
from tests.support.reading import reader_of

UTC = dt.UTC
TICK = np.dtype([("symbol", "S8"), ("size", "<i4")])
NESTED = np.dtype([("id", "<i8"), ("at", [("x", "<f4"), ("label", "U3")]), ("legs", "<i2", (2,))])


class Side(enum.IntEnum):
    BUY = 1


def calls_of(q):
    """Every call that takes items: of one, and of several."""
    ones = [q.put, q.put_nowait, q.try_put]
    if hasattr(q, "aput"):
        ones.append(lambda item: asyncio.run(q.aput(item)))
    if q.kind in ("slots", "overwriting"):
        ones.append(lambda item: q.put(item, overwrite=True))
    several = [q.put_many, lambda items: q.put_many(iter(items)), lambda items: q.put_many(tuple(items))]
    if hasattr(q, "put_once"):
        several.append(lambda items: q.put_once(items, "me", 1))
    return ones, several


@pytest.mark.parametrize("kind", CLASSES)
def test_every_call_of_every_kind_refuses_what_would_be_changed_and_puts_nothing(kind):
    with CLASSES[kind].create("q", item=TICK) as q:
        ones, several = calls_of(q)
        for put in ones:
            with pytest.raises(UnfitItem, match=r"field 'symbol' must come through unchanged as .S8: 'GOOGLCLASSA'"):
                put(("GOOGLCLASSA", 3))
            with pytest.raises(
                UnfitItem, match=r"field 'size' must come through unchanged as int32: 3\.9: it would be 3"
            ):
                put(("GOOGL", 3.9))
        for put in several:
            with pytest.raises(UnfitItem, match=r"field 'size' of item 2 .*: 3\.9"):
                put([("GOOGL", 3), (b"GOOGL", 4), ("GOOGL", 3.9), (None, 5)])
        assert q.empty()
        reader = reader_of(q)
        for put in ones:
            put(("GOOGL", 3))
            assert reader.get().item() == (b"GOOGL", 3)
        for put in several:
            put([("GOOGL", 3), (b"GOOGL\0", 4)])
            assert reader.get_many(9).tolist() == [(b"GOOGL", 3), (b"GOOGL", 4)]


REFUSED = [
    ("<i4", 3.9),
    ("<i4", 2**31),
    ("u1", -1),
    ("u1", 256),
    ("<i4", "12"),
    ("<i4", b"12"),
    ("<i4", None),
    ("<i4", math.nan),
    ("<i4", math.inf),
    ("<i4", Decimal("1.5")),
    ("<i4", Fraction(3, 2)),
    ("<i4", 1j),
    ("<f8", None),
    ("<f8", "1.5"),
    ("<f8", 2**53 + 1),
    ("<f8", np.int64(2**53 + 1)),
    (">f8", np.int64(2**53 + 1)),
    ("<f4", np.int64(2**53 + 1)),
    ("<f4", np.uint32(2**24 + 1)),
    ("<c16", np.uint64(2**64 - 1)),
    ("<c8", np.int64(-(2**53) - 1)),
    ("<f8", 10**400),
    ("<f8", Decimal("0.1")),
    ("<f8", 1 + 1j),
    ("<f8", np.complex128(1 + 1j)),
    ("<f4", 1e300),
    ("<f4", 2**24 + 1),
    ("<c8", 1e300j),
    ("<c8", None),
    ("?", None),
    ("?", 2),
    ("?", "no"),
    ("S3", b"abcd"),
    ("S3", "abcd"),
    ("S3", "é"),
    ("S4", None),
    ("S4", 12),
    ("S4", 1.5),
    ("U3", "abcd"),
    ("U3", 12),
    ("U4", None),
    ("U3", b"\xff"),
    ("V4", b"abcdef"),
    ("V4", b"ab"),
    ("M8[D]", dt.datetime(2024, 1, 1, 12)),
    ("M8[us]", np.datetime64("2024-01-01T00:00:00.000000001")),
    ("M8[ns]", dt.datetime(3000, 1, 1)),
    ("M8[ns]", np.datetime64("3000-01-01", "us")),
    ("M8[us]", None),
    ("M8[ns]", None),
    ("M8[us]", "2024-01-01"),
    ("M8[us]", -(2**63)),
    ("M8[us]", dt.timedelta(1)),
    ("m8[D]", dt.timedelta(hours=25)),
    ("m8[s]", np.timedelta64(1500, "ms")),
    ("m8[s]", None),
    ("<f8", np.longdouble("1e400")),
    ("<c16", np.longdouble("1e400")),
    ("g", 2**200 + 1),
    ("g", Fraction(1, 3)),
    ("g", Decimal("0.1")),
    ("g", Decimal("NaN")),
    ("g", None),
    ("G", 2**200 + 1),
]


@pytest.mark.parametrize(("dtype", "value"), REFUSED, ids=repr)
def test_a_value_that_would_be_changed_is_refused(dtype, value):
    inner = np.dtype([("a", [("b", dtype)]), ("c", dtype, (2,))])
    good = np.zeros((), dtype).item() if np.dtype(dtype).kind not in "mM" else np.zeros((), dtype)[()]
    with BoundedQueue.create("q", 4, item=dtype) as alone, BoundedQueue.create("r", 4, item=inner) as q:
        with pytest.raises((TypeError, ValueError)), warnings.catch_warnings(action="ignore"):
            alone.put(value)
        for item, path in (((value,), [good, good]), "a.b"), (((good,), [good, value]), "c"):
            with pytest.raises(UnfitItem, match=f"field '{path}' must come"), warnings.catch_warnings(action="ignore"):
                q.put(item)
            with pytest.raises(UnfitItem, match=f"field '{path}' of item 1"), warnings.catch_warnings(action="ignore"):
                q.put_many([((good,), [good, good]), item])
        assert alone.empty()
        assert q.empty()
        q.put(((good,), [good, good]))  # and what it should have been is taken


TAKEN = [
    ("<i4", True, 1),
    ("<i4", 3.0, 3),
    ("<i4", Side.BUY, 1),
    ("<i4", np.int64(7), 7),
    ("<i4", np.array(7), 7),
    ("<i4", Decimal(7), 7),
    ("<f8", 7, 7.0),
    ("<f8", 2**60, 2.0**60),
    ("<f8", np.int64(2**60), 2.0**60),
    (">f4", np.uint64(2**63), 2.0**63),
    ("<f8", Fraction(1, 2), 0.5),
    ("<f8", math.inf, math.inf),
    ("<f4", 0.1, float(np.float32(0.1))),
    ("<f4", np.float64(0.1), float(np.float32(0.1))),
    ("<f4", 1e-300, 0.0),
    ("<c16", 1.5, 1.5),
    ("<c8", 0.1j, complex(np.complex64(0.1j))),
    ("?", True, True),
    ("?", 1, True),
    ("S3", "abc", b"abc"),
    ("S3", b"a\0", b"a"),
    ("S3", "a\0\0\0\0", b"a"),
    ("U3", "é", "é"),
    ("U3", b"ab", "ab"),
    ("V4", b"abcd", b"abcd"),
    ("M8[D]", dt.date(2024, 1, 1), dt.date(2024, 1, 1)),
    ("M8[D]", dt.datetime(2024, 1, 1), dt.date(2024, 1, 1)),
    ("M8[us]", dt.datetime(2024, 1, 1, 1, 2, 3, 4), dt.datetime(2024, 1, 1, 1, 2, 3, 4)),
    ("M8[ns]", dt.datetime(2024, 1, 1), 1704067200 * 10**9),
    ("M8[ns]", 17, 17),
    ("M8[us]", 17, dt.datetime(1970, 1, 1, 0, 0, 0, 17)),
    ("M8[us]", np.datetime64("2024-01-01T00:00:00.000001000"), dt.datetime(2024, 1, 1, 0, 0, 0, 1)),
    ("M8[us]", np.datetime64("NaT", "us"), None),
    (">M8[us]", np.datetime64("2024-01-01"), dt.datetime(2024, 1, 1)),
    ("m8[s]", dt.timedelta(minutes=1), dt.timedelta(minutes=1)),
    ("m8[s]", np.timedelta64(1000, "ms"), dt.timedelta(seconds=1)),
    ("m8[s]", 5, dt.timedelta(seconds=5)),
    (">m8[s]", 5, dt.timedelta(seconds=5)),
    (">M8[us]", 17, dt.datetime(1970, 1, 1, 0, 0, 0, 17)),
    ("g", 2**60 + 1, 2**60 + 1),
    ("g", Fraction(1, 2), 0.5),
    ("g", 0.1, 0.1),
    ("G", 7, 7),
]


@pytest.mark.parametrize(("dtype", "value", "expected"), TAKEN, ids=repr)
def test_a_value_that_means_the_same_is_put_alone_in_a_field_and_in_an_array(dtype, value, expected):
    inner = np.dtype([("a", [("b", dtype)]), ("c", dtype, (2,))])
    with BoundedQueue.create("q", 4, item=dtype) as alone, BoundedQueue.create("r", 4, item=inner) as q:
        alone.put_many([value, value])
        assert alone.get_many(4).tolist() == [expected, expected]
        alone.put(value)
        assert alone.get().item() == expected
        q.put(((value,), [value, value]))
        q.put_many([((value,), (value, value))])
        for got in q.get_many(4):
            assert got["a"]["b"].item() == expected
            assert got["c"].tolist() == [expected, expected]


@pytest.mark.parametrize("kind", ["<f4", "<f8", ">f8", "<c8", "<c16"])
@pytest.mark.parametrize("number", [np.int64(2**53 + 1), np.int64(-(2**53) - 1), np.uint64(2**64 - 1)], ids=repr)
def test_a_whole_number_of_numpy_that_no_float_holds_is_refused_alone_and_among_others(kind, number):
    numbers = BoundedQueue.create("n", 8, item=kind)
    with numbers, BoundedQueue.create("r", 8, item=[("a", "<i4"), ("b", [("c", kind)])]) as q:
        for put, given_ in (
            (numbers.put_many, [1.0, number]),
            (q.put, (1, (number,))),
            (q.put_many, [(1, (1.0,)), (2, (number,))]),
        ):
            with pytest.raises(UnfitItem, match=f"must come through unchanged as .*: {number}: it would be"):
                put(given_)
        assert numbers.empty()
        assert q.empty()
        q.put((1, (np.int64(2**60),)))  # which a float holds
        assert q.get()["b"]["c"] == 2**60


def test_nan_stays_nan():
    with BoundedQueue.create("q", 4, item=[("a", "<f4"), ("b", "<c16")]) as q:
        q.put_many([(math.nan, complex(math.nan, 1)), (-math.inf, complex(0, -math.inf))])
        assert str(q.get_many(4).tolist()) == "[(nan, (nan+1j)), (-inf, -infj)]"


def test_a_time_with_a_zone_is_refused_and_what_the_error_says_works():
    aware = dt.datetime(2024, 1, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    with BoundedQueue.create("q", 4, item=[("at", "M8[us]")]) as q:
        with (
            pytest.raises(UnfitItem, match=r"field 'at'.*astimezone\(timezone\.utc\)\.replace\(tzinfo=None\)"),
            warnings.catch_warnings(action="ignore"),
        ):
            q.put((aware,))
        q.put((aware.astimezone(UTC).replace(tzinfo=None),))
        assert q.get().item() == (dt.datetime(2024, 1, 1, 10),)


@pytest.mark.parametrize(
    ("item", "path"),
    [
        ((1, (0.5, "abcd"), [1, 2]), "at.label"),
        ((1, (None, "abc"), [1, 2]), "at.x"),
        ((1, (0.5, "abc"), 5), "legs"),
        ((1, (0.5, "abc"), [5]), "legs"),
        ((1, (0.5, "abc"), [1, 2, 3]), "legs"),
        ((1, (0.5, "abc"), [1, 2.5]), "legs"),
        ((1, (0.5, "abc"), np.array([1.0, 2.0])), "legs"),
        ((1, (0.5, "abc"), np.array([1, 2**20])), "legs"),
        ((1, (0.5, "abc"), array.array("d", [1.5, 2])), "legs"),
        ((1, 0.5, [1, 2]), "at"),
        ((1, (0.5,), [1, 2]), "at"),
        ((1, np.array(("abc", 0.5), [("label", "U3"), ("x", "<f4")]), [1, 2]), "at"),
    ],
    ids=repr,
)
def test_a_field_further_in_is_named_by_its_path_and_nothing_is_spread_over_it(item, path):
    with BoundedQueue.create("q", 4, item=NESTED) as q:
        with pytest.raises(UnfitItem, match=f"field '{path}' must come"):
            q.put(item)
        with pytest.raises(UnfitItem, match=f"field '{path}' of item 1 must"):
            q.put_many([(1, (0.5, "abc"), [1, 2]), item])
        assert q.empty()


@pytest.mark.parametrize("legs", [[1, 2], (1, 2), np.array([1, 2]), range(1, 3), array.array("h", [1, 2])], ids=repr)
def test_a_field_that_is_an_array_takes_what_has_its_shape(legs):
    with BoundedQueue.create("q", 4, item=NESTED) as q:
        q.put((1, (0.5, "abc"), legs))
        q.put_many([(1, np.array((0.5, "abc"), NESTED["at"]), legs)])
        for got in q.get_many(4):
            assert (got["id"], got["at"].item(), got["legs"].tolist()) == (1, (0.5, "abc"), [1, 2])


@pytest.mark.parametrize("item", [5, [1], [1, 2, 3], "text", (1, 2, 3), (1,), {"a": 1}, None], ids=repr)
def test_a_record_has_each_of_its_fields_and_nothing_is_spread_over_them(item):
    with BoundedQueue.create("q", 4, item=[("a", "<i4"), ("b", "<i4")]) as q:
        with pytest.raises((TypeError, ValueError)):
            q.put(item)
        with pytest.raises((TypeError, ValueError)):
            q.put_many([(1, 2), item])
        assert q.empty()


def test_the_error_is_whichever_one_numpy_would_have_raised():
    assert issubclass(UnfitItem, (queueduct.QueueductError))
    for known in (ValueError, TypeError, OverflowError):
        assert issubclass(UnfitItem, known)


# -- random dtypes, random values -----------------------------------------------------------------------

LEAVES = ["?", "i1", "<i4", ">i8", "u1", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16", "S3", "U2", "V3"]
LEAVES += ["M8[D]", "M8[ms]", "M8[us]", "M8[ns]", "m8[s]", "m8[ns]"]
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.integers(-3, 300),
    st.sampled_from([2**53 + 1, 2**63, 2**64 - 1, -(2**63)]),
    st.floats(),
    st.floats(-10, 10, width=16),
    st.complex_numbers(),
    st.text(max_size=4),
    st.binary(max_size=4),
    st.decimals(allow_nan=True),
    st.fractions(),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.just(UTC)),
    st.timedeltas(),
    st.integers(-(2**40), 2**40).map(lambda n: np.datetime64(n, "ns")),
    st.integers(-(2**62), 2**62).map(lambda n: np.datetime64(n, "s")),
    st.integers(-(2**62), 2**62).map(lambda n: np.timedelta64(n, "ms")),
    st.integers(-(2**40), 2**40).map(np.int64),
    st.floats().map(np.float64),
    st.floats(width=32).map(np.float32),
)
DTYPES = st.recursive(
    st.sampled_from(LEAVES).map(np.dtype),
    lambda inner: st.lists(st.tuples(inner, st.sampled_from([(), (1,), (2,), (2, 1)])), min_size=1, max_size=3).map(
        lambda fields: np.dtype([(f"f{i}", *field) for i, field in enumerate(fields)])
    ),
    max_leaves=5,
)


def values_for(dtype):
    """Of its shape, mostly; each leaf is anything, or something that fits."""
    if dtype.subdtype is not None:
        inner = values_for(np.dtype((dtype.base, dtype.shape[1:])) if dtype.shape[1:] else dtype.base)
        exact = st.lists(inner, min_size=dtype.shape[0], max_size=dtype.shape[0])
        return st.one_of(exact, exact, exact, VALUES)
    if dtype.names is not None:
        return st.tuples(*[values_for(dtype[name]) for name in dtype.names])
    return st.one_of(VALUES, st.just(np.zeros((), dtype)[()]), st.integers(0, 1))


def is_what_was_put(value, got, dtype):
    """Judged apart from the code: by what a person would say who sees both."""
    if dtype.names is not None:
        return all(is_what_was_put(value[i], got[name], dtype[name]) for i, name in enumerate(dtype.names))
    if isinstance(got, np.ndarray) and got.shape:
        return len(value) == len(got) and all(map(lambda v, g: is_what_was_put(v, g, dtype.base), value, got))
    if value is None:
        return False
    got = got[()] if isinstance(got, np.ndarray) else got  # numpy has bytes and str that cannot be indexed so
    if dtype.kind in "mM":
        if isinstance(value, (int, np.integer)) and not isinstance(value, np.timedelta64):
            return not np.isnat(got) and int(got.astype("i8")) == value
        if isinstance(value, (dt.date, dt.timedelta)):
            epoch = dt.datetime(1970, 1, 1)
            if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
                value = dt.datetime(value.year, value.month, value.day)
            given_ns = (
                (value if isinstance(value, dt.timedelta) else value - epoch) // dt.timedelta(microseconds=1) * 1000
            )
            return nanoseconds(got) == given_ns
        return nanoseconds(got) == nanoseconds(value) and got.dtype.kind == value.dtype.kind
    if dtype.kind in "SU" and isinstance(value, (str, bytes)):
        text, found = (v if isinstance(v, str) else v.decode("latin-1") for v in (value, got))
        return text.rstrip("\0") == found
    if dtype.kind == "V":
        return isinstance(value, (bytes, np.void)) and bytes(value) == bytes(got)
    if dtype.kind in "fc" and isinstance(value, (float, complex, np.inexact)):
        return str(np.asarray(value).astype(dtype)[()]) == str(got) and np.isfinite(value) == np.isfinite(got)
    return bool(value == got.item())


def nanoseconds(time):
    unit, count = np.datetime_data(time.dtype)
    scale = {"D": 86400 * 10**9, "s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}[unit]
    return int(time.astype("i8")) * scale * count


@given(data=st.data(), dtype=DTYPES)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_put_comes_out_as_it_was_or_is_refused_with_the_field(data, dtype):
    items = data.draw(st.lists(values_for(dtype), min_size=1, max_size=3))
    with (
        BoundedQueue.create("q", 4, item=dtype, exist_ok=False) as q,
        warnings.catch_warnings(action="ignore"),
        np.errstate(all="ignore"),
    ):
        try:
            refused = None
            for item in items:
                try:
                    q.put(item)
                except (TypeError, ValueError) as error:  # alone, what numpy made is judged as arrays are
                    refused = error
                    assert not dtype.names or (type(error) is UnfitItem and "field 'f" in str(error))
                else:
                    assert is_what_was_put(item, np.asarray(q.get()), dtype), item
            try:
                assert q.put_many(items) == len(items)
            except (TypeError, ValueError):
                assert refused is not None
                assert q.empty()
            else:
                assert refused is None or not dtype.names
                for item, got in zip(items, q.get_many(9), strict=True):
                    assert is_what_was_put(item, np.asarray(got), dtype), item
        finally:
            q.unlink()
