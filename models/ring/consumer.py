"""Get: read the slot, store the intent, claim, copy, release the head first, clear the intent."""

from __future__ import annotations

from typing import NamedTuple

from models.ring.end_check import begin_end_check
from models.ring.recovery import begin_recovery
from models.ring.words import (
    POP,
    Intent,
    head_distance,
    position_of,
    published,
    tombstone,
)
from models.ring.world import (
    Outcome,
    Step,
    World,
    copied,
    delivered_by_copy,
    delivered_by_release,
    require_unchanged,
    require_whole,
)

OWNER = "a live consumer"


class GetReadPosition(NamedTuple):
    at: str = "get: read pop_position"

    def run(self, world: World, me: int) -> Outcome:
        return world.memory, GetReadGeneration(world.memory.pop_position)


class GetReadGeneration(NamedTuple):
    position: int
    at: str = "get: read generation"

    def run(self, world: World, me: int) -> Outcome:
        memory, position = world.memory, self.position
        generation = memory.generation(position)
        if generation == published(position):
            return memory, GetReadLength(position)
        if generation == tombstone(position):
            return memory, _claim(world, Found(position, 1, generation, is_item=False))
        if position_of(generation) > position:
            return memory, GetReadPosition()
        return memory, self._nothing_ready(world)

    def _nothing_ready(self, world: World) -> Step:
        is_empty = world.memory.push_position == world.memory.pop_position
        if not (world.producers_are_done() and is_empty):
            return begin_recovery(world, GetReadPosition())
        return begin_end_check(world, GetReadPosition())


class GetReadLength(NamedTuple):
    """A continuation at pop_position is an orphan: its pusher died and its head is a tombstone.

    The word may be that of a later item if this consumer was slow; then its claim fails.
    """

    position: int
    at: str = "get: read length"

    def run(self, world: World, me: int) -> Outcome:
        memory, seen = world.memory, published(self.position)
        length = memory.length(self.position)
        if head_distance(length):
            return memory, _claim(world, Found(self.position, 1, seen, is_item=False))
        return memory, _claim(world, Found(self.position, length, seen, is_item=True))


class Found(NamedTuple):
    """What a consumer is about to take; a tombstone or an orphan is taken and thrown away."""

    position: int
    slots: int
    seen: int
    is_item: bool


def _claim(world: World, found: Found) -> Step:
    if world.rules.intents_are_kept and world.rules.intent_before_claim:
        return GetStoreIntent(found)
    return GetClaim(found)


def _after_claim(world: World, found: Found) -> Step:
    if found.is_item:
        return GetCopy(found, 0, None)
    return _after_copy(world, found, None)


def _after_copy(world: World, found: Found, item: int | None) -> Step:
    if world.rules.intents_are_kept and not world.rules.intent_cleared_after_release:
        return GetClearIntent(found, item)
    return GetRelease(found, world.rules.first_release(found.slots), item)


class GetStoreIntent(NamedTuple):
    found: Found
    at: str = "get: store intent"

    def run(self, world: World, me: int) -> Outcome:
        intent = Intent(POP, self.found.position, self.found.slots)
        memory = world.memory.with_intent(me, intent)
        if world.rules.intent_before_claim:
            return memory, GetClaim(self.found)
        return memory, _after_claim(world, self.found)


class GetClaim(NamedTuple):
    found: Found
    at: str = "get: compare-and-swap pop_position"

    def run(self, world: World, me: int) -> Outcome:
        memory, rules, found = world.memory, world.rules, self.found
        intent_is_stored = rules.intents_are_kept and rules.intent_before_claim
        if memory.pop_position != found.position:
            return memory, GetClearLostClaim() if intent_is_stored else GetReadPosition()
        memory = memory._replace(pop_position=found.position + found.slots)
        if rules.intents_are_kept and not intent_is_stored:
            return memory, GetStoreIntent(found)
        return memory, _after_claim(world, found)


class GetClearLostClaim(NamedTuple):
    at: str = "get: clear intent of the lost claim"

    def run(self, world: World, me: int) -> Outcome:
        return world.memory.with_intent(me, None), GetReadPosition()


class GetCopy(NamedTuple):
    found: Found
    offset: int
    item: int | None
    at: str = "get: copy a slot"

    def run(self, world: World, me: int) -> Outcome:
        item = copied(world, self.found.position + self.offset, self.item)
        if self.offset + 1 < self.found.slots:
            return world.memory, GetCopy(self.found, self.offset + 1, item)
        require_whole(world, item, self.found.slots)
        return delivered_by_copy(world, item), _after_copy(world, self.found, item)


class GetRelease(NamedTuple):
    found: Found
    offset: int
    item: int | None
    at: str = "get: release a slot"

    def run(self, world: World, me: int) -> Outcome:
        position = self.found.position + self.offset
        expected = published(position) if self.offset else self.found.seen
        require_unchanged(world.memory, position, expected, OWNER)
        memory = world.memory.released(position)
        if self.offset == 0 and self.item is not None:
            memory = delivered_by_release(world, memory, self.item)
        following = world.rules.following_release(self.found.slots, self.offset)
        if following is not None:
            return memory, GetRelease(self.found, following, self.item)
        if world.rules.intents_are_kept and world.rules.intent_cleared_after_release:
            return memory, GetClearIntent(self.found, self.item)
        return memory, GetReadPosition()


class GetClearIntent(NamedTuple):
    found: Found
    item: int | None
    at: str = "get: clear intent"

    def run(self, world: World, me: int) -> Outcome:
        memory = world.memory.with_intent(me, None)
        if world.rules.intent_cleared_after_release:
            return memory, GetReadPosition()
        first = world.rules.first_release(self.found.slots)
        return memory, GetRelease(self.found, first, self.item)
