"""Adoption: a consumer delivers an item whose popper died."""

from __future__ import annotations

from typing import NamedTuple

from models.ring.memory import Memory
from models.ring.words import POP, Intent, adopted, published
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

OWNER = "a live adopter"


class Adoption(NamedTuple):
    position: int
    slots: int
    seen: int


def begin_adoption(world: World, resume: Step, adoption: Adoption) -> Step:
    if world.rules.adopter_stores_intent:
        return AdoptStoreIntent(resume, adoption)
    return AdoptClaim(resume, adoption)


class AdoptStoreIntent(NamedTuple):
    resume: Step
    adoption: Adoption
    at: str = "adopt: store intent"

    def run(self, world: World, me: int) -> Outcome:
        intent = Intent(POP, self.adoption.position, self.adoption.slots)
        return world.memory.with_intent(me, intent), AdoptClaim(self.resume, self.adoption)


class AdoptClaim(NamedTuple):
    resume: Step
    adoption: Adoption
    at: str = "adopt: compare-and-swap generation to adopted"

    def run(self, world: World, me: int) -> Outcome:
        memory, position = world.memory, self.adoption.position
        is_lost = memory.generation(position) != self.adoption.seen
        if is_lost and world.rules.adopter_compares_on_claim:
            return memory, _end_of_adoption(world, self.resume)
        memory = memory.with_generation(position, adopted(position, me))
        return memory, AdoptCopy(self.resume, self.adoption, 0, None)


class AdoptCopy(NamedTuple):
    resume: Step
    adoption: Adoption
    offset: int
    item: int | None
    at: str = "adopt: copy a slot"

    def run(self, world: World, me: int) -> Outcome:
        memory, adoption = world.memory, self.adoption
        item = copied(world, adoption.position + self.offset, self.item)
        if self.offset + 1 < adoption.slots:
            return memory, AdoptCopy(self.resume, adoption, self.offset + 1, item)
        require_whole(world, item, adoption.slots)
        first = world.rules.first_release(adoption.slots)
        memory = delivered_by_copy(world, item)
        return memory, AdoptRelease(self.resume, adoption, first, item)


class AdoptRelease(NamedTuple):
    """The head is the adopter's own, but its continuations are not.

    Another recoverer may have scanned the ledger before the adopter stored its intent.
    It then finds the head gone and frees the continuations, so the adopter must compare as well:
    a plain store could hit the slot's next lap.
    """

    resume: Step
    adoption: Adoption
    offset: int
    item: int
    at: str = "adopt: release a slot"

    def run(self, world: World, me: int) -> Outcome:
        memory = self._released(world, me)
        following = world.rules.following_release(self.adoption.slots, self.offset)
        if following is not None:
            return memory, AdoptRelease(self.resume, self.adoption, following, self.item)
        return memory, _end_of_adoption(world, self.resume)

    def _released(self, world: World, me: int) -> Memory:
        memory, position = world.memory, self.adoption.position + self.offset
        if self.offset == 0:
            require_unchanged(memory, position, adopted(position, me), OWNER)
            return delivered_by_release(world, memory.released(position), self.item)
        if not world.rules.adopter_compares_on_release:
            require_unchanged(memory, position, published(position), OWNER)
        if memory.generation(position) == published(position):
            return memory.released(position)
        return memory


def _end_of_adoption(world: World, resume: Step) -> Step:
    return AdoptClearIntent(resume) if world.rules.adopter_stores_intent else resume


class AdoptClearIntent(NamedTuple):
    """Also after a lost claim."""

    resume: Step
    at: str = "adopt: clear intent"

    def run(self, world: World, me: int) -> Outcome:
        return world.memory.with_intent(me, None), self.resume
