"""Claim the slot at the front of a queue: its word first, then the head."""

from __future__ import annotations

from typing import NamedTuple

from models.slots import participants, recovery
from models.slots.memory import CLAIMABLE, HELD, TAKEN, USED_QUEUE, Name, Word
from models.slots.world import Outcome, Step, World, ended


class Claim(NamedTuple):
    """Out of which queue, to become what, for which item (of a producer)."""

    queue: Name
    state: str
    item: int


class ReadHead(NamedTuple):
    claim: Claim
    at: str = "claim: read head"

    def run(self, world: World, me: int) -> Outcome:
        return world.memory, ReadFront(self.claim, world.memory.queue(self.claim.queue).head)


class ReadFront(NamedTuple):
    claim: Claim
    head: int
    at: str = "claim: read the cell at head"

    def run(self, world: World, me: int) -> Outcome:
        queue = world.memory.queue(self.claim.queue)
        behind = queue.cycles_behind(self.head)
        if behind == 0:
            index = queue.cell(self.head).slot
            if not world.rules.word_before_head:
                return world.memory, MoveHead(self.claim, self.head, index, None)
            return world.memory, ReadWord(self.claim, self.head, index)
        if queue.head != self.head:
            return world.memory, ReadHead(self.claim)
        return world.memory, nothing_there(world, me, self.claim)


class ReadWord(NamedTuple):
    claim: Claim
    head: int
    slot: int
    at: str = "claim: read the word"

    def run(self, world: World, me: int) -> Outcome:
        word = world.memory.words[self.slot]
        if not world.rules.front_is_checked_again:
            return world.memory, decided(world, self.claim, self.head, self.slot, word)
        return world.memory, CheckFront(self.claim, self.head, self.slot, word)


class CheckFront(NamedTuple):
    claim: Claim
    head: int
    slot: int
    word: Word
    at: str = "claim: is it still the front?"

    def run(self, world: World, me: int) -> Outcome:
        if world.memory.queue(self.claim.queue).head != self.head:
            return world.memory, ReadHead(self.claim)
        return world.memory, decided(world, self.claim, self.head, self.slot, self.word)


def decided(world: World, claim: Claim, head: int, slot: int, word: Word) -> Step:
    if word.state in CLAIMABLE[claim.queue]:
        return SwapWord(claim, head, slot, word)
    if not world.rules.claims_are_helped:
        return ReadHead(claim)
    return MoveHead(claim, head, slot, None)


class SwapWord(NamedTuple):
    claim: Claim
    head: int
    slot: int
    word: Word
    at: str = "claim: compare-and-swap the word"

    def run(self, world: World, me: int) -> Outcome:
        expected = self.word if world.rules.word_before_head else world.memory.words[self.slot]
        swapped = world.swapped(self.slot, expected, self.claim.state, me)
        if swapped is None:
            return world.memory, CheckWord(self.claim, self.head, self.slot)
        memory, word = swapped
        if self.claim.queue == USED_QUEUE and self.claim.state == HELD:
            memory = ended(memory, memory.payloads[self.slot])  # evicted, whatever becomes of us
        if not world.rules.word_before_head:
            return memory, participants.claimed(self.claim, self.slot, word)
        return memory, MoveHead(self.claim, self.head, self.slot, word)


class CheckWord(NamedTuple):
    claim: Claim
    head: int
    slot: int
    at: str = "claim: is the word claimed by now?"

    def run(self, world: World, me: int) -> Outcome:
        if world.memory.words[self.slot].state in CLAIMABLE[self.claim.queue]:
            return world.memory, ReadHead(self.claim)
        return world.memory, MoveHead(self.claim, self.head, self.slot, None)


class MoveHead(NamedTuple):
    claim: Claim
    head: int
    slot: int
    word: Word | None
    """The word that this claim has stored; None if another participant has claimed the slot, and is helped."""
    at: str = "claim: compare-and-swap head"

    def run(self, world: World, me: int) -> Outcome:
        queue = world.memory.queue(self.claim.queue)
        has_moved = queue.head == self.head
        memory = world.memory
        if has_moved:
            memory = memory.with_queue(self.claim.queue, queue._replace(head=self.head + 1))
        if not world.rules.word_before_head and has_moved:
            return memory, SwapWord(self.claim, self.head, self.slot, memory.words[self.slot])
        if self.word is None:
            return memory, ReadHead(self.claim)
        return memory, participants.claimed(self.claim, self.slot, self.word)


def nothing_there(world: World, me: int, claim: Claim) -> Step:
    """The queue is empty: evict, or recover what the dead had, and try again."""
    if claim.state == HELD and world.configuration.overwrites and claim.queue != USED_QUEUE:
        return ReadHead(Claim(USED_QUEUE, HELD, claim.item))
    if world.recovery_could_act():
        return recovery.begin(claim)
    if claim.state == TAKEN:
        return participants.ScanForOrphan(0)
    return participants.again(claim)
