"""Every kind of queue with what goes through it: the rows that the contract is tested on. A new kind adds its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import queueduct
from queueduct import BoundedQueue, EventQueue, GrowingQueue, SlotQueue
from tests.support.lossless import Lossless

RECORD = np.dtype([("id", "<u4"), ("half", "<f8")])
Items = tuple[Callable[[int], Any], Callable[[Any], int]]
LOG_BYTES = 1 << 13  # of an event queue: its capacity is no number of items


class Case(NamedTuple):
    """A queue and what goes through it."""

    cls: type
    make: Callable[..., Any]
    """make(capacity, name="q"): a new queue for so many items, and for some more if it is an event queue."""
    item: Callable[[int], Any]
    """The item with this number."""
    number: Callable[[Any], int]
    """Which item was this? The inverse of item()."""

    @property
    def is_for_all(self) -> bool:
        """Does every consumer see every item, and not one of them each?"""
        return self.cls is EventQueue

    def consumer(self, q: Any) -> Any:
        """What to get from: the queue itself, or a reader that begins with the earliest item."""
        return q.subscribe(start="earliest") if self.is_for_all else q

    def items(self, *numbers: int) -> list[Any]:
        return [self.item(number) for number in numbers]

    def numbers(self, items: Any) -> list[int]:
        return [self.number(item) for item in items]

    def fill(self, q: Any, first: int = 0) -> int:
        """Put rising numbers until there is no room; the number after the last."""
        while True:
            try:
                q.put_nowait(self.item(first))
            except queueduct.Full:
                return first
            first += 1


def local(cls: type, sized: Callable[[int], dict[str, int]]) -> Case:
    return Case(cls, lambda n, name=None: cls(**sized(n)), lambda i: [i], lambda item: item[0])


def named(cls: type, sized: Callable[[int], dict[str, Any]], what: Items, **options: Any) -> Case:
    return Case(cls, lambda n, name="q": cls.create(name, **sized(n), **options), *what)


def count(n: int) -> dict[str, int]:
    return {"capacity": n}


def log(n: int) -> dict[str, int]:
    return {"max_bytes": LOG_BYTES}


def one_level(slot_bytes: int) -> Callable[[int], dict[str, int]]:
    """A growing queue that cannot grow: its capacity is known."""
    return lambda n: {"first_bytes": slot_bytes * n, "steps": 1}


BYTES = (lambda i: b"%d" % i, int)
LONG_BYTES = (lambda i: b"%-64d" % i, int)
RECORDS = (lambda i: (i, i / 2), lambda item: int(item["half"] * 2))
OBJECTS = (lambda i: {"id": i}, lambda item: item["id"])
SQUARES = (lambda i: [[i, 0], [0, i]], lambda item: int(item[1][1]))
SQUARE = np.dtype(("<i4", (2, 2)))

CASES = {
    "bounded, objects in this process": local(BoundedQueue, count),
    "bounded, bytes": named(BoundedQueue, count, BYTES),
    "bounded, bytes in several slots": named(BoundedQueue, lambda n: {"capacity": 4 * n}, LONG_BYTES, slot_bytes=16),
    "bounded, records": named(BoundedQueue, count, RECORDS, item=RECORD),
    "bounded, numbers": named(BoundedQueue, count, (int, int), item="<i8"),
    "bounded, arrays": named(BoundedQueue, count, SQUARES, item=SQUARE),
    "bounded, pickled objects": named(BoundedQueue, count, OBJECTS, item=object),
    "growing, bytes": named(GrowingQueue, one_level(64), BYTES),
    "growing, bytes in several slots": named(GrowingQueue, one_level(64), LONG_BYTES, slot_bytes=16),
    "growing, records": named(GrowingQueue, one_level(RECORD.itemsize), RECORDS, item=RECORD),
    "growing, pickled objects": named(GrowingQueue, one_level(256), OBJECTS, item=object, slot_bytes=256),
    "overwriting, bytes": named(Lossless, count, LONG_BYTES),
    "overwriting, records": named(Lossless, count, RECORDS, item=RECORD),
    "overwriting, arrays": named(Lossless, count, SQUARES, item=SQUARE),
    "overwriting, pickled objects": named(Lossless, count, OBJECTS, item=object),
    "slots, bytes": named(SlotQueue, count, BYTES),
    "slots, records": named(SlotQueue, count, RECORDS, item=RECORD),
    "slots, arrays": named(SlotQueue, count, SQUARES, item=SQUARE),
    "slots, pickled objects": named(SlotQueue, count, OBJECTS, item=object),
    "events, objects in this process": local(EventQueue, log),
    "events, bytes": named(EventQueue, log, BYTES),
    "events, records": named(EventQueue, log, RECORDS, item=RECORD),
    "events, pickled objects": named(EventQueue, log, OBJECTS, item=object),
}
LOCAL = [name for name in CASES if name.endswith("in this process")]
NAMED = [name for name in CASES if name not in LOCAL]
EACH_ONCE = [name for name in CASES if not CASES[name].is_for_all]
"""Whose items go to one consumer each, and whose capacity is a number of items."""
PLAIN = [*LOCAL, *(name for name in NAMED if name.endswith(", bytes"))]
"""One row for each implementation, local and named: for what does not depend on the items."""
PLAIN_NAMED = [name for name in PLAIN if name in NAMED]
