"""Free what no reader needs: scan the places, then free the oldest chunks one by one."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from models.events.log.memory import EPHEMERAL, NONE, OPEN_END, Memory, ReaderLine
from models.events.log.world import Continuation, Outcome, Step, World, may_be_released, needs_cleared, under_lock


class AfterScan(Protocol):
    def scanned(self, world: World, memory: Memory, me: int, least: int, slowest: int | None) -> Step: ...


def begin_scan(world: World, memory: Memory, me: int, then: AfterScan) -> Step:
    return _scan_from(world, memory, me, ScanPlaces(0, memory.start.position, None, then))


def _scan_from(world: World, memory: Memory, me: int, scan: ScanPlaces) -> Step:
    for line in range(scan.line, len(memory.readers)):
        if memory.readers[line].kind != NONE:
            return scan._replace(line=line)
    least = scan.least if world.rules.places_hold_chunks else memory.end.position
    return scan.then.scanned(world, memory, me, least, scan.slowest)


@under_lock
class ScanPlaces(NamedTuple):
    line: int
    least: int
    slowest: int | None
    then: AfterScan
    at: str = "free: read a reader's place"

    def run(self, world: World, me: int) -> Outcome:
        memory, reader = world.memory, world.memory.readers[self.line]
        scan = self._replace(line=self.line + 1)
        if not reader.is_dropped and (self.slowest is None or reader.place < self.least):
            scan = scan._replace(least=reader.place, slowest=self.line)
        return memory, _scan_from(world, memory, me, scan)


class Reclaim(NamedTuple):
    then: Continuation
    at: str = "reclaim"

    def follow(self, world: World, memory: Memory, me: int) -> Step:
        return begin_scan(world, memory, me, self)

    def scanned(self, world: World, memory: Memory, me: int, least: int, slowest: int | None) -> Step:
        return FreeBefore(least, self.then).follow(world, memory, me)


class FreeBefore(NamedTuple):
    position: int
    then: Continuation
    at: str = "free before"

    def follow(self, world: World, memory: Memory, me: int) -> Step:
        if memory.head < memory.made and memory.chunk(memory.head).end <= self.position:
            return free_oldest(world, memory, self)
        return self.then.follow(world, memory, me)


def free_oldest(world: World, memory: Memory, then: Continuation) -> Step:
    number = memory.head
    return FreeHead(number, then) if world.rules.head_moved_before_free else FreeGive(number, then)


@under_lock
class FreeHead(NamedTuple):
    number: int
    then: Continuation
    at: str = "free: store head_chunk"

    def run(self, world: World, me: int) -> Outcome:
        memory = world.memory._replace(head=self.number + 1)
        if world.rules.head_moved_before_free:
            return memory, FreeGive(self.number, self.then)
        return memory, FreeCount(self.then)


@under_lock
class FreeGive(NamedTuple):
    """The flag and the memory of a block, as one step: only a repair could tell, and it reads neither."""

    number: int
    then: Continuation
    at: str = "free: give the block back"

    def run(self, world: World, me: int) -> Outcome:
        memory = world.memory.given(world.memory.chunk(self.number).block)
        if world.rules.head_moved_before_free:
            return memory, FreeCount(self.then)
        return memory, FreeHead(self.number, self.then)


@under_lock
class FreeCount(NamedTuple):
    then: Continuation
    at: str = "free: store used_bytes"

    def run(self, world: World, me: int) -> Outcome:
        memory = world.memory._replace(used=world.memory.used - 1)
        return memory, self.then.follow(world, memory, me)


def end_open_chunk(world: World, memory: Memory, me: int, position: int, then: Continuation) -> Step:
    if memory.has_open_chunk():
        return EndOpenChunk(position, then)
    return then.follow(world, memory, me)


@under_lock
class EndOpenChunk(NamedTuple):
    position: int
    then: Continuation
    at: str = "chunk: end the open one"

    def run(self, world: World, me: int) -> Outcome:
        memory, number = world.memory, world.memory.made - 1
        assert memory.chunk(number).end == OPEN_END
        memory = memory.with_chunk(number, memory.chunk(number)._replace(end=self.position))
        return memory, self.then.follow(world, memory, me)


class ReleaseDeadReaders(NamedTuple):
    """Goes through the lines of the readers. Goes on with `then` if it released one, else with `nothing`."""

    then: Continuation
    nothing: Continuation
    next: int = 0
    at: str = "release dead readers"

    def follow(self, world: World, memory: Memory, me: int) -> Step:
        for index in range(self.next, len(memory.readers)):
            if may_be_released(world, memory, memory.readers[index]):
                return ReleaseReader(self._replace(next=index))
        return self.nothing.follow(world, memory, me)


@under_lock
class ReleaseReader(NamedTuple):
    """Checks that no process holds the line and reads its place again: the reader may have committed and died since."""

    scan: ReleaseDeadReaders
    at: str = "readers: release one whose process is dead"

    def run(self, world: World, me: int) -> Outcome:
        memory, scan = world.memory, self.scan
        line = memory.readers[scan.next]
        if line.holder is None and self._holds_back(world, line):
            dead = line._replace(kind=NONE) if line.kind == EPHEMERAL else line._replace(place=memory.start.position)
            memory = memory.with_reader(scan.next, dead)
            scan = scan._replace(nothing=scan.then)
        return memory, scan._replace(next=scan.next + 1).follow(world, memory, me)

    def _holds_back(self, world: World, line: ReaderLine) -> bool:
        is_read_again = world.rules.place_of_the_dead_is_read_again
        return line.kind == EPHEMERAL or not is_read_again or needs_cleared(world.memory, line)
