"""Repair: what the holder that died left half done is finished or undone."""

from __future__ import annotations

from typing import NamedTuple

from models.core.participant import PromiseBroken
from models.events.log.memory import OPEN_END, Memory, Word
from models.events.log.world import CORRUPT, Continuation, Outcome, Step, World, under_lock


def begin_repair(world: World, memory: Memory, me: int, then: Continuation) -> Step:
    if world.rules.repair_finishes_clear and memory.start.epoch != memory.end.epoch:
        return RepairClear(then)
    return _cut(world, memory, then)


@under_lock
class RepairClear(NamedTuple):
    then: Continuation
    at: str = "repair: store end with the epoch of start"

    def run(self, world: World, me: int) -> Outcome:
        memory = world.memory
        memory = memory._replace(end=Word(memory.start.epoch, memory.end.position))
        return memory, _cut(world, memory, self.then)


def _cut(world: World, memory: Memory, then: Continuation) -> Step:
    """Chunks that were made or ended for items that were never published go, or are open again.

    An empty one goes too: then a reader that has finished a chunk finds its next item in the next.
    """
    kept = _kept_until_end(world, memory)
    if memory.head < kept:
        end = memory.chunk(kept - 1).end
        if end != OPEN_END and end > memory.end.position and world.rules.repair_cuts_chunks_to_end:
            return RepairOpen(kept, then)
    if kept < memory.made:
        return RepairUnmake(kept, then)
    return RepairForget(then) if world.rules.repair_forgets_blocks else RepairClaim(then)


def _kept_until_end(world: World, memory: Memory) -> int:
    """The number after the last chunk that holds something before `end`."""
    rules, end, kept = world.rules, memory.end.position, memory.made
    while memory.head < kept:
        first = memory.chunk(kept - 1).first
        is_beyond = first > end and rules.repair_cuts_chunks_to_end
        is_empty = first == end and rules.repair_unmakes_empty_chunk
        if not is_beyond and not is_empty:
            break
        kept -= 1
    return kept


@under_lock
class RepairOpen(NamedTuple):
    kept: int
    then: Continuation
    at: str = "repair: open the last chunk again"

    def run(self, world: World, me: int) -> Outcome:
        memory, number = world.memory, self.kept - 1
        memory = memory.with_chunk(number, memory.chunk(number)._replace(end=OPEN_END))
        return memory, _cut(world, memory, self.then)


@under_lock
class RepairUnmake(NamedTuple):
    kept: int
    then: Continuation
    at: str = "repair: lower chunks_made"

    def run(self, world: World, me: int) -> Outcome:
        memory = world.memory._replace(made=self.kept)
        return memory, _cut(world, memory, self.then)


@under_lock
class RepairForget(NamedTuple):
    then: Continuation
    at: str = "repair: forget the blocks"

    def run(self, world: World, me: int) -> Outcome:
        return world.memory._replace(blocks=0), RepairClaim(self.then)


@under_lock
class RepairClaim(NamedTuple):
    then: Continuation
    at: str = "repair: claim the blocks of kept chunks"

    def run(self, world: World, me: int) -> Outcome:
        memory, expected = world.memory, None
        for number in range(memory.head, memory.made):
            line = memory.chunk(number)
            if expected is not None and line.first != expected:
                raise PromiseBroken(CORRUPT, f"chunk {number} begins at {line.first}, not {expected}")
            expected = line.end
        blocks = memory.blocks | memory.blocks_of_kept_chunks()
        kept = memory.made - memory.head
        if blocks.bit_count() < kept:
            raise PromiseBroken(CORRUPT, f"two of {kept} chunks have the same block")
        return memory._replace(blocks=blocks), RepairCount(self.then)


@under_lock
class RepairCount(NamedTuple):
    then: Continuation
    at: str = "repair: store used_bytes"

    def run(self, world: World, me: int) -> Outcome:
        memory = world.memory
        return memory._replace(used=memory.made - memory.head), RepairDropRest(self.then)


@under_lock
class RepairDropRest(NamedTuple):
    then: Continuation
    at: str = "repair: give back the memory of free blocks"

    def run(self, world: World, me: int) -> Outcome:
        memory = world.memory.wiped(~world.memory.blocks)
        return memory, self.then.follow(world, memory, me)
