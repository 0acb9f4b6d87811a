"""A new participant takes over the line of a dead one.

It holds the line's lock meanwhile, so that the line counts as live to every other participant.
It may clear the dead intent only if no position under it is still outstanding:
the intent is the only record of their owner.
"""

from __future__ import annotations

from typing import NamedTuple

from models.core.participant import DEAD
from models.ring.consumer import GetReadPosition
from models.ring.producer import PutReadPosition
from models.ring.words import (
    PUSH,
    Side,
    free,
    position_of,
    published,
    redeliverer_of,
    tombstone,
)
from models.ring.world import PRODUCER, Outcome, Step, World


def _begin_work(world: World, me: int, first_item: int) -> Step:
    return PutReadPosition(first_item) if world.roles[me] == PRODUCER else GetReadPosition()


class JoinReadPosition(NamedTuple):
    first_item: int
    at: str = "join: read the position of the dead intent's side"

    def run(self, world: World, me: int) -> Outcome:
        memory, intent = world.memory, world.memory.intents[me]
        if intent is None:
            return memory, _begin_work(world, me, self.first_item)
        if not world.rules.reuse_checks_positions:
            return memory, JoinClearIntent(self.first_item)
        is_push = intent.side == PUSH
        claimed = memory.push_position if is_push else memory.pop_position
        return memory, JoinCheckSlot(self.first_item, claimed, 0)


class JoinCheckSlot(NamedTuple):
    first_item: int
    claimed: int
    offset: int
    at: str = "join: check that the position is not outstanding"

    def run(self, world: World, me: int) -> Outcome:
        memory, intent = world.memory, world.memory.intents[me]
        assert intent is not None, "a locked line's intent changes only by its owner"
        position = intent.position + self.offset
        if position < self.claimed and self._is_outstanding(world, intent.side, position):
            return memory, DEAD
        if self.offset + 1 < intent.slots:
            return memory, JoinCheckSlot(self.first_item, self.claimed, self.offset + 1)
        return memory, JoinClearIntent(self.first_item)

    def _is_outstanding(self, world: World, side: Side, position: int) -> bool:
        generation = world.memory.generation(position)
        if side == PUSH:
            return generation == free(position)
        if redeliverer_of(generation) is not None:
            return world.rules.reuse_checks_redelivered and position_of(generation) == position
        return generation in (published(position), tombstone(position))


class JoinClearIntent(NamedTuple):
    first_item: int
    at: str = "join: clear intent"

    def run(self, world: World, me: int) -> Outcome:
        return world.memory.with_intent(me, None), _begin_work(world, me, self.first_item)
