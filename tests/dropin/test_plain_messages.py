"""The short form in which small objects of built-in types travel: what arrives equals what was put."""

import math
import os
import pickle
import random
import sys
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queueduct import GrowingQueue
from queueduct.multiprocessing import Queue

PLAIN_MESSAGE = 1
pytestmark = pytest.mark.timeout(60)


class RawSide:
    """The bytes of a queue's messages, seen and put from outside."""

    def __init__(self):
        before = set(os.listdir("/proc/self/fd"))
        self.raw = GrowingQueue.create(None, item=bytes, slot_bytes=128)
        new = set(os.listdir("/proc/self/fd")) - before
        # one of a file without a name
        self.number = next(
            int(fd) for fd in new if os.path.lexists(f"/proc/self/fd/{fd}") and not os.fstat(int(fd)).st_nlink
        )
        self.queue = Queue.__new__(Queue)
        self.queue.__setstate__((self, str(self.raw.directory), False))

    def detach(self):
        return os.dup(self.number)

    def message_of(self, item):
        self.queue.put(item)
        return self.raw.get(timeout=0)

    def item_of(self, message):
        self.raw.put(message)
        return self.queue.get(timeout=0)


@pytest.fixture(scope="module")
def sides():
    return RawSide()


def has_same_types(left, right):
    if type(left) is not type(right):
        return False
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(has_same_types, left, right))
    if isinstance(left, dict):
        return list(map(type, left)) == list(map(type, right)) and all(
            has_same_types(left[a], right[b]) for a, b in zip(left, right, strict=True)
        )
    if isinstance(left, float):
        return left.hex() == right.hex() or (math.isnan(left) and math.isnan(right))
    return left == right


keys = st.none() | st.booleans() | st.integers() | st.text() | st.binary(max_size=20) | st.floats(allow_nan=False)
leaves = keys | st.floats() | st.text(st.characters(codec=None, min_codepoint=0, max_codepoint=sys.maxunicode))
items = st.recursive(
    leaves,
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(keys, inner),
    max_leaves=30,
)


@settings(max_examples=400, deadline=None)
@given(item=items)
def test_whatever_is_put_arrives(sides, item):
    sides.queue.put(item)
    assert has_same_types(sides.queue.get(timeout=0), item)


EDGES = [
    0,
    -1,
    2**63 - 1,
    -(2**63),
    2**63,
    -(2**63) - 1,
    2**200,
    -0.0,
    5e-324,
    math.inf,
    "",
    "\0",
    "\x7f",
    "\x80",
    "ÿ",
    "Ā",
    "\ud800",
    "\U0001f600" * 300,
    "é" * 2000,
    "a" * 65_535,
    "a" * 65_536,
    (),
    [],
    {},
    (b"", b"\0", b"\1", b"."),
    [[]] * 9,
    {1: {2: {3: {4: {5: {6: {7: {8: {9: {}}}}}}}}}},
    ((((((((((1,),),),),),),),),),),
    tuple(range(1000)),
    {"a": True, 1: False, None: None, 2.5: 3j, b"x": bytearray(b"y")},
    slice(1, 2),
    range(3),
    frozenset({1}),
]


@pytest.mark.parametrize("item", EDGES, ids=lambda item: repr(item)[:30])
def test_the_edges_of_each_type(sides, item):
    sides.queue.put(item)
    assert has_same_types(sides.queue.get(timeout=0), item)


def test_every_length_around_the_limit(sides):
    for length in range(1000, 1040):
        for item in (b"b" * length, "s" * length, ("s" * length, 1), "\u0101" * (length // 2)):
            sides.queue.put(item)
            assert sides.queue.get(timeout=0) == item


class Number(int):
    """A class of a user."""


class Named(tuple):
    """Another one."""

    __slots__ = ()


@pytest.mark.parametrize("item", [Number(3), Named((1, 2)), [Number(3)], {"a": Named()}])
def test_subclasses_stay_subclasses(sides, item):
    assert sides.message_of(item)[-1:] == b"."
    sides.queue.put(item)
    assert has_same_types(sides.queue.get(timeout=0), item)


@pytest.mark.parametrize(
    "item", [("job", 17, 2.5), {"id": 1, "tags": ["a", "é"], "ok": True}, None, "text", 5, (b"raw", [])]
)
def test_small_objects_take_the_short_form(sides, item):
    assert sides.message_of(item)[-1] == PLAIN_MESSAGE


def test_what_is_there_twice_is_there_twice_at_the_other_end(sides):
    inner = [1]
    sides.queue.put((inner, inner))
    first, second = sides.queue.get(timeout=0)
    assert first is second

    loop = [1]
    loop.append(loop)
    sides.queue.put(loop)
    arrived = sides.queue.get(timeout=0)
    assert arrived[1] is arrived

    table = {}
    table["self"] = table
    sides.queue.put(table)
    arrived = sides.queue.get(timeout=0)
    assert arrived["self"] is arrived


def test_an_object_is_as_it_was_when_it_was_put(sides):
    item = [1, {"a": 2}]
    sides.queue.put(item)
    item.append(3)
    item[1]["b"] = 4
    assert sides.queue.get(timeout=0) == [1, {"a": 2}]


DAMAGED = [
    b"",
    b"t",
    b"t\x02\x00i",
    b"t\xff\xff",
    b"l\xff\xff" + b"N" * 10,
    b"d\x01\x00N",
    b"d\x01\x00l\x00\x00N",
    b"d\x02\x00",
    b"a\x05\x00abc",
    b"b\xff\xffabc",
    b"u",
    b"u\x03\x01\x00ab",
    b"u\x04\x01\x00abc",
    b"u\x04\x01\x00\xff\xff\xff\xff",
    b"u\x02\xff\xff",
    b"i1234567",
    b"f",
    b"NN",
    b"z",
    b"\x01",
    b"t\x01\x00" * 20 + b"N",
]


@pytest.mark.parametrize("body", DAMAGED)
def test_a_damaged_message_is_an_error(sides, body):
    with pytest.raises((pickle.UnpicklingError, TypeError)):
        sides.item_of(body + bytes([PLAIN_MESSAGE]))


def test_no_changed_byte_crashes_a_consumer(sides):
    """Of each message each byte is changed in turn, then some at random: an item, or an error that says so."""
    choose = random.Random(7)
    originals = [
        sides.message_of(item)
        for item in (("job", 17, 2.5, None), {"a": ["é", b"raw", {"b": (True, False)}], 1: -1}, [["\U0001f600"]])
    ]
    changed = [
        message[:at] + bytes([value]) + message[at + 1 : -1] + message[-1:]
        for message in originals
        for at in range(len(message) - 1)
        for value in (0, 1, 100, 116, 117, 255)
    ]
    changed += [choose.randbytes(choose.randrange(40)) + bytes([PLAIN_MESSAGE]) for _ in range(3_000)]
    errors = 0
    for message in changed:
        try:
            repr(sides.item_of(message))
        except (pickle.UnpicklingError, TypeError):
            errors += 1
    assert errors > 100


def test_an_item_that_changes_while_it_is_put(sides):
    """The numbers that arrive are a list as it was at some moment, or one that pickle saw."""
    item = [1, ["inner"], {"a": [2]}]
    table = {"x": [1]}
    stop = threading.Event()

    def change():
        while not stop.is_set():
            item.append(["more"])
            table[len(table)] = [2]
            if len(item) > 60:
                del item[3:]
                for key in list(table)[1:]:
                    del table[key]

    changer = threading.Thread(target=change)
    changer.start()
    try:
        for _ in range(2_000):
            try:
                sides.queue.put((item, table))
            except RuntimeError:  # pickle's own: the dictionary changed its size
                continue
            arrived, arrived_table = sides.queue.get(timeout=0)
            assert arrived[:3] == [1, ["inner"], {"a": [2]}]
            assert all(each == ["more"] for each in arrived[3:])
            assert arrived_table["x"] == [1]
    finally:
        stop.set()
        changer.join()
