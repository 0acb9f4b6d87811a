"""Redelivery: a consumer delivers an item whose popper died."""

from __future__ import annotations

from typing import NamedTuple

from models.ring.memory import Memory
from models.ring.words import POP, Intent, published, redelivered
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

OWNER = "a live redeliverer"


class Redelivery(NamedTuple):
    position: int
    slots: int
    seen: int


def begin_redelivery(world: World, resume: Step, redelivery: Redelivery) -> Step:
    if world.rules.redeliverer_stores_intent:
        return RedeliverStoreIntent(resume, redelivery)
    return RedeliverClaim(resume, redelivery)


class RedeliverStoreIntent(NamedTuple):
    resume: Step
    redelivery: Redelivery
    at: str = "redeliver: store intent"

    def run(self, world: World, me: int) -> Outcome:
        intent = Intent(POP, self.redelivery.position, self.redelivery.slots)
        return world.memory.with_intent(me, intent), RedeliverClaim(self.resume, self.redelivery)


class RedeliverClaim(NamedTuple):
    resume: Step
    redelivery: Redelivery
    at: str = "redeliver: compare-and-swap generation to redelivered"

    def run(self, world: World, me: int) -> Outcome:
        memory, position = world.memory, self.redelivery.position
        is_lost = memory.generation(position) != self.redelivery.seen
        if is_lost and world.rules.redeliverer_compares_on_claim:
            return memory, _end_of_redelivery(world, self.resume)
        memory = memory.with_generation(position, redelivered(position, me))
        return memory, RedeliverCopy(self.resume, self.redelivery, 0, None)


class RedeliverCopy(NamedTuple):
    resume: Step
    redelivery: Redelivery
    offset: int
    item: int | None
    at: str = "redeliver: copy a slot"

    def run(self, world: World, me: int) -> Outcome:
        memory, redelivery = world.memory, self.redelivery
        item = copied(world, redelivery.position + self.offset, self.item)
        if self.offset + 1 < redelivery.slots:
            return memory, RedeliverCopy(self.resume, redelivery, self.offset + 1, item)
        require_whole(world, item, redelivery.slots)
        first = world.rules.first_release(redelivery.slots)
        memory = delivered_by_copy(world, item)
        return memory, RedeliverRelease(self.resume, redelivery, first, item)


class RedeliverRelease(NamedTuple):
    """The head is the redeliverer's own, but its continuations are not.

    Another recoverer may have scanned the ledger before the redeliverer stored its intent.
    It then finds the head gone and frees the continuations, so the redeliverer must compare as well:
    a plain store could hit the slot's next lap.
    """

    resume: Step
    redelivery: Redelivery
    offset: int
    item: int
    at: str = "redeliver: release a slot"

    def run(self, world: World, me: int) -> Outcome:
        memory = self._released(world, me)
        following = world.rules.following_release(self.redelivery.slots, self.offset)
        if following is not None:
            return memory, RedeliverRelease(self.resume, self.redelivery, following, self.item)
        return memory, _end_of_redelivery(world, self.resume)

    def _released(self, world: World, me: int) -> Memory:
        memory, position = world.memory, self.redelivery.position + self.offset
        if self.offset == 0:
            require_unchanged(memory, position, redelivered(position, me), OWNER)
            return delivered_by_release(world, memory.released(position), self.item)
        if not world.rules.redeliverer_compares_on_release:
            require_unchanged(memory, position, published(position), OWNER)
        if memory.generation(position) == published(position):
            return memory.released(position)
        return memory


def _end_of_redelivery(world: World, resume: Step) -> Step:
    return RedeliverClearIntent(resume) if world.rules.redeliverer_stores_intent else resume


class RedeliverClearIntent(NamedTuple):
    """Also after a lost claim."""

    resume: Step
    at: str = "redeliver: clear intent"

    def run(self, world: World, me: int) -> Outcome:
        return world.memory.with_intent(me, None), self.resume
