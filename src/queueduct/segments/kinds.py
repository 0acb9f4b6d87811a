"""The registry of kinds: each queue's folder registers its kind here. There is no other table of kinds."""

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
    """One kind of queue, for segments, Spark and stress runs."""

    geometry: type[Geometry]
    queue_class: type[Any]
    count_put: Callable[[Any], int]
    """Rises with every put, and a full queue takes a put only after a get. Takes the open queue."""
    count_lost: Callable[[Any], int] = lambda queue: 0
    """Items that no consumer will get, in a kind that is lossy by design. Takes the open queue."""
    is_log: bool = False
    """True if every reader sees every item, by position. Else one consumer gets each item, perhaps as a lease."""
    has_capacity: bool = True
    """True if a queue never holds more than ``capacity`` items."""
    has_batches: bool = True
    """True if several items are claimed in one step."""
    usual_capacity: int = 1024
    """The capacity of a stress run, in items."""
    sizes: Callable[[int, np.dtype[Any], int], dict[str, int]] = lambda capacity, item, participants: {
        "capacity": capacity
    }
    """Returns the arguments of ``create`` for about ``capacity`` records and ``participants`` workers."""

    @property
    def name(self) -> str:
        return self.geometry.kind

    @property
    def puts_once(self) -> bool:
        """True if the kind has put_once. Else a repeated put puts its items again."""
        return hasattr(self.queue_class, "put_once")

    def create(
        self, name: str, capacity: int, item: np.dtype[Any], participants: int, *, directory: Directory = None
    ) -> Any:
        """Creates a queue of about ``capacity`` records."""
        sizes = self.sizes(capacity, item, participants)
        return self.queue_class.create(name, item=item, participants=participants, directory=directory, **sizes)


KINDS: dict[str, Kind] = {}
"""Kinds by name, in the order of their numbers. Complete once ``queueduct`` is imported."""


def register(kind: Kind) -> None:
    """Registers a kind. Segments contain its number, so that must stay the same in every version."""
    taken = by_number(kind.geometry.number)
    if kind.name in KINDS or taken is not None:
        raise ValueError(f"a kind needs a name and a number of its own: {kind.name!r}, {kind.geometry.number}")
    ordered = sorted([*KINDS.values(), kind], key=lambda each: each.geometry.number)
    KINDS.clear()
    KINDS.update((each.name, each) for each in ordered)


def by_number(number: int) -> Kind | None:
    """Returns the kind with that number in a segment's header, or None."""
    return next((kind for kind in KINDS.values() if kind.geometry.number == number), None)


def kind_of(queue: Any) -> Kind:
    """Returns the kind of an open queue."""
    return KINDS[queue.kind]
