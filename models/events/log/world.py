"""What a participant can see when it takes a step."""

from __future__ import annotations

from typing import Protocol, TypeVar

from models.core import participant
from models.core.participant import DEAD, FINISHED
from models.events.log.memory import DURABLE, EPHEMERAL, NONE, Memory, ReaderLine
from models.events.log.rules import Configuration


class Continuation(Protocol):
    """What comes after. It only reads what the lock protects, and so costs no step."""

    def follow(self, world: World, memory: Memory, me: int) -> Step: ...


Step = participant.Step["World", "Outcome"]
# None if the participant sleeps until something changes.
Outcome = tuple[Memory, Step] | None

StepClass = TypeVar("StepClass", bound=type)
UNDER_LOCK: set[type] = set()


def under_lock(step_class: StepClass) -> StepClass:
    """Marks a step that only the holder of the lock may take."""
    UNDER_LOCK.add(step_class)
    return step_class


SHARED = "shared"
TORN = "torn"
CORRUPT = "corrupt"
LOST = "lost"
REPEATED = "repeated"
LEAKED = "leaked"
UNFINISHED = "unfinished"
UNCLEARED = "uncleared"


class World:
    """The memory, and the oracles: which participants are dead, and whether all work is done."""

    __slots__ = ("configuration", "memory", "rules", "steps")

    def __init__(self, configuration: Configuration, memory: Memory, steps: tuple[Step, ...]) -> None:
        self.configuration = configuration
        self.rules = configuration.rules
        self.memory = memory
        self.steps = steps

    def is_dead(self, line: int) -> bool:
        return self.steps[line] is DEAD

    def writers_are_done(self) -> bool:
        """Of the writers' lines, and so of a newcomer, which takes only those."""
        steps = self.steps[: len(self.configuration.writers)]
        return all(step is DEAD or step is FINISHED for step in steps)


def needs_cleared(memory: Memory, line: ReaderLine) -> bool:
    """Returns true if a durable reader holds back what was cleared."""
    return line.kind == DURABLE and not line.is_dropped and line.place < memory.start.position


def may_be_released(world: World, memory: Memory, line: ReaderLine) -> bool:
    """An ephemeral reader is gone with its process, a durable one needs nothing that was cleared once it is dead.

    Whether a process holds an ephemeral one is checked here, because a later check shows nothing new.
    """
    if line.kind == EPHEMERAL:
        return line.holder is None and world.rules.dead_readers_are_released
    return needs_cleared(memory, line)


def has_dead_reader(world: World, memory: Memory) -> bool:
    """Returns true if a dead reader holds something back."""
    return any(line.holder is None and may_be_released(world, memory, line) for line in memory.readers)


def least_place(memory: Memory) -> tuple[int, int | None]:
    """What the slowest reader needs, and its line; all places at once."""
    places = [
        (line.place, index) for index, line in enumerate(memory.readers) if line.kind != NONE and not line.is_dropped
    ]
    return min(places) if places else (memory.start.position, None)
