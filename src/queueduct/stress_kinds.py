"""What a stress run must know of each kind of queue: a table with a row a kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from queueduct.events.queue import EventQueue
from queueduct.overwriting.queue import OverwritingQueue
from queueduct.rings.bounded import BoundedQueue
from queueduct.rings.growing import GrowingQueue
from queueduct.slots.queue import SlotQueue

if TYPE_CHECKING:
    from queueduct.segments.catalog import AnyQueue

__all__ = ["KINDS", "StressKind", "item_of"]

WORD_BYTES = 8


class StressKind(NamedTuple):
    """How a queue is made for a run, and what its history says of it. What drives it is in _stress.pyx."""

    capacity: int
    """Items, unless another capacity is asked for."""
    create: Callable[[str, int, np.dtype[Any], int], AnyQueue]
    """Of that name, capacity, item and number of participants."""
    is_bounded: bool = True
    """The manifest names the capacity."""
    broadcasts: bool = False
    """Every consumer is a reader and sees every item."""
    has_batches: bool = True
    """Several items are claimed in one step."""


def create_bounded(name: str, capacity: int, item: np.dtype[Any], participants: int) -> AnyQueue:
    return BoundedQueue.create(name, capacity, item=item, participants=participants)


def create_growing(name: str, capacity: int, item: np.dtype[Any], participants: int) -> AnyQueue:
    """Limited in bytes too, and begins with a few items: so that it goes up to its budget and down again."""
    max_bytes = max(capacity * (item.itemsize + WORD_BYTES) * 2, 1 << 18)
    return GrowingQueue.create(name, item=item, max_bytes=max_bytes, participants=participants)


def create_events(name: str, capacity: int, item: np.dtype[Any], participants: int) -> AnyQueue:
    """A log is limited in bytes: so many that about ``capacity`` items keep its writers waiting for its readers."""
    max_bytes = max(capacity * item.itemsize, 1 << 16)
    return EventQueue.create(name, item=item, max_bytes=max_bytes, readers=participants, participants=participants)


def create_overwriting(name: str, capacity: int, item: np.dtype[Any], participants: int) -> AnyQueue:
    return OverwritingQueue.create(name, capacity, item=item, participants=participants)


def create_slots(name: str, capacity: int, item: np.dtype[Any], participants: int) -> AnyQueue:
    return SlotQueue.create(name, capacity, item=item, participants=participants)


KINDS: dict[str, StressKind] = {
    "bounded": StressKind(1024, create_bounded),
    "growing": StressKind(1 << 16, create_growing, is_bounded=False),
    "events": StressKind(1 << 16, create_events, is_bounded=False, broadcasts=True),
    "overwriting": StressKind(1024, create_overwriting, has_batches=False),
    "slots": StressKind(256, create_slots, has_batches=False),
}


def item_of(item_bytes: int) -> np.dtype[Any]:
    """A record of that size: its value, and words that follow from it."""
    if item_bytes < 8 or item_bytes % 8 != 0 or item_bytes > 1 << 20:
        raise ValueError(f"an item must have 8 bytes or a multiple of them, at most 1 MiB: item_bytes={item_bytes}")
    if item_bytes == 8:
        return np.dtype("i8")
    return np.dtype([("value", "i8"), ("rest", "u8", (item_bytes // 8 - 1,))])
