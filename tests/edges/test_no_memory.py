"""Memory runs out at each allocation of every get: nothing that was taken is lost."""

from __future__ import annotations

import contextlib
import functools

import numpy as np
import pytest

import queueduct
from queueduct import EventQueue, GrowingQueue
from tests.support.kinds import CLASSES

_testcapi = pytest.importorskip("_testcapi", reason="this Python was built without its own test modules")

RECORD = np.dtype([("number", "i8"), ("rest", "S24")])
FORMS = {
    "bytes": (bytes, lambda i: b"%-64d" % i, int),
    "records": (RECORD, lambda i: (i, b"x"), lambda got: int(got["number"])),
    "objects": (object, lambda i: (i, "x"), lambda got: got[0]),
}
COUNT = 6
ALLOCATIONS = 40  # more than any of the calls makes
END = object()


def named(kind, form):
    options = {"message_bytes": 64} if (kind, form) == ("overwriting", "bytes") else {}
    return CLASSES[kind].create("q", item=FORMS[form][0], **options)


def without_memory(first, lasts, call):
    """The call, with its first-th allocation failing, or all from there on; None after a MemoryError."""
    stop = 0 if lasts else first + 1
    try:
        _testcapi.set_nomemory(first, stop)
        return call()
    except MemoryError:
        return None
    finally:
        _testcapi.remove_mem_hooks()


def get(consumer):
    return consumer.get_nowait


def get_many(consumer):
    return functools.partial(consumer.get_many, 4, False)


def lease(consumer):
    return functools.partial(consumer.lease, 4, False)


def taken(found, call, number_of):
    """What the call has given to its caller."""
    if found is None:
        return []
    if call is get:
        return [number_of(found)]
    if call is get_many:
        return [number_of(item) for item in found]
    with found:
        return [number_of(item) for item in found.items]


def check(q, call, make, number_of, lasts):
    consumer = q.subscribe() if hasattr(q, "subscribe") else q
    failures = 0
    for first in range(ALLOCATIONS):
        q.put_many([make(i) for i in range(COUNT)])
        got = [number_of(consumer.get())]  # whatever is made once is made
        found = without_memory(first, lasts, call(consumer))
        failures += found is None
        got += taken(found, call, number_of)
        with contextlib.suppress(queueduct.Empty):  # what a lease gave back comes in a moment
            while len(got) < COUNT:
                got.append(number_of(consumer.get(timeout=5)))
        assert consumer.try_get(END) is END
        assert sorted(got) == list(range(COUNT)), f"allocation {first}"
    return failures


@pytest.mark.parametrize("lasts", [False, True], ids=["once", "from there on"])
@pytest.mark.parametrize("call", [get, get_many, lease])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", CLASSES)
def test_whatever_cannot_be_allocated_everything_is_got_once(kind, form, call, lasts):
    with named(kind, form) as q:
        if call is lease and not hasattr(q, "lease"):
            return  # a log has readers instead
        assert 0 < check(q, call, *FORMS[form][1:], lasts) < ALLOCATIONS


@pytest.mark.parametrize("make", [lambda: queueduct.BoundedQueue(16), GrowingQueue, EventQueue])
@pytest.mark.parametrize("call", [get, get_many])
@pytest.mark.parametrize("lasts", [False, True], ids=["once", "from there on"])
def test_references_are_got_once_whatever_cannot_be_allocated(make, call, lasts):
    with make() as q:
        assert check(q, call, lambda i: i, lambda got: got, lasts) < ALLOCATIONS


@pytest.mark.parametrize("lasts", [False, True], ids=["once", "from there on"])
@pytest.mark.parametrize("call", [get, get_many])
def test_objects_beside_a_full_shelf_are_got_once_whatever_cannot_be_allocated(call, lasts):
    _, make, number_of = FORMS["objects"]
    with CLASSES["overwriting"].create("q", 16, item=object) as q:
        q.put_many([make(i) for i in range(16)])
        with q.lease(16):
            assert 0 < check(q, call, make, number_of, lasts) < ALLOCATIONS
