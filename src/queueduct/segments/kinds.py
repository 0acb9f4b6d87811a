"""The registry of kinds: the folder of a queue declares its kind here, and nothing else keeps a table of kinds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from queueduct.segments.geometry import Geometry
from queueduct.segments.names import Directory

__all__ = ["KINDS", "Kind", "by_number", "kind_of", "register"]


@dataclass(frozen=True)
class Kind:
    """What segments, Spark and stress runs need to know of one kind of queue."""

    geometry: type[Geometry]
    queue_class: type[Any]
    count_put: Callable[[Any], int]
    """Rises with every put, and a full queue takes a put only after a get. Takes the open queue."""
    count_lost: Callable[[Any], int] = lambda queue: 0
    """Items that no consumer will ever get, in a kind that is lossy by design. Takes the open queue."""
    is_log: bool = False
    """Every reader sees every item, and reads by position. Else each item goes to one consumer, also as a lease."""
    has_capacity: bool = True
    """A queue never holds more than ``capacity`` items."""
    has_batches: bool = True
    """Several items are claimed in one step."""
    usual_capacity: int = 1024
    """In items, for a stress run."""
    sizes: Callable[[int, np.dtype[Any], int], dict[str, int]] = lambda capacity, item, participants: {
        "capacity": capacity
    }
    """Arguments of ``create`` for about so many records, used by so many workers."""

    @property
    def name(self) -> str:
        return self.geometry.kind

    @property
    def puts_once(self) -> bool:
        """True if a repeated put_once leaves out what is in. Else a repeated put puts its items again."""
        return hasattr(self.queue_class, "put_once")

    def create(
        self, name: str, capacity: int, item: np.dtype[Any], participants: int, *, directory: Directory = None
    ) -> Any:
        """A queue of about so many records."""
        sizes = self.sizes(capacity, item, participants)
        return self.queue_class.create(name, item=item, participants=participants, directory=directory, **sizes)


KINDS: dict[str, Kind] = {}
"""By name, in the order of their numbers. Complete once ``queueduct`` is imported."""


def register(kind: Kind) -> None:
    """Declare a kind. Its number is written into segments, so it stays the same in every version."""
    taken = by_number(kind.geometry.number)
    if kind.name in KINDS or taken is not None:
        raise ValueError(f"a kind needs a name and a number of its own: {kind.name!r}, {kind.geometry.number}")
    ordered = sorted([*KINDS.values(), kind], key=lambda each: each.geometry.number)
    KINDS.clear()
    KINDS.update((each.name, each) for each in ordered)


def by_number(number: int) -> Kind | None:
    """The kind that a segment's header names."""
    return next((kind for kind in KINDS.values() if kind.geometry.number == number), None)


def kind_of(queue: Any) -> Kind:
    """The kind of an open queue."""
    return KINDS[queue.kind]
