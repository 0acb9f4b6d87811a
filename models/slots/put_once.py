"""A producer that has a name: what it writes down, how recovery cuts it, and how its next life settles it."""

from __future__ import annotations

from typing import NamedTuple

from models.core.participant import DEAD, FINISHED, PromiseBroken
from models.slots import participants, queue_claim, recovery
from models.slots.memory import ARRIVING, FREE_QUEUE, HELD, STRAY, Word
from models.slots.world import LOST, Outcome, Step, World

SETTLING = -2
"""Instead of an item: the claim of a producer that only recovers, to know what its last life has done."""


def living(life: int) -> Step:
    return Await(life)


class Await(NamedTuple):
    """A live producer owns the line. The kernel says when the next life may own it."""

    life: int
    at: str = "put once: are those before dead?"

    def run(self, world: World, me: int) -> Outcome:
        before = world.steps[: self.life]
        if all(step is DEAD for step in before):
            return world.memory, ReadProgress()
        return world.memory, FINISHED if FINISHED in before else self


class ReadProgress(NamedTuple):
    at: str = "put once: read progress"

    def run(self, world: World, me: int) -> Outcome:
        line = world.memory.line
        if line.is_intended:
            return world.memory, ReadSlot()
        return world.memory, FINISHED if line.done == world.configuration.items else participants.producing(line.done)


class ReadSlot(NamedTuple):
    """The word of the slot decides.

    Only the owner of the line writes `slot` and `kept`, so they are as the last life left them.
    """

    at: str = "put once: read the word of the slot"

    def run(self, world: World, me: int) -> Outcome:
        line = world.memory.line
        word = world.memory.words[line.slot]
        held = line.kept._replace(state=HELD)
        if word in (held, arriving(world, held)) and world.rules.undecided_is_waited_for:
            return world.memory, recovery.begin(queue_claim.Claim(FREE_QUEUE, HELD, SETTLING))
        return world.memory, ReadKept()


class ReadKept(NamedTuple):
    at: str = "put once: was it cut?"

    def run(self, world: World, me: int) -> Outcome:
        return world.memory, Complete(0 if world.memory.line.kept.state == STRAY else 1)


class Complete(NamedTuple):
    items: int
    at: str = "put once: count what is in"

    def run(self, world: World, me: int) -> Outcome:
        line = world.memory.line
        return world.memory.with_line(is_intended=False, done=line.done + self.items), ReadProgress()


# Putting.


def before_publish(world: World, item: int, slot: int, word: Word) -> Step:
    if not world.rules.intent_is_written_first:
        return participants.Announce(item, slot, word)
    if not world.rules.counted_when_it_is_in:
        return CountEarly(item, slot, word)
    return WriteKept(item, slot, word)


def after_publish(world: World) -> Step:
    return Complete(1) if world.rules.counted_when_it_is_in else ReadProgress()


class CountEarly(NamedTuple):
    item: int
    slot: int
    word: Word
    at: str = "put once: count what is not in yet"

    def run(self, world: World, me: int) -> Outcome:
        done = world.memory.line.done + 1
        return world.memory.with_line(done=done), participants.Announce(self.item, self.slot, self.word)


class WriteKept(NamedTuple):
    item: int
    slot: int
    word: Word
    at: str = "put once: write the word that is held"

    def run(self, world: World, me: int) -> Outcome:
        return world.memory.with_line(kept=self.word), WriteSlot(self.item, self.slot, self.word)


class WriteSlot(NamedTuple):
    item: int
    slot: int
    word: Word
    at: str = "put once: write which slot"

    def run(self, world: World, me: int) -> Outcome:
        return world.memory.with_line(slot=self.slot), Intend(self.item, self.slot, self.word)


class Intend(NamedTuple):
    item: int
    slot: int
    word: Word
    at: str = "put once: intend"

    def run(self, world: World, me: int) -> Outcome:
        return world.memory.with_line(is_intended=True), participants.Announce(self.item, self.slot, self.word)


# Cutting.


def arriving(world: World, held: Word) -> Word:
    return world.next_word(held, ARRIVING, held.owner)


def cutting(world: World, found: recovery.Found) -> Step:
    if not world.rules.claims_are_cut or (found.word.state == HELD and not world.rules.held_claims_are_cut):
        return after_cut(world, found)
    return ReadKeptToCut(found)


def after_cut(world: World, found: recovery.Found) -> Step:
    if not world.rules.cut_comes_before_the_swap:
        return recovery.ScanWords(found.claim, found.slot)
    return recovery.SwapWord(found, STRAY)


class ReadKeptToCut(NamedTuple):
    found: recovery.Found
    at: str = "cut: read kept"

    def run(self, world: World, me: int) -> Outcome:
        kept = world.memory.line.kept
        if kept.state == HELD and self.found.word in (kept, arriving(world, kept)):
            return world.memory, ReadSlotToCut(self.found, kept)
        return world.memory, after_cut(world, self.found)


class ReadSlotToCut(NamedTuple):
    found: recovery.Found
    kept: Word
    at: str = "cut: read which slot"

    def run(self, world: World, me: int) -> Outcome:
        if world.memory.line.slot != self.found.slot:
            return world.memory, after_cut(world, self.found)
        return world.memory, Cut(self.found, self.kept)


class Cut(NamedTuple):
    found: recovery.Found
    kept: Word
    at: str = "cut: compare-and-swap kept"

    def run(self, world: World, me: int) -> Outcome:
        memory = world.memory
        if memory.line.kept == self.kept:
            memory = memory.with_line(kept=self.kept._replace(state=STRAY))
        return memory, after_cut(world, self.found)


def check_complete(world: World) -> None:
    """If a life of the producer came to its end, all of its items were put."""
    size = world.configuration
    missing = (1 << size.items) - 1 & ~world.memory.published
    if missing and FINISHED in world.steps[: size.producers]:
        raise PromiseBroken(LOST, f"items {missing:b} were counted and never put")
