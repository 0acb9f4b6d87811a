"""What each kind of queue is to Spark. A new kind needs a row here, and nothing else of this room knows kinds.

A kind that is not read in place brings ``lease(max_items, block=False)``, whose ``Lease`` has items and positions, and
``unreleased(positions)``. What the spool needs of them: a position is one item's for good; what was not released comes
again at its position, with ``is_redelivered``, also after a kill; what was released never does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["KINDS", "Kind", "kind_of"]


@dataclass(frozen=True)
class Kind:
    """How one kind is read and written."""

    is_read_in_place: bool
    """By position, under a durable reader. Else a get takes the item away: it goes through a spool, by ``lease``."""
    puts_once: bool
    """It has ``put_once``: a sink is exactly once. Else it puts again what a repeated batch has put: at least once."""
    count_put: Callable[[Any], int]
    """Rises with every put, which on a full queue takes somebody who makes room."""
    count_lost: Callable[[Any], int] = lambda queue: 0
    """Items that went before anybody got them, where a kind is lossy by nature."""


KINDS: dict[str, Kind] = {
    "bounded": Kind(is_read_in_place=False, puts_once=True, count_put=lambda queue: int(queue.stats().slots_pushed)),
    "growing": Kind(is_read_in_place=False, puts_once=True, count_put=lambda queue: int(queue.stats().position)),
    "overwriting": Kind(
        is_read_in_place=False,
        puts_once=False,
        count_put=lambda queue: int(queue.stats().puts),
        count_lost=lambda queue: losses_of(queue.stats()),
    ),
    "events": Kind(is_read_in_place=True, puts_once=True, count_put=lambda queue: int(queue.end)),
    "slots": Kind(is_read_in_place=False, puts_once=True, count_put=lambda queue: int(queue.stats().published)),
}


def losses_of(stats: Any) -> int:
    """Of an overwriting queue: all that was put and that nobody will ever get."""
    return int(stats.overwritten + stats.torn + stats.lost_with_reader + stats.discarded)


def kind_of(queue: Any) -> Kind:
    """That of an open queue."""
    found = KINDS.get(queue.kind)
    if found is None:
        raise TypeError(f"Spark has no use yet for a queue of kind {queue.kind!r}: {queue.name!r}")
    return found
