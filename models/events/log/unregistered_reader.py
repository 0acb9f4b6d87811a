"""A read by position, by a reader that is not registered."""

from __future__ import annotations

from typing import NamedTuple

from models.core.participant import FINISHED, PromiseBroken
from models.events.log.chunk_search import FindHead, SeenChunk
from models.events.log.world import TORN, Outcome, Step, World


class ReadPosition(NamedTuple):
    """The earliest position is a hint only, so it may as well be read in one step."""

    at: str = "position: read end and the earliest position"

    def run(self, world: World, me: int) -> Outcome:
        memory = world.memory
        earliest = memory.earliest()
        if earliest < memory.end.position:
            return memory, FindHead(PositionSeek(earliest))
        return memory, FINISHED if world.writers_are_done() else self


class PositionSeek(NamedTuple):
    position: int
    at: str = "position seek"

    def found(self, world: World, me: int, chunk: SeenChunk) -> Step:
        return PositionCopy(self.position, chunk)

    def missing(self, world: World, me: int) -> Step:
        return FINISHED


class PositionCopy(NamedTuple):
    position: int
    chunk: SeenChunk
    at: str = "position: copy the item"

    def run(self, world: World, me: int) -> Outcome:
        item = world.memory.arena[self.chunk.block][self.position - self.chunk.first]
        is_torn = item != world.memory.log[self.position]
        return world.memory, PositionValidate(self.position, self.chunk.number, is_torn)


class PositionValidate(NamedTuple):
    position: int
    number: int
    is_torn: bool
    at: str = "position: is the chunk still kept?"

    def run(self, world: World, me: int) -> Outcome:
        is_kept = world.memory.head <= self.number or not world.rules.position_read_is_validated
        if is_kept and self.is_torn:
            raise PromiseBroken(TORN, f"position {self.position} was read from another chunk's block")
        return world.memory, FINISHED
