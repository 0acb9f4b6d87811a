"""The shared words of the ring: generations, length words and intents.

Generations are small integers, not objects, because the search hashes millions of them.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

_KIND_BITS = 5
_KIND_MASK = (1 << _KIND_BITS) - 1
_FREE, _PUBLISHED, _TOMBSTONE, _REDELIVERED_BY_LINE_0 = range(4)

LINES_MAX = _KIND_MASK - _REDELIVERED_BY_LINE_0


def free(position: int) -> int:
    """The slot waits for the push at `position`."""
    return position << _KIND_BITS | _FREE


def published(position: int) -> int:
    """The slot holds what was pushed at `position`."""
    return position << _KIND_BITS | _PUBLISHED


def tombstone(position: int) -> int:
    """The pusher at `position` died before it published."""
    return position << _KIND_BITS | _TOMBSTONE


def redelivered(position: int, line: int) -> int:
    """The popper of `position` died, and `line` delivers in its place."""
    return position << _KIND_BITS | (_REDELIVERED_BY_LINE_0 + line)


def position_of(generation: int) -> int:
    return generation >> _KIND_BITS


def is_free(generation: int) -> bool:
    return generation & _KIND_MASK == _FREE


def redeliverer_of(generation: int) -> int | None:
    """The line that redelivered the slot, if one did."""
    line = (generation & _KIND_MASK) - _REDELIVERED_BY_LINE_0
    return line if line >= 0 else None


def generation_text(generation: int) -> str:
    line = redeliverer_of(generation)
    position = position_of(generation)
    if line is not None:
        return f"redelivered({position}, line {line})"
    return f"{('free', 'published', 'tombstone')[generation & _KIND_MASK]}({position})"


def head_length(count: int) -> int:
    """The length word of an item's first slot: how many slots the item has."""
    return count


def continuation(distance: int) -> int:
    """The length word of a further slot: how many slots back the head is."""
    return -distance


def head_distance(length: int) -> int:
    """Slots back to the head; 0 for the head itself."""
    return max(0, -length)


# Strings, because an enumeration's hash is computed in Python, for each of millions of states.
Side = Literal["push", "pop"]
PUSH: Side = "push"
POP: Side = "pop"


class Intent(NamedTuple):
    """What a participant is about to claim, or has claimed and not finished."""

    side: Side
    position: int
    slots: int

    def __str__(self) -> str:
        return f"{self.side} {self.position}+{self.slots}"
