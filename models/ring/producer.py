"""Put: check the slots, store the intent, claim, write, publish the head last, clear the intent."""

from __future__ import annotations

from typing import NamedTuple

from models.core.participant import FINISHED
from models.ring.recovery import begin_recovery
from models.ring.words import (
    PUSH,
    Intent,
    continuation,
    free,
    head_length,
    position_of,
    published,
)
from models.ring.world import Outcome, Step, World, require_unchanged

OWNER = "a live producer"


class PutReadPosition(NamedTuple):
    item: int
    at: str = "put: read push_position"

    def run(self, world: World, me: int) -> Outcome:
        return world.memory, PutCheckSlot(self.item, world.memory.push_position, 0)


class PutCheckSlot(NamedTuple):
    item: int
    position: int
    offset: int
    at: str = "put: check that the slot is free"

    def run(self, world: World, me: int) -> Outcome:
        memory, position = world.memory, self.position + self.offset
        generation = memory.generation(position)
        if generation == free(position):
            return memory, self._after_free_slot(world)
        again = PutReadPosition(self.item)
        if position_of(generation) < position:
            return memory, begin_recovery(world, again)
        return memory, again

    def _after_free_slot(self, world: World) -> Step:
        if self.offset + 1 < world.configuration.slots_of(self.item):
            return PutCheckSlot(self.item, self.position, self.offset + 1)
        if world.rules.intents_are_kept and world.rules.intent_before_claim:
            return PutStoreIntent(self.item, self.position)
        return PutClaim(self.item, self.position)


class PutStoreIntent(NamedTuple):
    item: int
    position: int
    at: str = "put: store intent"

    def run(self, world: World, me: int) -> Outcome:
        count = world.configuration.slots_of(self.item)
        memory = world.memory.with_intent(me, Intent(PUSH, self.position, count))
        if world.rules.intent_before_claim:
            return memory, PutClaim(self.item, self.position)
        return memory, PutWrite(self.item, self.position, 0)


class PutClaim(NamedTuple):
    item: int
    position: int
    at: str = "put: compare-and-swap push_position"

    def run(self, world: World, me: int) -> Outcome:
        memory, rules = world.memory, world.rules
        intent_is_stored = rules.intents_are_kept and rules.intent_before_claim
        if memory.push_position != self.position:
            lost = PutClearLostClaim(self.item) if intent_is_stored else PutReadPosition(self.item)
            return memory, lost
        count = world.configuration.slots_of(self.item)
        memory = memory._replace(push_position=self.position + count)
        if rules.intents_are_kept and not intent_is_stored:
            return memory, PutStoreIntent(self.item, self.position)
        return memory, PutWrite(self.item, self.position, 0)


class PutClearLostClaim(NamedTuple):
    item: int
    at: str = "put: clear intent of the lost claim"

    def run(self, world: World, me: int) -> Outcome:
        return world.memory.with_intent(me, None), PutReadPosition(self.item)


class PutWrite(NamedTuple):
    """Payload and length word of one slot, as one step.

    No participant may read either before the generation says published, so half of it is never seen.
    A read that comes too early is caught, because the slot then holds nothing or another item.
    """

    item: int
    position: int
    offset: int
    at: str = "put: write payload and length"

    def run(self, world: World, me: int) -> Outcome:
        position, count = self.position + self.offset, world.configuration.slots_of(self.item)
        require_unchanged(world.memory, position, free(position), OWNER)
        length = continuation(self.offset) if self.offset else head_length(count)
        memory = world.memory.with_bytes(position, self.item, length)
        if self.offset + 1 < count:
            return memory, PutWrite(self.item, self.position, self.offset + 1)
        if world.rules.intents_are_kept and not world.rules.intent_cleared_after_publish:
            return memory, PutClearIntent(self.item, self.position)
        return memory, first_publish(world, self.item, self.position)


def first_publish(world: World, item: int, position: int) -> Step:
    last = world.configuration.slots_of(item) - 1
    return PutPublish(item, position, last if world.rules.head_published_last else 0)


class PutPublish(NamedTuple):
    item: int
    position: int
    offset: int
    at: str = "put: publish"

    def run(self, world: World, me: int) -> Outcome:
        position = self.position + self.offset
        require_unchanged(world.memory, position, free(position), OWNER)
        memory = world.memory.with_generation(position, published(position))
        if self.offset == 0:
            memory = memory._replace(acknowledged=memory.acknowledged | 1 << self.item)
        following = self.offset + (-1 if world.rules.head_published_last else 1)
        if 0 <= following < world.configuration.slots_of(self.item):
            return memory, PutPublish(self.item, self.position, following)
        if world.rules.intents_are_kept and world.rules.intent_cleared_after_publish:
            return memory, PutClearIntent(self.item, self.position)
        return memory, next_put(world, self.item)


class PutClearIntent(NamedTuple):
    item: int
    position: int
    at: str = "put: clear intent"

    def run(self, world: World, me: int) -> Outcome:
        memory = world.memory.with_intent(me, None)
        if world.rules.intent_cleared_after_publish:
            return memory, next_put(world, self.item)
        return memory, first_publish(world, self.item, self.position)


def next_put(world: World, item: int) -> Step:
    return FINISHED if world.configuration.is_last(item) else PutReadPosition(item + 1)
