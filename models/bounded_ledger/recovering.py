"""Recovery: what a participant does when it cannot go on.

It reads both positions, then scans the ledger, one line a step.
A claimed position that a dead line covers and no live line covers is nobody's any more:
unpublished it becomes a tombstone, unreleased it is delivered by a consumer that adopts it.
"""

from __future__ import annotations

from typing import NamedTuple

from models.bounded_ledger.memory import Memory
from models.bounded_ledger.rules import Rules
from models.bounded_ledger.words import (
    Intent,
    Side,
    adopted,
    adopter_of,
    free,
    head_distance,
    position_of,
    published,
    tombstone,
)
from models.bounded_ledger.world import (
    Outcome,
    Role,
    Step,
    World,
    copied,
    deliver,
    require_unchanged,
    require_whole,
)

OWNER = "a live adopter"

# A place is one side of one position, as a bit: 2 * position + side.
# Sets of places are integers, so that equal sets are equal states.
_POSITIONS_MAX = 64
_EVERY_PUSH = sum(1 << 2 * position + Side.PUSH for position in range(_POSITIONS_MAX))
_EVERY_POP = sum(1 << 2 * position + Side.POP for position in range(_POSITIONS_MAX))
_EVERY_PLACE = _EVERY_PUSH | _EVERY_POP


def _places_claimed(push_position: int, pop_position: int) -> int:
    pushes = _EVERY_PUSH & (1 << 2 * push_position) - 1
    pops = _EVERY_POP & (1 << 2 * pop_position) - 1
    return pushes | pops


def _places_covered(intent: Intent) -> int:
    every = _EVERY_PUSH if intent.side is Side.PUSH else _EVERY_POP
    return (every & (1 << 2 * intent.count) - 1) << 2 * intent.position


def _first_place(places: int) -> tuple[Side, int]:
    bit = (places & -places).bit_length() - 1
    return Side(bit & 1), bit >> 1


def first_release(rules: Rules, count: int) -> int:
    """The offset of the slot that is released first."""
    return 0 if rules.head_released_first else 1 % count


def following_release(rules: Rules, count: int, offset: int) -> int | None:
    following = (offset + 1) % count
    return None if following == first_release(rules, count) else following


def begin_recovery(world: World, resume: Step) -> Step:
    """The first step of a recovery that goes on with `resume`, or `resume` at once."""
    if not world.recovery_could_act():
        return resume
    if not world.rules.positions_read_before_scan:
        return RecoverReadIntent(resume, Scan(_EVERY_PLACE, 0, 0), 0)
    return RecoverReadPushPosition(resume, None)


class Scan(NamedTuple):
    """What the scan found so far, as sets of places; only claimed places are of interest."""

    claimed: int
    live: int
    dead: int

    def is_relevant(self, intent: Intent) -> bool:
        return bool(_places_covered(intent) & self.claimed)

    def with_live(self, intent: Intent) -> Scan:
        live = self.live | _places_covered(intent) & self.claimed
        # What a live line covers is left alone, so a dead line over it is not worth remembering.
        return Scan(self.claimed, live, self.dead & ~live)

    def with_dead(self, intent: Intent) -> Scan:
        return self._replace(dead=self.dead | _places_covered(intent) & self.claimed & ~self.live)


class RecoverReadPushPosition(NamedTuple):
    """First the positions, then the ledger.

    Whoever moved a position stored its intent before, so the scan sees it or its end.
    """

    resume: Step
    late_scan: Scan | None
    at: str = "recover: read push_position"

    def run(self, world: World, me: int) -> Outcome:
        following = RecoverReadPopPosition(self.resume, self.late_scan, world.memory.push_position)
        return world.memory, following


class RecoverReadPopPosition(NamedTuple):
    resume: Step
    late_scan: Scan | None
    push_position: int
    at: str = "recover: read pop_position"

    def run(self, world: World, me: int) -> Outcome:
        claimed = _places_claimed(self.push_position, world.memory.pop_position)
        if self.late_scan is not None:
            return world.memory, _treat(self.resume, self.late_scan.dead & claimed)
        if not world.rules.only_claimed_positions:
            claimed = _EVERY_PLACE
        return world.memory, _scan(world, me, self.resume, Scan(claimed, 0, 0), 0)


def _scan(world: World, me: int, resume: Step, scan: Scan, line: int) -> Step:
    # A recoverer has no intent of its own, so it passes over its own line.
    if line == me:
        line += 1
    if line < world.configuration.lines:
        return RecoverReadIntent(resume, scan, line)
    if not world.rules.positions_read_before_scan:
        return RecoverReadPushPosition(resume, scan)
    return _treat(resume, scan.dead)


class RecoverReadIntent(NamedTuple):
    resume: Step
    scan: Scan
    line: int
    at: str = "recover: read intent"

    def run(self, world: World, me: int) -> Outcome:
        memory, intent = world.memory, world.memory.intents[self.line]
        if intent is not None and self.scan.is_relevant(intent):
            return memory, RecoverTestOwner(self.resume, self.scan, self.line, intent)
        return memory, _scan(world, me, self.resume, self.scan, self.line + 1)


class RecoverTestOwner(NamedTuple):
    """A step of its own: the owner may have moved on, or died, since its intent was read."""

    resume: Step
    scan: Scan
    line: int
    intent: Intent
    at: str = "recover: test whether the owner is dead"

    def run(self, world: World, me: int) -> Outcome:
        scan = self.scan
        if world.is_dead(self.line):
            scan = scan.with_dead(self.intent)
        elif world.rules.live_lines_are_respected:
            scan = scan.with_live(self.intent)
        return world.memory, _scan(world, me, self.resume, scan, self.line + 1)


def _treat(resume: Step, targets: int) -> Step:
    """Treat the first target; without targets, go back to work."""
    if not targets:
        return resume
    side, _ = _first_place(targets)
    if side is Side.PUSH:
        return RecoverTombstone(resume, targets)
    return RecoverReadGeneration(resume, targets)


def _treat_next(resume: Step, targets: int) -> Step:
    return _treat(resume, targets & targets - 1)


class RecoverTombstone(NamedTuple):
    """Blind: if the owner did publish, the expected word is not there any more."""

    resume: Step
    targets: int
    at: str = "recover: compare-and-swap free to tombstone"

    def run(self, world: World, me: int) -> Outcome:
        memory = world.memory
        _, position = _first_place(self.targets)
        is_expected = memory.generation(position) == free(position)
        if is_expected or not world.rules.recoverer_compares_on_tombstone:
            memory = memory.with_generation(position, tombstone(position))
        return memory, _treat_next(self.resume, self.targets)


class RecoverReadGeneration(NamedTuple):
    resume: Step
    targets: int
    at: str = "recover: read generation"

    def run(self, world: World, me: int) -> Outcome:
        memory = world.memory
        _, position = _first_place(self.targets)
        seen = memory.generation(position)
        if seen == tombstone(position):
            return memory, RecoverFree(self.resume, self.targets, seen)
        if seen == published(position):
            return memory, RecoverReadLength(self.resume, self.targets, seen)
        if _is_adopted(seen, position):
            return memory, RecoverTestAdopter(self.resume, self.targets, seen)
        return memory, _treat_next(self.resume, self.targets)


def _is_adopted(generation: int, position: int) -> bool:
    return adopter_of(generation) is not None and position_of(generation) == position


class RecoverTestAdopter(NamedTuple):
    resume: Step
    targets: int
    seen: int
    at: str = "recover: test whether the adopter is dead"

    def run(self, world: World, me: int) -> Outcome:
        adopter = adopter_of(self.seen)
        if adopter is not None and world.is_dead(adopter):
            return world.memory, RecoverReadLength(self.resume, self.targets, self.seen)
        return world.memory, _treat_next(self.resume, self.targets)


class RecoverReadLength(NamedTuple):
    """The word may be that of a later item if the slot moved on; then the swap fails."""

    resume: Step
    targets: int
    seen: int
    at: str = "recover: read length"

    def run(self, world: World, me: int) -> Outcome:
        memory = world.memory
        _, position = _first_place(self.targets)
        length = memory.length(position)
        distance = head_distance(length)
        if distance and self.seen != published(position):
            return memory, _treat_next(self.resume, self.targets)
        if distance and world.rules.continuations_go_with_head:
            return memory, RecoverReadHead(self.resume, self.targets, distance)
        if distance:
            return memory, RecoverFree(self.resume, self.targets, self.seen)
        if world.roles[me] is Role.PRODUCER:
            return memory, _treat_next(self.resume, self.targets)
        adoption = Adoption(position, length, self.seen)
        if world.rules.adopter_stores_intent:
            return memory, AdoptStoreIntent(self.resume, adoption)
        return memory, AdoptClaim(self.resume, adoption)


class RecoverReadHead(NamedTuple):
    """A continuation goes with its head; once the head is gone it is freed on its own."""

    resume: Step
    targets: int
    distance: int
    at: str = "recover: read generation of the head"

    def run(self, world: World, me: int) -> Outcome:
        memory = world.memory
        _, position = _first_place(self.targets)
        head = position - self.distance
        seen = memory.generation(head)
        if seen == published(head) or _is_adopted(seen, head):
            return memory, _treat_next(self.resume, self.targets)
        return memory, RecoverFree(self.resume, self.targets, published(position))


class RecoverFree(NamedTuple):
    resume: Step
    targets: int
    expected: int
    at: str = "recover: compare-and-swap to free"

    def run(self, world: World, me: int) -> Outcome:
        memory = world.memory
        _, position = _first_place(self.targets)
        if memory.generation(position) == self.expected:
            memory = memory.released(position)
        return memory, _treat_next(self.resume, self.targets)


class Adoption(NamedTuple):
    position: int
    count: int
    seen: int


class AdoptStoreIntent(NamedTuple):
    resume: Step
    adoption: Adoption
    at: str = "adopt: store intent"

    def run(self, world: World, me: int) -> Outcome:
        intent = Intent(Side.POP, self.adoption.position, self.adoption.count)
        return world.memory.with_intent(me, intent), AdoptClaim(self.resume, self.adoption)


class AdoptClaim(NamedTuple):
    resume: Step
    adoption: Adoption
    at: str = "adopt: compare-and-swap generation to adopted"

    def run(self, world: World, me: int) -> Outcome:
        memory, position = world.memory, self.adoption.position
        if memory.generation(position) != self.adoption.seen:
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
        if self.offset + 1 < adoption.count:
            return memory, AdoptCopy(self.resume, adoption, self.offset + 1, item)
        require_whole(world, item, adoption.count)
        first = first_release(world.rules, adoption.count)
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
        following = following_release(world.rules, self.adoption.count, self.offset)
        if following is not None:
            return memory, AdoptRelease(self.resume, self.adoption, following, self.item)
        return memory, _end_of_adoption(world, self.resume)

    def _released(self, world: World, me: int) -> Memory:
        memory, position = world.memory, self.adoption.position + self.offset
        if self.offset == 0:
            require_unchanged(memory, position, adopted(position, me), OWNER)
            return deliver(memory.released(position), self.item)
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
