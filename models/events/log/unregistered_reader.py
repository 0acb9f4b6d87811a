"""A look by position, by somebody who is not registered."""

from __future__ import annotations

from typing import NamedTuple

from models.core.participant import FINISHED, PromiseBroken
from models.events.log.chunk_search import FindHead, SeenChunk
from models.events.log.world import TORN, Outcome, Step, World


class Look(NamedTuple):
    """The earliest position is a hint only, so it may as well be read in one step."""

    at: str = "look: read end and the earliest position"

    def run(self, world: World, me: int) -> Outcome:
        memory = world.memory
        earliest = memory.earliest()
        if earliest < memory.end.position:
            return memory, FindHead(LookSeek(earliest))
        return memory, FINISHED if world.writers_are_done() else self


class LookSeek(NamedTuple):
    position: int
    at: str = "look seek"

    def found(self, world: World, me: int, chunk: SeenChunk) -> Step:
        return LookCopy(self.position, chunk)

    def missing(self, world: World, me: int) -> Step:
        return FINISHED


class LookCopy(NamedTuple):
    position: int
    chunk: SeenChunk
    at: str = "look: copy the item"

    def run(self, world: World, me: int) -> Outcome:
        item = world.memory.arena[self.chunk.block][self.position - self.chunk.first]
        is_torn = item != world.memory.log[self.position]
        return world.memory, LookValidate(self.position, self.chunk.number, is_torn)


class LookValidate(NamedTuple):
    position: int
    number: int
    is_torn: bool
    at: str = "look: is the chunk still kept?"

    def run(self, world: World, me: int) -> Outcome:
        is_kept = world.memory.head <= self.number or not world.rules.look_is_validated
        if is_kept and self.is_torn:
            raise PromiseBroken(TORN, f"position {self.position} was read from another chunk's block")
        return world.memory, FINISHED
