"""A value of the wrong type is refused by an error that says what the call needs, what it got, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import queueduct
import queueduct.multiprocessing
import queueduct.queue
from tests.edges.kinds import KINDS

NO_ITEMS = (None, 5, 1.5, object, np.int64(3))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("items", NO_ITEMS, ids=repr)
def test_what_holds_no_items_is_named(kind, items):
    with KINDS[kind].create("q") as q:
        calls = [q.put_many] + [lambda x: q.put_once(x, "p", 1)] * KINDS[kind].has_put_once
        for call in calls:
            with pytest.raises(TypeError, match=r"several items must be a list, an array .*for one item give a list"):
                call(items)
        assert q.qsize() == 0


@pytest.mark.parametrize("items", [None, 5, object], ids=repr)
def test_what_holds_no_records_is_named(items):
    with queueduct.BoundedQueue.create(None, item=[("n", "i4")]) as q, pytest.raises(TypeError, match="several items"):
        q.put_many(items)


class Broken:
    """Its own code raises while it is iterated over."""

    def __iter__(self) -> Any:
        raise TypeError("my own")


def test_an_error_of_the_items_own_code_comes_through():
    with KINDS["bounded"].create("q") as q, pytest.raises(TypeError, match="my own"):
        q.put_many(Broken())


@pytest.mark.parametrize("item", [bytes, [("n", "i8")]], ids=["bytes", "record"])
def test_a_frame_that_is_not_computed_yet_says_how_to(item):
    polars = pytest.importorskip("polars")
    with (
        queueduct.BoundedQueue.create(None, item=item) as q,
        pytest.raises(TypeError, match=r"LazyFrame has no rows .*collect\(\)"),
    ):
        q.put_many(polars.LazyFrame({"n": [1]}))


def test_memory_with_gaps_says_so():
    with (
        queueduct.BoundedQueue.create(None) as q,
        pytest.raises(TypeError, match=r"takes a contiguous buffer.*memoryview.*put bytes\(item\)"),
    ):
        q.put(memoryview(b"abcdef")[::2])


def test_an_array_for_a_count_is_named():
    with queueduct.BoundedQueue.create(None) as q:
        q.put(b"a")
        with q.lease(1) as lease, pytest.raises(TypeError, match=r"^count must be an int or None: count=array"):
            lease.release(np.array([1, 2]))


ARRAYS_FOR_NUMBERS: dict[str, Callable[[Any, Any], object]] = {
    "max_items": lambda q, x: q.get_many(x, timeout=0),
    "sequence": lambda q, x: q.put_once([b"a"], "p", x),
    "capacity": lambda q, x: queueduct.BoundedQueue.create("other", x),
    "n": lambda q, x: queueduct.IndexQueue(x),
}


@pytest.mark.parametrize("label", ARRAYS_FOR_NUMBERS)
@pytest.mark.parametrize("array", [np.zeros(3), np.zeros(0, int), np.zeros((2, 2), int)], ids=["3", "none", "2x2"])
def test_an_array_for_a_number_is_named(label, array):
    with KINDS["bounded"].create("q") as q, pytest.raises(TypeError, match=rf"^{label} must be an int: {label}=array"):
        ARRAYS_FOR_NUMBERS[label](q, array)


@pytest.mark.parametrize("directory", ["a\0b", "\ud800"], ids=["nul", "surrogate"])
def test_a_directory_that_is_no_path_is_named(directory):
    for call in (queueduct.open, queueduct.unlink, queueduct.watch, queueduct.BoundedQueue.create):
        with pytest.raises(ValueError, match="directory must be a path without NUL and lone surrogates: directory="):
            call("q", directory=directory)
    with pytest.raises(ValueError, match="directory must be a path"):
        queueduct.queues(directory=directory)


@pytest.mark.parametrize("seconds", ["1", None, True, [1]], ids=repr)
def test_a_sync_interval_that_is_no_number_is_named(seconds):
    with pytest.raises(TypeError, match="sync_interval must be a number of seconds: sync_interval="):
        queueduct.EventQueue.create("q", sync_interval=seconds)


@pytest.mark.parametrize("option", ["on_full", "sync"])
@pytest.mark.parametrize("value", [None, [], {}, np.zeros(2), "wai"], ids=repr)
def test_a_choice_that_is_none_of_those_there_are_is_named(option, value):
    with pytest.raises(ValueError, match=rf"^{option} must be one of 'w?a.*: {option}="):
        queueduct.EventQueue.create("q", **{option: value})


@pytest.mark.parametrize("given", ["x", "\ud800", [1, 2], {"a": 1}, 3], ids=repr)
def test_a_dtype_that_is_none_is_named_by_the_calls_of_arrow(given):
    arrow = pytest.importorskip("queueduct.arrow")
    with pytest.raises(TypeError, match=r"^item must be bytes or a numpy dtype: item="):
        arrow.schema_of(given)
    with pytest.raises(TypeError, match=r"^dtype must be bytes or a numpy dtype: dtype="):
        arrow.records_from(arrow.table_from(np.zeros(2, [("n", "i8")])), given)
    with pytest.raises(TypeError, match=r"^get_table gets from a queue: .*; for a Reader use its to_arrow"):
        arrow.get_table(given, 1)


def test_a_producer_that_a_queue_without_a_name_does_not_know():
    with (
        queueduct.BoundedQueue.create(None) as q,
        pytest.raises(ValueError, match=r"^the queue without a name has no producer named 'x'; q.producers\(\)"),
    ):
        q.forget_producer("x")


@pytest.mark.parametrize("initargs", [3, None])
def test_arguments_of_an_initializer_that_are_none_are_named(initargs):
    with pytest.raises(TypeError, match="initargs must be a tuple of the initializer's arguments: initargs="):
        queueduct.Workers(None, abs, initializer=abs, initargs=initargs)


DROP_INS = [queueduct.multiprocessing.Queue, queueduct.multiprocessing.JoinableQueue, queueduct.queue.Queue]


@pytest.mark.parametrize("made", DROP_INS, ids=lambda made: f"{made.__module__}.{made.__name__}")
@pytest.mark.parametrize("timeout", ["1", [], 1j, np.zeros(3), float("nan")], ids=repr)
def test_a_timeout_of_a_drop_in_that_is_no_number_is_named(made, timeout):
    q = made(1)
    q.put("a")
    for call in (lambda: q.put("b", timeout=timeout), lambda: q.get(timeout=timeout)):
        with pytest.raises((TypeError, ValueError), match="timeout must be a non-negative number or None: timeout="):
            call()
    assert q.get(timeout=1) == "a"


WITH_NONE = """
import queueduct, queueduct.multiprocessing, queueduct.queue
modules = queueduct, queueduct.multiprocessing, queueduct.queue
classes = [each for module in modules for each in map(module.__dict__.get, module.__all__) if isinstance(each, type)]
calls = 0
for cls in classes:
    for name in dir(cls):
        if name.startswith("_") or issubclass(cls, (Exception, tuple)):
            continue
        found = getattr(cls, name)
        try:
            found.fget(None) if isinstance(found, property) else found(None)
        except Exception:
            pass
        calls += 1
print(calls > 200)
"""


def test_a_method_that_is_called_by_its_class_with_none_ends_no_process(children):
    """Cython's types let None pass."""
    assert children.run(WITH_NONE) == "True\n"


NAMED = [queueduct.BoundedQueue, queueduct.GrowingQueue, queueduct.OverwritingQueue, queueduct.SlotQueue]


@pytest.mark.parametrize("kind", [*NAMED, queueduct.EventQueue], ids=lambda kind: kind.__name__)
def test_a_class_that_is_called_with_a_name_says_what_makes_a_named_queue(kind):
    with pytest.raises(TypeError, match=rf"use\s+{kind.__name__}\.create\(name, "):
        kind("jobs")


def test_a_reader_is_made_by_its_queue_only():
    with pytest.raises(TypeError, match=r"a reader is made by EventQueue\.subscribe\(\)"):
        queueduct.Reader()


def test_a_queue_without_a_name_is_named_so_that_it_can_be_read():
    with queueduct.EventQueue.create(None) as log:
        with pytest.raises(TypeError, match=r"subscribe\(\) to the queue without a name first$"):
            log.get()
        with pytest.raises(ValueError, match=r"^the queue without a name has no durable reader 'x'"):
            log.unsubscribe("x")
