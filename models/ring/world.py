"""What a participant can see when it takes a step."""

from __future__ import annotations

from typing import Literal

from models.core import participant
from models.core.participant import DEAD, FINISHED, PromiseBroken
from models.ring.memory import Memory
from models.ring.rules import Configuration
from models.ring.words import is_free, position_of

Role = Literal["producer", "consumer"]
PRODUCER: Role = "producer"
CONSUMER: Role = "consumer"


Step = participant.Step["World", "Outcome"]
Outcome = tuple[Memory, Step]


CHANGED = "changed"
TORN = "torn"
DOUBLED = "doubled"
LOST = "lost"


class World:
    """The memory, and the oracles: which participants are dead, and whether all work is done."""

    __slots__ = ("configuration", "kills_left", "memory", "roles", "rules", "steps")

    def __init__(
        self,
        configuration: Configuration,
        memory: Memory,
        steps: tuple[Step, ...],
        roles: tuple[Role, ...],
        kills_left: int,
    ) -> None:
        self.configuration = configuration
        self.rules = configuration.rules
        self.memory = memory
        self.steps = steps
        self.roles = roles
        self.kills_left = kills_left

    def is_dead(self, line: int) -> bool:
        return self.steps[line] is DEAD

    def recovery_could_act(self) -> bool:
        """Whether a recovery that begins now could change anything.

        Without a dead intent, and without a kill to come, recovery only reads.
        Leaving it out then removes states in which nothing but its registers differ.
        """
        if not self.rules.intents_are_kept:
            return False
        if self.kills_left or self.configuration.is_exact:
            return True
        lines = zip(self.memory.intents, self.steps, strict=True)
        return any(intent and step is DEAD for intent, step in lines)

    def producers_are_done(self) -> bool:
        return all(
            role == CONSUMER or step is DEAD or step is FINISHED
            for role, step in zip(self.roles, self.steps, strict=True)
        )

    def is_quiet(self) -> bool:
        """Nothing is claimed, queued or unreleased."""
        position = self.memory.push_position
        if position != self.memory.pop_position:
            return False
        words = self.memory.generations
        return all(is_free(word) and position_of(word) >= position for word in words)


def _delivered(memory: Memory, item: int) -> Memory:
    if memory.delivered >> item & 1:
        raise PromiseBroken(DOUBLED, f"item {item} was delivered twice")
    return memory._replace(delivered=memory.delivered | 1 << item)


def delivered_by_release(world: World, memory: Memory, item: int) -> Memory:
    """The commit of a get: the participant that frees the head hands the item out."""
    return _delivered(memory, item) if world.rules.delivered_by_release else memory


def delivered_by_copy(world: World, item: int) -> Memory:
    """The commit of a get that hands the item out too early."""
    return world.memory if world.rules.delivered_by_release else _delivered(world.memory, item)


def copied(world: World, position: int, item_so_far: int | None) -> int:
    """One slot's payload; all slots of an item must hold the same item."""
    payload = world.memory.payload(position)
    if payload < 0:
        raise PromiseBroken(TORN, f"position {position} was copied when it held nothing")
    if item_so_far is not None and payload != item_so_far:
        raise PromiseBroken(TORN, f"item {item_so_far} was copied with bytes of item {payload}")
    return payload


def require_unchanged(memory: Memory, position: int, expected: int, owner: str) -> None:
    """A live owner must find its claimed slot as it left it, since its own store is blind."""
    if memory.generation(position) != expected:
        raise PromiseBroken(CHANGED, f"{owner} found its claimed position {position} changed")


def require_whole(world: World, item: int, count: int) -> None:
    """An item is delivered with all its slots or not at all."""
    expected = world.configuration.slots_of(item)
    if count != expected:
        raise PromiseBroken(TORN, f"{count} slots of item {item} were copied: it has {expected}")
