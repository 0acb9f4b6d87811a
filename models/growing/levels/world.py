"""A state of the search: the shared words of the levels, and the step of each participant."""

from __future__ import annotations

from typing import NamedTuple

LOST, DOUBLED, TORN, PASSED, CORRUPT = "lost", "doubled", "torn", "passed", "corrupt"

Item = tuple[int, int]
"""Producer and number."""


class Slot(NamedTuple):
    generation: int = 0
    item: Item | None = None


class Level(NamedTuple):
    push: int = 0
    closed: bool = False
    shrinking: bool = False
    pop: int = 0
    base: int = 0
    reset: int = 0
    slots: tuple[Slot, ...] = ()

    @property
    def is_clean(self) -> bool:
        return self.reset == self.push or self.push == self.base


class LevelRange(NamedTuple):
    moves: int = 0
    read: int = 0
    written: int = 0


class Process(NamedTuple):
    """A program counter and its registers; `number` counts the items of a producer."""

    at: str
    number: int = 0
    level_range: LevelRange | None = None
    level: int = 0
    base: int = 0
    position: int = 0
    word: int = 0
    item: Item | None = None
    holds: bool = False
    """A slot that it has claimed, and neither published nor released."""


class State(NamedTuple):
    level_range: LevelRange
    levels: tuple[Level, ...]
    lock: int
    processes: tuple[Process, ...]
    put: frozenset[Item]
    """Those whose put returned."""
    got: frozenset[Item]
    taken: tuple[int, ...]
    """Of each producer, how many numbers were claimed by consumers, or abandoned."""
    shrinks: int
    kills: int


TOMBSTONE = -1
FREE_LOCK = -1
DEAD, FINISHED = "dead", "finished"
PUT, GET = "put: read the level range", "get: read the level range"
