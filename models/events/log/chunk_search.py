"""Find the chunk of a position: a bisection of the directory, without the lock."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from models.events.log.world import Outcome, Step, World


class SeenChunk(NamedTuple):
    """A reader's own copy of a chunk's line."""

    number: int
    first: int
    block: int


class Seeker(Protocol):
    """The reader that searches for `position`."""

    @property
    def position(self) -> int: ...

    def found(self, world: World, me: int, chunk: SeenChunk) -> Step: ...

    def missing(self, world: World, me: int) -> Step: ...


class FindHead(NamedTuple):
    seeker: Seeker
    at: str = "find: read head_chunk"

    def run(self, world: World, me: int) -> Outcome:
        return world.memory, FindMade(self.seeker, world.memory.head)


class FindMade(NamedTuple):
    seeker: Seeker
    low: int
    at: str = "find: read chunks_made"

    def run(self, world: World, me: int) -> Outcome:
        memory, high = world.memory, world.memory.made
        if self.low >= high or high - self.low >= world.configuration.chunk_lines:
            return memory, FindCheck(self.seeker, self.low, None)
        return memory, _narrow(self.seeker, self.low, self.low, high)


def _narrow(seeker: Seeker, head: int, low: int, high: int) -> Step:
    return FindLoad(seeker, head, low) if high - low == 1 else FindBisect(seeker, head, low, high)


class FindBisect(NamedTuple):
    seeker: Seeker
    head: int
    low: int
    high: int
    at: str = "find: read first_position of the middle"

    def run(self, world: World, me: int) -> Outcome:
        middle = self.low + (self.high - self.low) // 2
        low, high = self.low, middle
        if world.memory.chunk(middle).first <= self.seeker.position:
            low, high = middle, self.high
        return world.memory, _narrow(self.seeker, self.head, low, high)


class FindLoad(NamedTuple):
    seeker: Seeker
    head: int
    number: int
    at: str = "find: load first_position"

    def run(self, world: World, me: int) -> Outcome:
        first = world.memory.chunk(self.number).first
        return world.memory, FindBlock(self.seeker, self.head, self.number, first)


class FindBlock(NamedTuple):
    seeker: Seeker
    head: int
    number: int
    first: int
    at: str = "find: load the block"

    def run(self, world: World, me: int) -> Outcome:
        chunk = SeenChunk(self.number, self.first, world.memory.chunk(self.number).block)
        return world.memory, FindEnd(self.seeker, self.head, chunk)


class FindEnd(NamedTuple):
    seeker: Seeker
    head: int
    chunk: SeenChunk
    at: str = "find: load end_position"

    def run(self, world: World, me: int) -> Outcome:
        memory, chunk = world.memory, self.chunk
        last = min(memory.chunk(chunk.number).end, chunk.first + world.configuration.chunk_items)
        is_found = chunk.first <= self.seeker.position < last
        return memory, FindCheck(self.seeker, self.head, chunk if is_found else None)


class FindCheck(NamedTuple):
    """Lines of chunks that were freed meanwhile may be others' by now: they lead astray."""

    seeker: Seeker
    head: int
    chunk: SeenChunk | None
    at: str = "find: read head_chunk again"

    def run(self, world: World, me: int) -> Outcome:
        memory, is_repeated = world.memory, world.rules.search_is_repeated
        if self.chunk is not None and (memory.head <= self.chunk.number or not is_repeated):
            return memory, self.seeker.found(world, me, self.chunk)
        if memory.head != self.head and is_repeated:
            return memory, FindHead(self.seeker)
        return memory, self.seeker.missing(world, me)
