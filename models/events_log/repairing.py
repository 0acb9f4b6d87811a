"""Repair: what the holder that died left half done is finished or undone."""

from __future__ import annotations

from typing import NamedTuple

from models.events_log.memory import OPEN_END, Memory, Word
from models.events_log.world import (
    CORRUPT,
    Continuation,
    Outcome,
    PromiseBroken,
    Step,
    World,
    under_lock,
)


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
    """Chunks that were made or ended for items that were never published.

    An empty one too: a chunk is left by its line, and C2 counts on one line for each position.
    """
    if world.rules.repair_cuts_chunks_to_end and memory.head < memory.made:
        last, end = memory.chunk(memory.made - 1), memory.end.position
        is_empty = last.first == end and world.rules.repair_unmakes_empty_chunk
        if last.first > end or is_empty:
            return RepairUnmake(then)
        if last.end != OPEN_END and last.end > end:
            return RepairEnd(then)
    return RepairForget(then) if world.rules.repair_forgets_blocks else RepairClaim(then)


@under_lock
class RepairUnmake(NamedTuple):
    then: Continuation
    at: str = "repair: lower chunks_made"

    def run(self, world: World, me: int) -> Outcome:
        memory = world.memory._replace(made=world.memory.made - 1)
        return memory, _cut(world, memory, self.then)


@under_lock
class RepairEnd(NamedTuple):
    then: Continuation
    at: str = "repair: lower the end of the last chunk"

    def run(self, world: World, me: int) -> Outcome:
        memory, number = world.memory, world.memory.made - 1
        memory = memory.with_chunk(number, memory.chunk(number)._replace(end=memory.end.position))
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
