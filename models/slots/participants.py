"""What a producer and a consumer do with a slot that they hold."""

from __future__ import annotations

from typing import NamedTuple

from models.core.participant import FINISHED, PromiseBroken
from models.slots import put_once, queue_claim, queue_push
from models.slots.memory import (
    ARRIVING,
    FREE,
    FREE_QUEUE,
    HELD,
    LEAVING,
    NO_BYTES,
    NOBODY,
    ORPHANED,
    QUEUED,
    TAKEN,
    USED_QUEUE,
    Word,
)
from models.slots.world import LOST, SHARED, Outcome, Step, World, ended, require_mine

NO_ITEM = -1


def producing(item: int) -> Step:
    return queue_claim.ReadHead(queue_claim.Claim(FREE_QUEUE, HELD, item))


def consuming() -> Step:
    return queue_claim.ReadHead(queue_claim.Claim(USED_QUEUE, TAKEN, NO_ITEM))


def again(claim: queue_claim.Claim) -> Step:
    """The same from its beginning."""
    if claim.item == put_once.SETTLING:
        return put_once.ReadProgress()
    return consuming() if claim.item == NO_ITEM else producing(claim.item)


def claimed(claim: queue_claim.Claim, slot: int, word: Word) -> Step:
    return Read(slot, word) if claim.state == TAKEN else Write(claim.item, slot, word)


class Write(NamedTuple):
    item: int
    slot: int
    word: Word
    at: str = "put: write the item"

    def run(self, world: World, me: int) -> Outcome:
        require_mine(world, self.slot, self.word)
        then: Step = Announce(self.item, self.slot, self.word)
        if world.configuration.put_once:
            then = put_once.before_publish(world, self.item, self.slot, self.word)
        return world.memory.with_payload(self.slot, self.item), then


class Announce(NamedTuple):
    item: int
    slot: int
    word: Word
    at: str = "put: the word to arriving"

    def run(self, world: World, me: int) -> Outcome:
        require_mine(world, self.slot, self.word)
        swapped = world.swapped(self.slot, self.word, ARRIVING, me)
        assert swapped is not None
        memory, word = swapped
        size = world.configuration
        is_last = self.item % size.items == size.items - 1
        then: Step = FINISHED if is_last else producing(self.item + 1)
        if size.put_once:
            then = put_once.after_publish(world)
        return memory, queue_push.ReadTail(queue_push.Push(USED_QUEUE, self.slot, word, self.item, then))


class Read(NamedTuple):
    slot: int
    word: Word
    at: str = "get: read the item"

    def run(self, world: World, me: int) -> Outcome:
        require_mine(world, self.slot, self.word)
        item = world.memory.payloads[self.slot]
        if item == NO_BYTES:
            raise PromiseBroken(SHARED, f"slot {self.slot} was read when it held nothing")
        world.check_deliveries(self.slot, self.word)
        return world.memory, Leave(self.slot, self.word, item, consuming())


class Leave(NamedTuple):
    """Of a get it ends the item."""

    slot: int
    word: Word
    item: int
    then: Step
    at: str = "leave: the word to leaving"

    def run(self, world: World, me: int) -> Outcome:
        require_mine(world, self.slot, self.word)
        swapped = world.swapped(self.slot, self.word, LEAVING, me)
        assert swapped is not None
        memory, word = swapped
        if self.item != NO_ITEM:
            memory = ended(memory, self.item)
        memory = memory.with_payload(self.slot, NO_BYTES)
        return memory, queue_push.ReadTail(queue_push.Push(FREE_QUEUE, self.slot, word, NO_ITEM, self.then))


class Settle(NamedTuple):
    """The slot is in the queue, so its word needs no owner any more. A claim that was faster has changed the word."""

    push: queue_push.Push
    at: str = "push: the word without an owner"

    def run(self, world: World, me: int) -> Outcome:
        is_put = self.push.queue == USED_QUEUE
        swapped = world.swapped(self.push.slot, self.push.word, QUEUED if is_put else FREE, NOBODY)
        memory = world.memory if swapped is None else swapped[0]
        if is_put and not world.rules.arrival_is_noted_first:
            memory = memory.with_arrival(self.push.slot, self.push.word.generation)
        return memory, self.push.then


class ScanForOrphan(NamedTuple):
    slot: int
    at: str = "get: search for an item of the dead"

    def run(self, world: World, me: int) -> Outcome:
        if self.slot == world.configuration.slots:
            return world.memory, finished_or_not(world)
        word = world.memory.words[self.slot]
        if word.state == ORPHANED:
            return world.memory, ClaimOrphan(self.slot, word)
        return world.memory, ScanForOrphan(self.slot + 1)


class ClaimOrphan(NamedTuple):
    slot: int
    word: Word
    at: str = "get: compare-and-swap the orphan's word"

    def run(self, world: World, me: int) -> Outcome:
        swapped = world.swapped(self.slot, self.word, TAKEN, me)
        if swapped is None:
            return world.memory, consuming()
        return swapped[0], Read(self.slot, swapped[1])


def finished_or_not(world: World) -> Step:
    """A consumer leaves when nothing can come any more; then everything that was put must have come."""
    if not world.producers_are_done() or not world.is_quiet():
        return consuming()
    if world.configuration.put_once:
        put_once.check_complete(world)
    missing = world.memory.published & ~world.memory.ended
    if missing:
        raise PromiseBroken(LOST, f"items {missing:b} were put and never came")
    return FINISHED


def after_recovery(claim: queue_claim.Claim) -> Step:
    return ScanForOrphan(0) if claim.item == NO_ITEM else again(claim)
