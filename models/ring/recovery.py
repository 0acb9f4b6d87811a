"""Recovery: what a participant does when it cannot go on.

It reads both positions, then scans the ledger, one line a step.
A claimed position that a dead line covers and no live line covers has lost its owner.
If it is unpublished, it is abandoned: its slot becomes a tombstone.
If it is unreleased, a consumer redelivers it.
"""

from __future__ import annotations

from typing import NamedTuple

from models.ring.places import (
    EVERY_PLACE,
    first_place,
    places_claimed,
    places_covered,
    without_settled,
)
from models.ring.redelivery import Redelivery, begin_redelivery
from models.ring.words import (
    PUSH,
    Intent,
    free,
    head_distance,
    position_of,
    published,
    redeliverer_of,
    tombstone,
)
from models.ring.world import PRODUCER, Outcome, Step, World


def begin_recovery(world: World, resume: Step) -> Step:
    """The first step of a recovery that goes on with `resume`, or `resume` at once."""
    if not world.recovery_could_act():
        return resume
    if not world.rules.positions_read_before_scan:
        return RecoverReadIntent(resume, Scan(EVERY_PLACE, 0, 0), 0)
    return RecoverReadPushPosition(resume, None)


class Scan(NamedTuple):
    """What the scan found so far, as sets of places; only claimed places are of interest."""

    claimed: int
    live: int
    dead: int

    def is_relevant(self, intent: Intent) -> bool:
        return bool(places_covered(intent) & self.claimed)

    def with_live(self, intent: Intent) -> Scan:
        live = self.live | (places_covered(intent) & self.claimed)
        # What a live line covers is left alone, so a dead line over it is not worth remembering.
        return Scan(self.claimed, live, self.dead & ~live)

    def with_dead(self, intent: Intent) -> Scan:
        covered = places_covered(intent) & self.claimed
        return self._replace(dead=self.dead | (covered & ~self.live))

    def without_settled(self, world: World) -> Scan:
        claimed = without_settled(world, self.claimed)
        return Scan(claimed, self.live & claimed, self.dead & claimed)


class RecoverReadPushPosition(NamedTuple):
    """First the positions, then the ledger.

    A participant that moved a position stored its intent before, so the scan sees that intent or its end.
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
        claimed = places_claimed(self.push_position, world.memory.pop_position)
        if self.late_scan is not None:
            return world.memory, _treat(world, self.resume, self.late_scan.dead & claimed)
        if not world.rules.only_claimed_positions:
            claimed = EVERY_PLACE
        return world.memory, _scan(world, me, self.resume, Scan(claimed, 0, 0), 0)


def _scan(world: World, me: int, resume: Step, scan: Scan, line: int) -> Step:
    # A recoverer has no intent of its own, so it passes over its own line.
    if line == me:
        line += 1
    scan = scan.without_settled(world)
    if not scan.claimed and not world.configuration.is_exact:
        return resume
    if line < world.configuration.lines:
        return RecoverReadIntent(resume, scan, line)
    if not world.rules.positions_read_before_scan:
        return RecoverReadPushPosition(resume, scan)
    return _treat(world, resume, scan.dead)


class RecoverReadIntent(NamedTuple):
    resume: Step
    scan: Scan
    line: int
    at: str = "recover: read intent"

    def run(self, world: World, me: int) -> Outcome:
        memory, intent = world.memory, world.memory.intents[self.line]
        is_exact = world.configuration.is_exact
        if intent is not None and (is_exact or self.scan.is_relevant(intent)):
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
        elif _remembers_live(world):
            scan = scan.with_live(self.intent)
        return world.memory, _scan(world, me, self.resume, scan, self.line + 1)


def _remembers_live(world: World) -> bool:
    rules = world.rules
    return rules.live_lines_are_respected and not rules.live_lines_scanned_for_each_position


def _treat(world: World, resume: Step, targets: int) -> Step:
    """Treat the first target; without targets, go back to work."""
    targets = without_settled(world, targets)
    if not targets:
        return resume
    side, _ = first_place(targets)
    if side == PUSH and not world.rules.live_lines_scanned_for_each_position:
        return RecoverTombstone(resume, targets)
    return RecoverReadGeneration(resume, targets)


def _treat_next(world: World, resume: Step, targets: int) -> Step:
    return _treat(world, resume, targets & targets - 1)


class RecoverTombstone(NamedTuple):
    """Blind: if the owner did publish, the expected word is not there any more."""

    resume: Step
    targets: int
    at: str = "recover: compare-and-swap free to tombstone"

    def run(self, world: World, me: int) -> Outcome:
        memory = world.memory
        _, position = first_place(self.targets)
        is_expected = memory.generation(position) == free(position)
        if is_expected or not world.rules.recoverer_compares_on_tombstone:
            memory = memory.with_generation(position, tombstone(position))
        return memory, _treat_next(world, self.resume, self.targets)


class RecoverReadGeneration(NamedTuple):
    resume: Step
    targets: int
    at: str = "recover: read generation"

    def run(self, world: World, me: int) -> Outcome:
        memory = world.memory
        side, position = first_place(self.targets)
        seen = memory.generation(position)
        if side == PUSH:
            is_outstanding = seen == free(position)
        else:
            is_whole = seen in (published(position), tombstone(position))
            is_outstanding = is_whole or is_redelivered(seen, position)
        if not is_outstanding:
            return memory, _treat_next(world, self.resume, self.targets)
        if world.rules.live_lines_scanned_for_each_position:
            return memory, _search_live(world, me, self.resume, self.targets, seen, 0)
        if is_redelivered(seen, position):
            return memory, RecoverTestRedeliverer(self.resume, self.targets, seen)
        return memory, _settle(self.resume, self.targets, seen)


def _settle(resume: Step, targets: int, seen: int) -> Step:
    """The position has lost its owner: do what its generation asks for."""
    side, position = first_place(targets)
    if side == PUSH:
        return RecoverTombstone(resume, targets)
    if seen == tombstone(position):
        return RecoverFree(resume, targets, seen)
    return RecoverReadLength(resume, targets, seen)


def _search_live(
    world: World,
    me: int,
    resume: Step,
    targets: int,
    seen: int,
    line: int,
) -> Step:
    if line == me:
        line += 1
    if line < world.configuration.lines:
        return RecoverSearchLive(resume, targets, seen, line)
    return _settle(resume, targets, seen)


class RecoverSearchLive(NamedTuple):
    resume: Step
    targets: int
    seen: int
    line: int
    at: str = "recover: read intent for the position"

    def run(self, world: World, me: int) -> Outcome:
        memory, intent = world.memory, world.memory.intents[self.line]
        first_target = self.targets & -self.targets
        if intent is not None and places_covered(intent) & first_target:
            return memory, RecoverTestLive(self.resume, self.targets, self.seen, self.line)
        following = self.line + 1
        return memory, _search_live(world, me, self.resume, self.targets, self.seen, following)


class RecoverTestLive(NamedTuple):
    resume: Step
    targets: int
    seen: int
    line: int
    at: str = "recover: test whether the position has a live owner"

    def run(self, world: World, me: int) -> Outcome:
        memory = world.memory
        if not world.is_dead(self.line):
            return memory, _treat_next(world, self.resume, self.targets)
        following = self.line + 1
        return memory, _search_live(world, me, self.resume, self.targets, self.seen, following)


def is_redelivered(generation: int, position: int) -> bool:
    return redeliverer_of(generation) is not None and position_of(generation) == position


class RecoverTestRedeliverer(NamedTuple):
    resume: Step
    targets: int
    seen: int
    at: str = "recover: test whether the redeliverer is dead"

    def run(self, world: World, me: int) -> Outcome:
        redeliverer = redeliverer_of(self.seen)
        if redeliverer is not None and world.is_dead(redeliverer):
            return world.memory, RecoverReadLength(self.resume, self.targets, self.seen)
        return world.memory, _treat_next(world, self.resume, self.targets)


class RecoverReadLength(NamedTuple):
    """The word may be that of a later item if the slot moved on; then the swap fails."""

    resume: Step
    targets: int
    seen: int
    at: str = "recover: read length"

    def run(self, world: World, me: int) -> Outcome:
        memory = world.memory
        _, position = first_place(self.targets)
        length = memory.length(position)
        distance = head_distance(length)
        if distance and self.seen != published(position):
            return memory, _treat_next(world, self.resume, self.targets)
        if distance and world.rules.continuations_go_with_head:
            return memory, RecoverReadHead(self.resume, self.targets, distance)
        if distance:
            return memory, RecoverFree(self.resume, self.targets, self.seen)
        if world.roles[me] == PRODUCER:
            return memory, _treat_next(world, self.resume, self.targets)
        redelivery = Redelivery(position, length, self.seen)
        return memory, begin_redelivery(world, self.resume, redelivery)


class RecoverReadHead(NamedTuple):
    """A continuation goes with its head; once the head is gone it is freed on its own."""

    resume: Step
    targets: int
    distance: int
    at: str = "recover: read generation of the head"

    def run(self, world: World, me: int) -> Outcome:
        memory = world.memory
        _, position = first_place(self.targets)
        head = position - self.distance
        seen = memory.generation(head)
        if seen == published(head) or is_redelivered(seen, head):
            return memory, _treat_next(world, self.resume, self.targets)
        return memory, RecoverFree(self.resume, self.targets, published(position))


class RecoverFree(NamedTuple):
    resume: Step
    targets: int
    expected: int
    at: str = "recover: compare-and-swap to free"

    def run(self, world: World, me: int) -> Outcome:
        memory = world.memory
        _, position = first_place(self.targets)
        if memory.generation(position) == self.expected:
            memory = memory.released(position)
        return memory, _treat_next(world, self.resume, self.targets)
