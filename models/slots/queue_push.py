"""Push a slot that one has into a queue: one compare-and-swap of the cell, then the tail."""

from __future__ import annotations

from typing import NamedTuple

from models.core.participant import PromiseBroken
from models.slots import participants
from models.slots.memory import USED_QUEUE, Name, Word
from models.slots.world import CORRUPT, DOUBLED, Outcome, Step, World


class Push(NamedTuple):
    """Into which queue, which slot, and what comes afterwards."""

    queue: Name
    slot: int
    word: Word
    item: int
    """Of a publish."""
    then: Step


class ReadTail(NamedTuple):
    push: Push
    at: str = "push: read tail"

    def run(self, world: World, me: int) -> Outcome:
        return world.memory, ReadCell(self.push, world.memory.queue(self.push.queue).tail)


class ReadCell(NamedTuple):
    push: Push
    tail: int
    at: str = "push: read the cell at tail"

    def run(self, world: World, me: int) -> Outcome:
        queue = world.memory.queue(self.push.queue)
        behind = queue.cycles_behind(self.tail)
        if behind == 1:
            return world.memory, SwapCell(self.push, self.tail)
        if behind == 0:
            if not world.rules.tail_is_helped:
                return world.memory, ReadTail(self.push)
            return world.memory, MoveTail(self.push, self.tail, False)
        if queue.tail == self.tail:
            raise PromiseBroken(CORRUPT, f"the cell at tail {self.tail} is {behind} cycles behind")
        return world.memory, ReadTail(self.push)


class SwapCell(NamedTuple):
    push: Push
    tail: int
    at: str = "push: compare-and-swap the cell"

    def run(self, world: World, me: int) -> Outcome:
        queue = world.memory.queue(self.push.queue)
        if queue.cycles_behind(self.tail) != 1:
            return world.memory, ReadTail(self.push)
        if self.push.slot in queue.inside():
            raise PromiseBroken(CORRUPT, f"slot {self.push.slot} is in the queue twice")
        memory = world.memory.with_queue(self.push.queue, queue.with_cell(self.tail, self.push.slot))
        if self.push.queue == USED_QUEUE:
            if memory.published >> self.push.item & 1:
                raise PromiseBroken(DOUBLED, f"item {self.push.item} was put twice")
            memory = memory._replace(published=memory.published | 1 << self.push.item)
        return memory, MoveTail(self.push, self.tail, True)


class MoveTail(NamedTuple):
    push: Push
    tail: int
    is_mine: bool
    at: str = "push: compare-and-swap tail"

    def run(self, world: World, me: int) -> Outcome:
        queue = world.memory.queue(self.push.queue)
        memory = world.memory
        if queue.tail == self.tail:
            memory = memory.with_queue(self.push.queue, queue._replace(tail=self.tail + 1))
        if not self.is_mine:
            return memory, ReadTail(self.push)
        return memory, participants.Settle(self.push)
