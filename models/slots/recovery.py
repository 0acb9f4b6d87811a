"""Recover what the dead had, slot by slot, and bring strays back."""

from __future__ import annotations

from typing import NamedTuple

from models.slots import participants, put_once, queue_claim
from models.slots.memory import (
    ARRIVING,
    CLAIMABLE,
    FREE,
    FREE_QUEUE,
    HELD,
    LEAVING,
    ORPHANED,
    QUEUED,
    STRAY,
    TAKEN,
    USED_QUEUE,
    Name,
    Word,
)
from models.slots.world import Outcome, Step, World


def begin(claim: queue_claim.Claim) -> Step:
    return ScanWords(claim, 0)


class Found(NamedTuple):
    """A slot of the dead."""

    claim: queue_claim.Claim
    slot: int
    word: Word


class ScanWords(NamedTuple):
    claim: queue_claim.Claim
    slot: int
    at: str = "recover: read a word"

    def run(self, world: World, me: int) -> Outcome:
        if self.slot == world.configuration.slots:
            return world.memory, Gather(self.claim, 0)
        word = world.memory.words[self.slot]
        if not world.is_dead(word.owner):
            return world.memory, ScanWords(self.claim, self.slot + 1)
        found = Found(self.claim, self.slot, word)
        if not world.rules.recovery_passes_heads:
            return world.memory, judged(world, found)
        return world.memory, ReadHead(found, FREE_QUEUE)


class ReadHead(NamedTuple):
    found: Found
    queue: Name
    at: str = "recover: read head"

    def run(self, world: World, me: int) -> Outcome:
        return world.memory, ReadFront(self.found, self.queue, world.memory.queue(self.queue).head)


class ReadFront(NamedTuple):
    found: Found
    queue: Name
    head: int
    at: str = "recover: read the cell at head"

    def run(self, world: World, me: int) -> Outcome:
        queue = world.memory.queue(self.queue)
        if queue.cycles_behind(self.head) == 0 and queue.cell(self.head).slot == self.found.slot:
            return world.memory, ReadWord(self.found, self.queue, self.head)
        return world.memory, after_pass(world, self.found, self.queue)


class ReadWord(NamedTuple):
    found: Found
    queue: Name
    head: int
    at: str = "recover: is the front claimed?"

    def run(self, world: World, me: int) -> Outcome:
        if world.memory.words[self.found.slot].state in CLAIMABLE[self.queue]:
            return world.memory, after_pass(world, self.found, self.queue)
        return world.memory, PassHead(self.found, self.queue, self.head)


class PassHead(NamedTuple):
    found: Found
    queue: Name
    head: int
    at: str = "recover: compare-and-swap head"

    def run(self, world: World, me: int) -> Outcome:
        queue = world.memory.queue(self.queue)
        memory = world.memory
        if queue.head == self.head:
            memory = memory.with_queue(self.queue, queue._replace(head=self.head + 1))
        return memory, after_pass(world, self.found, self.queue)


def after_pass(world: World, found: Found, queue: Name) -> Step:
    return ReadHead(found, USED_QUEUE) if queue == FREE_QUEUE else judged(world, found)


def judged(world: World, found: Found) -> Step:
    state = found.word.state
    if state == ARRIVING and world.rules.recovery_scans_used:
        return ScanQueue(found, USED_QUEUE, 0)
    if state == LEAVING and world.rules.recovery_scans_free:
        return ScanQueue(found, FREE_QUEUE, 0)
    if state == TAKEN and world.rules.taken_items_come_again:
        return SwapWord(found, ORPHANED)
    return strayed(world, found)


def strayed(world: World, found: Found) -> Step:
    """The slot has no item: the intent of the producer that was about to put one there is cut first."""
    if not world.configuration.put_once or not world.rules.cut_comes_before_the_swap:
        return SwapWord(found, STRAY)
    if not world.rules.word_is_checked_before_the_cut:
        return put_once.cutting(world, found)
    return CheckWord(found)


class CheckWord(NamedTuple):
    found: Found
    at: str = "recover: is the word still the same?"

    def run(self, world: World, me: int) -> Outcome:
        if world.memory.words[self.found.slot] != self.found.word:
            return world.memory, ScanWords(self.found.claim, self.found.slot)
        return world.memory, put_once.cutting(world, self.found)


class ScanQueue(NamedTuple):
    found: Found
    queue: Name
    place: int
    at: str = "recover: read a cell"

    def run(self, world: World, me: int) -> Outcome:
        queue = world.memory.queue(self.queue)
        if self.place == queue.n:
            return world.memory, strayed(world, self.found)
        cell = queue.cells[self.place]
        if cell.slot != self.found.slot:
            return world.memory, ScanQueue(self.found, self.queue, self.place + 1)
        return world.memory, CompareWithHead(self.found, self.queue, cell.cycle * queue.n + self.place)


class CompareWithHead(NamedTuple):
    found: Found
    queue: Name
    position: int
    at: str = "recover: has head passed that cell?"

    def run(self, world: World, me: int) -> Outcome:
        queue = world.memory.queue(self.queue)
        if self.position >= queue.head or not world.rules.passed_cells_do_not_count:
            return world.memory, SwapWord(self.found, QUEUED if self.queue == USED_QUEUE else FREE)
        return world.memory, ScanQueue(self.found, self.queue, self.position % queue.n + 1)


class SwapWord(NamedTuple):
    found: Found
    state: str
    at: str = "recover: compare-and-swap the word of the dead"

    def run(self, world: World, me: int) -> Outcome:
        claim, slot, word = self.found
        memory = world.memory
        if not world.rules.recovery_compares:
            word = memory.words[slot]
        swapped = world.swapped(slot, word, self.state)
        then: Step = ScanWords(claim, slot)
        if world.configuration.put_once and self.state == STRAY and not world.rules.cut_comes_before_the_swap:
            then = put_once.cutting(world, self.found)
        return (memory if swapped is None else swapped[0]), then


class Gather(NamedTuple):
    claim: queue_claim.Claim
    slot: int
    at: str = "recover: search for a stray"

    def run(self, world: World, me: int) -> Outcome:
        if self.slot == world.configuration.slots:
            return world.memory, participants.after_recovery(self.claim)
        word = world.memory.words[self.slot]
        if word.state != STRAY:
            return world.memory, Gather(self.claim, self.slot + 1)
        return world.memory, HoldStray(self.claim, self.slot, word)


class HoldStray(NamedTuple):
    claim: queue_claim.Claim
    slot: int
    word: Word
    at: str = "recover: compare-and-swap the stray's word"

    def run(self, world: World, me: int) -> Outcome:
        then = Gather(self.claim, self.slot + 1)
        swapped = world.swapped(self.slot, self.word, HELD, me)
        if swapped is None:
            return world.memory, then
        return swapped[0], participants.Leave(self.slot, swapped[1], participants.NO_ITEM, then)
