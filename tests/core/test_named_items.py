"""Records given as dicts and lists, and batches given as a dict of columns: by name, unchanged, or refused."""

from __future__ import annotations

import array
import asyncio
import datetime as dt
import math
from collections import OrderedDict, UserDict, defaultdict, deque
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import queueduct
from queueduct import BoundedQueue, UnfitItem
from tests.support.kinds import CLASSES
from tests.support.reading import reader_of

TICK = np.dtype([("symbol", "S8"), ("price", "<f8")])
NESTED = np.dtype([("id", "<i8"), ("at", [("x", "<f4"), ("label", "U3")]), ("legs", [("n", "<i2")], (2,))])
WHOLE = (1, (0.5, "abc"), [(3,), (4,)])
NAMED = {"legs": [{"n": 3}, {"n": 4}], "at": {"label": "abc", "x": 0.5}, "id": 1}
STORED = np.array([WHOLE], NESTED)[0]


@pytest.fixture
def ticks():
    with BoundedQueue.create("ticks", 8, item=TICK) as q:
        yield q


@pytest.fixture
def nested():
    with BoundedQueue.create("nested", 8, item=NESTED) as q:
        yield q


def calls_of(q):
    """Every call of one item, and every call of several."""
    ones = [q.put, q.put_nowait, q.try_put, lambda item: asyncio.run(q.aput(item))]
    several = [q.put_many, lambda items: asyncio.run(q.aput_many(items))]
    if hasattr(q, "put_once"):
        several.append(lambda items: q.put_once(items, "me", 1))
    return ones, several


@pytest.mark.parametrize("kind", CLASSES)
def test_every_call_of_every_kind_takes_dicts_lists_and_columns(kind):
    row = {"price": 101.5, "symbol": "ACME"}
    expected = (b"ACME", 101.5)
    with CLASSES[kind].create("q", item=TICK) as q:
        ones, several = calls_of(q)
        reader = reader_of(q)
        for put in ones:
            for item in (row, ["ACME", 101.5], ("ACME", 101.5)):
                put(item)
                assert reader.get().item() == expected
        batches = [[row, row], [row, expected], [expected, row], [["ACME", 101.5], row], iter([row, row]), (row, row)]
        batches += [{"price": [101.5, 101.5], "symbol": ["ACME", "ACME"]}]
        for put in several[:2]:
            for batch in batches:
                assert put(batch if not hasattr(batch, "__next__") else iter([row, row])) == 2
                assert reader.get_many(9).tolist() == [expected] * 2
        for sequence, batch in enumerate([{"price": [101.5], "symbol": ["ACME"]}, [row]]):
            if hasattr(q, "put_once"):
                assert q.put_once(batch, "producer", sequence) == 1
                assert reader.get_many(9).tolist() == [expected]


@pytest.mark.parametrize("kind", CLASSES)
def test_every_call_of_every_kind_refuses_a_dict_that_does_not_fit_and_puts_nothing(kind):
    good = {"symbol": "ACME", "price": 1.0}
    with CLASSES[kind].create("q", item=TICK) as q:
        ones, several = calls_of(q)
        for put in ones:
            with pytest.raises(UnfitItem, match=r"field 'symbol' must come .* 'GOOGLCLASSA'"):
                put({"price": 1.0, "symbol": "GOOGLCLASSA"})
            with pytest.raises(UnfitItem, match=r"missing: 'price'; give each field a value$"):
                put({"symbol": "ACME"})
        for put in several:
            with pytest.raises(UnfitItem, match=r"field 'price' of item 1 .*: None: None is no value"):
                put([good, {"symbol": "ACME", "price": None}])
            with pytest.raises(UnfitItem, match=r"a record of item 1 .*: unknown: 'size'; leave out what is unknown$"):
                put([good, good | {"size": 3}])
            with pytest.raises(UnfitItem, match=r"field 'price' of item 1 .* None"):
                put({"symbol": ["ACME", "ACME"], "price": [1.0, None]})
        assert q.empty()


@pytest.mark.parametrize(
    "item",
    [
        NAMED,
        (1, NAMED["at"], [(3,), (4,)]),
        (1, (0.5, "abc"), NAMED["legs"]),
        (1, [0.5, "abc"], ({"n": 3}, [4])),
        [1, {"x": 0.5, "label": "abc"}, np.array([(3,), (4,)], [("n", "<i2")])],
        OrderedDict(NAMED),
        UserDict(NAMED | {"at": MappingProxyType({"x": np.float32(0.5), "label": np.str_("abc")})}),
        MappingProxyType(NAMED),
        NAMED | {"at": STORED["at"]},
    ],
    ids=repr,
)
def test_records_within_records_are_given_by_name_too(nested, item):
    nested.put(item)
    assert nested.put_many([item, WHOLE, item]) == 3
    assert nested.get_many(9).tobytes() == STORED.tobytes() * 4


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (NAMED | {"at": {"x": 0.5, "label": "abcd"}}, r"field 'at\.label'{} must .*: 'abcd': it would be 'abc'"),
        (
            NAMED | {"at": {"x": 0.5}},
            r"the record 'at'{} must have exactly the fields 'x', 'label': .* missing: 'label';",
        ),
        (NAMED | {"at": None}, r"field 'at'{} must .*: None"),
        (NAMED | {"id": 1.5}, r"field 'id'{} must .*: 1\.5: it would be 1"),
        (NAMED | {"id": 2**63}, r"field 'id'{} must .*: 9223372036854775808"),
        (NAMED | {"legs": [{"n": 3}]}, r"field 'legs'{} must .* shape \(2,\) is needed"),
        (NAMED | {"legs": {"n": 3}}, r"field 'legs'{} must .* shape \(2,\) is needed"),
        (
            NAMED | {"legs": [{"n": 3}, {"m": 4}]},
            r"the record 'legs'{} .* missing: 'n'; unknown: 'm'; give .* own name",
        ),
        ({}, r"a record{} must have exactly the fields 'id', 'at', 'legs': {{}}: missing: 'id', 'at', 'legs'"),
        ({1: 2}, r"a record{} .* unknown: 1; "),
        ([1, (0.5, "abc")], "shape|tuple or a list|fields"),
        ([], "shape|fields|tuple"),
        ("text", "tuple or a list of its values, or a dict|shape"),
        ([{"id": 1}, 2, 3], r"'id'"),
    ],
    ids=repr,
)
def test_what_does_not_fit_is_named_by_its_path_and_nothing_is_put(nested, item, text):
    with pytest.raises((TypeError, ValueError), match=text.format("")):
        nested.put(item)
    with pytest.raises((TypeError, ValueError), match=text.format(" of item 1")):
        nested.put_many([NAMED, item])
    with pytest.raises((TypeError, ValueError), match=text.format(" of item 1")):
        nested.put_many([WHOLE, item])
    assert nested.empty()


def test_a_dict_with_defaults_is_not_asked_for_what_it_has_not(ticks):
    item = defaultdict(float, symbol="ACME")
    with pytest.raises(UnfitItem, match="missing: 'price'"):
        ticks.put(item)
    assert dict(item) == {"symbol": "ACME"}
    item["price"]  # the remedy: give it a value
    ticks.put(item)
    assert ticks.get().item() == (b"ACME", 0.0)


def test_the_remedies_of_a_misnamed_dict_work(ticks):
    item = {"sym": "ACME", "price": 1.0}
    with pytest.raises(
        UnfitItem, match="missing: 'symbol'; unknown: 'sym'; give each field a value, under its own name"
    ):
        ticks.put(item)
    item["symbol"] = item.pop("sym")
    ticks.put(item)
    with pytest.raises(UnfitItem, match="unknown: 'venue'; leave out what is unknown"):
        ticks.put(item | {"venue": "X"})
    ticks.put({name: (item | {"venue": "X"})[name] for name in ticks.item.names})
    assert ticks.get_many(9).tolist() == [(b"ACME", 1.0)] * 2


def test_an_array_field_does_not_take_the_keys_of_a_dict():
    for keys in ({b"a": 1, b"b": 2}, UserDict({b"a": 1, b"b": 2})):
        with BoundedQueue.create("q", 4, item=[("v", "S1", (2,))], exist_ok=True) as q:
            with pytest.raises(UnfitItem, match=r"field 'v' must .* an array of shape \(2,\) is needed"):
                q.put((keys,))
            assert q.empty()


def test_an_error_of_a_value_s_own_code_comes_through(ticks):
    class Broken(UserDict):
        def __getitem__(self, key):
            raise RuntimeError("no value today")

    with pytest.raises(RuntimeError, match="no value today"):
        ticks.put_many([("A", 1.0), Broken(symbol="A", price=1.0)])
    assert ticks.empty()


# Batches as a dict of columns.


@pytest.mark.parametrize(
    "columns",
    [
        {"symbol": ["A", "B"], "price": [1.0, 2.0]},
        {"price": (1, 2), "symbol": (b"A", b"B")},
        {"price": np.array([1, 2], "i4"), "symbol": np.array(["A", "B"])},
        {"price": np.array([1, 2], object), "symbol": np.array(["A", b"B"], object)},
        {"price": np.ma.array([1.0, 2.0]), "symbol": deque(["A", "B"])},
        {"price": array.array("d", [1, 2]), "symbol": memoryview(b"A\0\0\0\0\0\0\0B\0\0\0\0\0\0\0").cast("B", (2, 8))},
        {"price": range(1, 3), "symbol": np.array([b"A", b"B"], "S20")},
        UserDict({"price": [True, 2.0], "symbol": ["A", "B"]}),
    ],
    ids=repr,
)
def test_columns_of_any_form_are_put_row_by_row(ticks, columns):
    if isinstance(columns["symbol"], memoryview):
        columns["symbol"] = np.frombuffer(columns["symbol"], "S8")
    assert ticks.put_many(columns) == 2
    assert asyncio.run(ticks.aput_many(columns)) == 2
    assert ticks.get_many(9).tolist() == [(b"A", 1.0), (b"B", 2.0)] * 2


@pytest.mark.parametrize(
    "columns",
    [
        {"id": [1], "at": [{"x": 0.5, "label": "abc"}], "legs": [[{"n": 3}, {"n": 4}]]},
        {"id": [1], "at": {"x": [0.5], "label": ["abc"]}, "legs": [[(3,), (4,)]]},
        {"id": np.array([1]), "at": STORED["at"].reshape(1), "legs": STORED["legs"].reshape(1, 2)},
    ],
    ids=repr,
)
def test_columns_of_records_and_arrays_are_put(nested, columns):
    assert nested.put_many(columns) == 1
    assert nested.get_many(9).tobytes() == STORED.tobytes()


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"symbol": ["A"]}, "missing: 'price'"),
        ({"symbol": ["A"], "price": [1.0], "size": [3]}, "unknown: 'size'; leave out"),
        ({}, "missing: 'symbol', 'price'"),
        (
            {"symbol": ["A"], "price": [1.0, 2.0]},
            r"one length: {'symbol': 1, 'price': 2}; give each field a value in ev",
        ),
        (
            {"symbol": "ACME", "price": 1.0},
            "column 'symbol' must be a list or an array, .*: str; use put for one record",
        ),
        ({"symbol": ["ACME"], "price": 1.0}, "column 'price' must be a list or an array, .*: float; use put"),
        ({"symbol": {"A", "B"}, "price": [1.0, 2.0]}, "column 'symbol' must be a list or an array, .*: set"),
        ({"symbol": ["A"], "price": {0: 1.0}}, "column 'price' must be a list or an array, .*: dict"),
        ({"symbol": ["A"], "price": np.array(1.0)}, "column 'price' must be a list or an array, .*: ndarray"),
        ({"symbol": ["A", "GOOGLCLASSA"], "price": [1.0, 2.0]}, "field 'symbol' of item 1 .*: 'GOOGLCLASSA': it would"),
        ({"symbol": np.array(["A", "GOOGLCLASSA"]), "price": [1.0, 2.0]}, "field 'symbol' of item 1 .*GOOGLCLASSA"),
        ({"symbol": ["A", None], "price": [1.0, 2.0]}, "field 'symbol' of item 1 .*: None: None is no value"),
        ({"symbol": ["A"], "price": np.array([2**53 + 1])}, r"field 'price' of item 0 .*9007199254740993"),
        ({"symbol": ["A"], "price": [np.int64(2**53 + 1)]}, r"field 'price' of item 0 .*9007199254740993"),
        ({"symbol": ["A"], "price": np.ma.array([1.0], mask=[1])}, "field 'price' of item 0 .*mask"),
        ({"symbol": ["A"], "price": ["1.5"]}, "field 'price' of item 0 .*: '1.5'"),
        ({"symbol": [["A"]], "price": [1.5]}, r"field 'symbol' of item 0|shape"),
        ({"symbol": np.array([["A"]]), "price": [1.5]}, r"'symbol' of item 0|shape"),
        ({"symbol": ["A"], "price": np.array(["2024-01-01"], "M8[D]")}, r"field 'price' of item 0 .*2024"),
    ],
    ids=repr,
)
def test_columns_that_do_not_fit_are_refused_by_name_row_and_value(ticks, columns, text):
    with pytest.raises(UnfitItem, match=text):
        ticks.put_many(columns)
    with pytest.raises(UnfitItem, match=text):
        asyncio.run(ticks.aput_many(columns))
    with pytest.raises(UnfitItem, match=text):
        ticks.put_once(columns, "me", 1)
    assert ticks.empty()
    assert ticks.producers() == []


def test_a_column_of_times_is_never_read_as_numbers():
    with BoundedQueue.create("q", 4, item=[("at", "M8[us]")]) as q:
        q.put_many({"at": np.array(["2024-01-01T00:00:00.000001000"], "M8[ns]")})
        q.put_many({"at": [dt.datetime(2024, 1, 1, 0, 0, 0, 1)]})
        assert q.get_many(9)["at"].tolist() == [dt.datetime(2024, 1, 1, 0, 0, 0, 1)] * 2
        with pytest.raises(UnfitItem, match=r"field 'at' of item 1 .*more precise than this unit"):
            q.put_many({"at": np.array([10**18, 10**18 + 1]).view("M8[ns]")})
        assert q.empty()


def test_columns_may_be_empty(nested, ticks):
    assert nested.put_many({"id": [], "at": [], "legs": []}) == 0
    assert ticks.put_many({"symbol": [], "price": np.zeros(0)}) == 0
    with pytest.raises(UnfitItem, match="one length"):
        ticks.put_many({"symbol": [], "price": [1.0]})


def test_bytes_between_the_fields_hold_nothing_of_this_process():
    padded = np.dtype({"names": ["a", "b"], "formats": ["u1", "<i8"], "offsets": [0, 8], "itemsize": 32})
    with BoundedQueue.create("q", 4, item=padded) as q:
        q.put_many({"a": [255], "b": [-1]})
        assert q.get_many(1).tobytes() == b"\xff" + bytes(7) + b"\xff" * 8 + bytes(16)


def test_a_batch_of_columns_that_has_room_in_part_goes_on_with_a_slice():
    with BoundedQueue.create("q", 4, item=TICK) as q:
        columns = {"symbol": [b"%d" % i for i in range(10)], "price": np.arange(10.0)}
        done = 0
        got = []
        while done < 10:
            done += q.put_many({name: values[done:] for name, values in columns.items()}, timeout=0)
            got += q.get_many(9)["price"].tolist()
        assert got == list(range(10))


def queues_of_items():
    yield lambda: BoundedQueue(8)
    yield lambda: queueduct.GrowingQueue()
    yield lambda: queueduct.EventQueue()
    for kind in CLASSES.values():
        for item in (object, bytes):
            yield lambda kind=kind, item=item: kind.create("q", item=item)


@pytest.mark.parametrize("make", list(queues_of_items()))
def test_a_dict_is_an_object_and_never_a_batch_of_its_keys(make):
    with make() as q:
        for batch in ({b"a": 1}, UserDict({b"a": 1}), {}):
            for put in (q.put_many, lambda items, q=q: asyncio.run(q.aput_many(items))):
                with pytest.raises(
                    TypeError, match=r"put_many takes items one after another, .*: (User)?[dD]ict; use put"
                ):
                    put(batch)
            if hasattr(q, "put_once") and q.name:
                with pytest.raises(TypeError, match="items one after another"):
                    q.put_once(batch, "me", 1)
        assert q.empty()
        keys = {b"a" * 8: 1}
        reader = reader_of(q)
        if q.kind != "overwriting" or q.item is not bytes:
            assert q.put_many(list(keys)) == 1  # what the error says
            assert reader.get() == b"a" * 8
        if q.item is object:
            q.put({b"a": 1})
            assert reader.get() == {b"a": 1}


@pytest.mark.parametrize("item", ["<f8", ("<f8", (2,)), ([("a", "<f8")], (2,))], ids=repr)
def test_a_dict_of_columns_needs_a_record(item):
    with BoundedQueue.create("q", 4, item=item) as q:
        with pytest.raises(
            TypeError, match=r"a dict of columns needs a queue of records with fields.*list or an array of"
        ):
            q.put_many({"a": [1.0]})
        assert q.empty()


def test_a_one_field_record_is_not_mistaken_for_its_value():
    with BoundedQueue.create("q", 8, item=[("v", "<i4")]) as q:
        for one in ({"v": 5}, [5], (5,)):
            q.put(one)
        q.put_many([{"v": 5}, [5], (5,)])
        q.put_many({"v": [5]})
        assert q.get_many(9)["v"].tolist() == [5] * 7
        for wrong in (5, [[5]], [(5,)], {"v": [5]}):
            with pytest.raises((TypeError, ValueError)):
                q.put(wrong)
        for wrong in ([5], 5, {"v": 5}):
            with pytest.raises((TypeError, ValueError)):
                q.put_many(wrong)
        assert q.empty()


# Whatever a tuple may hold, a dict, a list and columns may, with the same outcome.

LEAVES = {
    "<i4": st.integers(-(2**33), 2**33),
    "<f4": st.one_of(st.floats(), st.integers(-(2**30), 2**30), st.none()),
    "S3": st.one_of(st.binary(max_size=4), st.text(max_size=4)),
    "U2": st.one_of(st.text(max_size=3), st.integers(0, 9)),
    "M8[s]": st.one_of(st.datetimes(), st.integers(0, 9)),
    "?": st.one_of(st.booleans(), st.integers(0, 2)),
}


@st.composite
def records(draw, depth=2):
    """A dtype of records, and a strategy of its items as nested tuples."""
    fields, strategies = [], []
    for i in range(draw(st.integers(1, 3))):
        if depth and draw(st.booleans()):
            dtype, values = draw(records(depth - 1))
        else:
            dtype = draw(st.sampled_from(sorted(LEAVES)))
            values = LEAVES[dtype]
        if draw(st.integers(0, 3)) == 0:
            fields.append((f"f{i}", dtype, (2,)))
            strategies.append(st.lists(values, min_size=2, max_size=2))
        else:
            fields.append((f"f{i}", dtype))
            strategies.append(values)
    return np.dtype(fields), st.tuples(*strategies)


def renamed(value, dtype, data):
    """The same value, each record as a tuple, a list or a dict in any order."""
    if dtype.subdtype is not None:
        return [renamed(one, dtype.base, data) for one in value]
    if dtype.names is None:
        return value
    parts = [renamed(one, dtype[name], data) for one, name in zip(value, dtype.names, strict=True)]
    form = data.draw(st.sampled_from(["tuple", "list", "dict"]))
    if form == "dict":
        pairs = list(zip(dtype.names, parts, strict=True))
        return dict(data.draw(st.permutations(pairs)))
    return tuple(parts) if form == "tuple" else parts


def outcome(put, q):
    try:
        put()
    except UnfitItem:
        assert q.empty()
        return None
    return q.get_many(9).tobytes() if not q.empty() else b""


@given(data=st.data(), made=records())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_tuples_lists_dicts_and_columns_have_one_outcome(data, made):
    dtype, values = made
    items = data.draw(st.lists(values, min_size=1, max_size=3))
    with BoundedQueue.create("q", 4, item=dtype) as q:
        try:
            expected = outcome(lambda: q.put_many(items), q)
            others = [renamed(item, dtype, data) for item in items]
            assert outcome(lambda: q.put_many(others), q) == expected
            assert outcome(lambda: [q.put(item) for item in others[:1]], q) == outcome(lambda: q.put_many(items[:1]), q)
            columns = {name: [item[i] for item in others_in_order(others, dtype)] for i, name in enumerate(dtype.names)}
            assert outcome(lambda: q.put_many(columns), q) == expected
        finally:
            q.unlink()


def others_in_order(items, dtype):
    return [[item[name] for name in dtype.names] if isinstance(item, dict) else item for item in items]


def test_nan_and_infinity_pass_by_name_too(ticks):
    ticks.put({"symbol": "A", "price": math.nan})
    ticks.put_many({"symbol": ["A"], "price": [math.inf]})
    assert str(ticks.get_many(9)["price"].tolist()) == "[nan, inf]"
