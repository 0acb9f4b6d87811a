"""Make a chunk: reclaim, find room, take a block, describe the chunk, end the one before, count it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from models.events.log.memory import OPEN_END, ChunkLine, Memory
from models.events.log.reclaim import (
    FreeBefore,
    Reclaim,
    begin_scan,
    end_open_chunk,
    free_oldest,
)
from models.events.log.world import Continuation, Outcome, Step, World, under_lock


class AfterChunk(Continuation, Protocol):
    """`follow` if the chunk was made, `full` if a reader needs all that there is."""

    def full(self, world: World, memory: Memory, me: int) -> Step: ...


class Wanted(NamedTuple):
    """The chunk to make: where it begins, and how long an item it must hold."""

    position: int
    length: int


def make_chunk(world: World, memory: Memory, me: int, wanted: Wanted, then: AfterChunk) -> Step:
    return Reclaim(FindRoom(wanted, then)).follow(world, memory, me)


def has_room(world: World, memory: Memory) -> bool:
    size = world.configuration
    spare = 1 if world.rules.one_line_stays_spare else 0
    has_line = memory.made - memory.head < size.chunk_lines - spare
    has_block = memory.blocks != (1 << size.blocks) - 1
    return has_line and has_block and memory.used < size.blocks


class FindRoom(NamedTuple):
    wanted: Wanted
    then: AfterChunk
    at: str = "find room"

    def follow(self, world: World, memory: Memory, me: int) -> Step:
        if has_room(world, memory):
            return TakeBlock(self.wanted, self.then)
        if memory.made == memory.head:
            return self.then.full(world, memory, me)
        return begin_scan(world, memory, me, self)

    def scanned(self, world: World, memory: Memory, me: int, least: int, slowest: int | None) -> Step:
        """Make room, if the readers or the queue's policy allow it."""
        position = self.wanted.position
        is_all_read = slowest is not None or memory.start.position >= position
        if least >= position and is_all_read:
            then = FreeBefore(position, FindRoomIfFreed(memory.head, self))
            return end_open_chunk(world, memory, me, position, then)
        if not world.configuration.may_drop:
            return self.then.full(world, memory, me)
        if slowest is None:
            return self._free_one(world, memory, me, self)
        if world.rules.dropped_before_freed:
            return DropReader(slowest, Reclaim(self))
        return self._free_one(world, memory, me, LateDrop(slowest, self))

    def _free_one(self, world: World, memory: Memory, me: int, then: Continuation) -> Step:
        freeing = FreeOne(then)
        if memory.made - memory.head == 1:
            return end_open_chunk(world, memory, me, self.wanted.position, freeing)
        return freeing.follow(world, memory, me)


class FindRoomIfFreed(NamedTuple):
    head_before: int
    again: FindRoom
    at: str = "find room if something was freed"

    def follow(self, world: World, memory: Memory, me: int) -> Step:
        if memory.head == self.head_before:
            return self.again.then.full(world, memory, me)
        return self.again.follow(world, memory, me)


class FreeOne(NamedTuple):
    then: Continuation
    at: str = "free one"

    def follow(self, world: World, memory: Memory, me: int) -> Step:
        return free_oldest(world, memory, self.then)


class LateDrop(NamedTuple):
    slowest: int
    then: FindRoom
    at: str = "drop late"

    def follow(self, world: World, memory: Memory, me: int) -> Step:
        return DropReader(self.slowest, self.then)


@under_lock
class DropReader(NamedTuple):
    """The load and the compare-and-swap are one step: if the reader moved in between, it is not dropped.

    The writer then reads it again, as it does here if the reader moved before.
    """

    line: int
    then: Continuation
    at: str = "readers: drop the slowest"

    def run(self, world: World, me: int) -> Outcome:
        reader = world.memory.readers[self.line]
        memory = world.memory.with_reader(self.line, reader._replace(is_dropped=True))
        return memory, self.then.follow(world, memory, me)


@under_lock
class TakeBlock(NamedTuple):
    wanted: Wanted
    then: AfterChunk
    at: str = "chunk: take a block"

    def run(self, world: World, me: int) -> Outcome:
        memory = world.memory
        block = next(number for number in range(len(memory.arena)) if not memory.blocks >> number & 1)
        memory = memory._replace(blocks=memory.blocks | 1 << block)
        return memory, ChunkStep(_phases(world)[0], self.wanted, block, memory.made, self.then)


DESCRIBE, NAME_BLOCK, END_BEFORE, STORE_MADE, COUNT = (
    "store its positions",
    "store its block",
    "end the one before",
    "store chunks_made",
    "store used_bytes",
)


def _phases(world: World) -> tuple[str, ...]:
    if not world.rules.described_before_made:
        return STORE_MADE, DESCRIBE, NAME_BLOCK, END_BEFORE, COUNT
    return DESCRIBE, NAME_BLOCK, END_BEFORE, STORE_MADE, COUNT


@under_lock
class ChunkStep(NamedTuple):
    phase: str
    wanted: Wanted
    block: int
    number: int
    then: AfterChunk
    at: str = "chunk:"

    def run(self, world: World, me: int) -> Outcome:
        memory = self._stored(world.memory)
        phases = _phases(world)
        following = phases.index(self.phase) + 1
        if following == len(phases):
            return memory, self.then.follow(world, memory, me)
        return memory, self._replace(phase=phases[following])

    def _stored(self, memory: Memory) -> Memory:
        line = memory.chunk(self.number)
        position, length = self.wanted
        if self.phase == DESCRIBE:
            return memory.with_chunk(self.number, ChunkLine(position, OPEN_END, line.block, length))
        if self.phase == NAME_BLOCK:
            return memory.with_chunk(self.number, line._replace(block=self.block))
        if self.phase == STORE_MADE:
            return memory._replace(made=self.number + 1)
        if self.phase == COUNT:
            return memory._replace(used=memory.used + 1)
        before = memory.chunk(self.number - 1)
        if self.number == memory.head or before.end != OPEN_END:
            return memory
        return memory.with_chunk(self.number - 1, before._replace(end=position))
