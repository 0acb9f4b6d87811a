"""What writers do under the lock: put items, published by one store of `end`, and clear."""

from __future__ import annotations

from typing import NamedTuple

from models.core.participant import FINISHED, PromiseBroken
from models.events.log.chunks import Wanted, has_room, make_chunk
from models.events.log.lock import Enter, Leave
from models.events.log.memory import ChunkLine, Memory, Word
from models.events.log.reclaim import Reclaim, ReleaseDeadReaders
from models.events.log.rules import CLEAR, OPERATIONS
from models.events.log.world import CORRUPT, Outcome, Step, World, has_dead_reader, least_place, under_lock


class Job(NamedTuple):
    """Which operation of whose program, and how many of its items are in."""

    author: int
    operation: int = 0
    done: int = 0
    at: str = "job"

    def follow(self, world: World, memory: Memory, me: int) -> Step:
        return self.first_step(world)

    def first_step(self, world: World) -> Step:
        program = world.configuration.programs[self.author]
        if self.operation == len(program):
            return FINISHED
        name = program[self.operation]
        puts = OPERATIONS[name][0] > 0
        return Enter(BeginPut(self)) if puts else Enter(BeginClear(self, name))

    def length(self, world: World) -> int:
        return OPERATIONS[world.configuration.programs[self.author][self.operation]][1]

    def fits(self, world: World, line: ChunkLine, at: int) -> bool:
        length = self.length(world)
        if length:
            return line.length >= length and at == 0
        return at < world.configuration.chunk_items

    def items_left(self, world: World) -> int:
        return OPERATIONS[world.configuration.programs[self.author][self.operation]][0] - self.done

    def after(self, world: World, items: int) -> Job:
        if items < self.items_left(world):
            return self._replace(done=self.done + items)
        return Job(self.author, self.operation + 1)


class BeginPut(NamedTuple):
    job: Job
    at: str = "begin put"

    def follow(self, world: World, memory: Memory, me: int) -> Step:
        batch = Batch(self.job, memory.end.position, 0, memory.made)
        return batch.follow(world, memory, me)


class Batch(NamedTuple):
    """What is written and not yet published, up to `position`."""

    job: Job
    position: int
    written: int
    made_before: int
    at: str = "batch"

    def follow(self, world: World, memory: Memory, me: int) -> Step:
        if self.written == self.job.items_left(world):
            return Publish(self)
        if memory.has_open_chunk():
            line = memory.chunk(memory.made - 1)
            at = self.position - line.first
            if not 0 <= at <= world.configuration.chunk_items:
                message = f"the open chunk does not hold position {self.position}"
                raise PromiseBroken(CORRUPT, message)
            if self.job.fits(world, line, at):
                return WriteItem(self) if world.rules.items_before_end else PublishEarly(self)
        wanted = Wanted(self.position, self.job.length(world))
        return make_chunk(world, memory, me, wanted, self)

    def full(self, world: World, memory: Memory, me: int) -> Step:
        if self.written:
            return Publish(self)
        if has_dead_reader(world, memory):
            return ReleaseDeadReaders(BeginPut(self.job), BeginPut(self.job)).follow(world, memory, me)
        return Leave(WaitForRoom(self.job))

    def items(self, world: World) -> tuple[int, ...]:
        author, operation, done, _ = self.job
        numbers = range(done, done + self.written)
        return tuple(world.configuration.item(author, operation, number) for number in numbers)


@under_lock
class WriteItem(NamedTuple):
    batch: Batch
    at: str = "put: write an item"

    def run(self, world: World, me: int) -> Outcome:
        batch = self.batch._replace(position=self.batch.position + 1, written=self.batch.written + 1)
        line = world.memory.chunk(world.memory.made - 1)
        memory = world.memory.with_item(
            line.block,
            self.batch.position - line.first,
            batch.items(world)[-1],
        )
        return memory, batch.follow(world, memory, me)


@under_lock
class PublishEarly(NamedTuple):
    batch: Batch
    at: str = "put: store end before the item"

    def run(self, world: World, me: int) -> Outcome:
        batch = self.batch._replace(written=self.batch.written + 1)
        memory = world.memory.published(batch.position + 1, batch.items(world)[-1:])
        return memory, WriteItem(self.batch)


@under_lock
class Publish(NamedTuple):
    batch: Batch
    at: str = "put: store end"

    def run(self, world: World, me: int) -> Outcome:
        memory, batch = world.memory, self.batch
        if memory.end.position < batch.position:
            memory = memory.published(batch.position, batch.items(world))
        leave = Leave(batch.job.after(world, batch.written))
        if memory.made == batch.made_before:
            return memory, leave
        return memory, ReleaseDeadReaders(Reclaim(Leaving(leave)), Leaving(leave)).follow(world, memory, me)


class Leaving(NamedTuple):
    leave: Leave
    at: str = "leaving"

    def follow(self, world: World, memory: Memory, me: int) -> Step:
        return self.leave


class WaitForRoom(NamedTuple):
    """Sleeping and waking are not modelled: it wakes when there is room, or could be."""

    job: Job
    at: str = "put: wait for room"

    def follow(self, world: World, memory: Memory, me: int) -> Step:
        return self

    def run(self, world: World, me: int) -> Outcome:
        return (world.memory, Enter(BeginPut(self.job))) if self._may_be_room(world) else None

    def _may_be_room(self, world: World) -> bool:
        memory = world.memory
        if has_dead_reader(world, memory) or has_room(world, memory):
            return True
        if memory.has_open_chunk():
            line = memory.chunk(memory.made - 1)
            if self.job.fits(world, line, memory.end.position - line.first):
                return True
        least, _ = least_place(memory)
        return memory.chunk(memory.head).end <= least or least >= memory.end.position


class BeginClear(NamedTuple):
    """`k` keeps the last item, if there are more."""

    job: Job
    name: str
    at: str = "begin clear"

    def follow(self, world: World, memory: Memory, me: int) -> Step:
        position = memory.end.position
        if self.name != CLEAR:
            if position - memory.earliest() <= 1:
                return AfterClear(self.job).follow(world, memory, me)
            position -= 1
        start = Word(memory.end.epoch + 1, position)
        return StoreStart(self.job, start) if world.rules.start_before_end else StoreEnd(self.job, start)


@under_lock
class StoreStart(NamedTuple):
    job: Job
    start: Word
    at: str = "clear: store start"

    def run(self, world: World, me: int) -> Outcome:
        memory = world.memory._replace(start=self.start)
        if world.rules.start_before_end:
            return memory, StoreEnd(self.job, self.start)
        return memory, _cleared(world, memory, me, self.job)


@under_lock
class StoreEnd(NamedTuple):
    job: Job
    start: Word
    at: str = "clear: store end with the new epoch"

    def run(self, world: World, me: int) -> Outcome:
        end = world.memory.end._replace(epoch=self.start.epoch)
        memory = world.memory._replace(end=end)
        if not world.rules.start_before_end:
            return memory, StoreStart(self.job, self.start)
        return memory, _cleared(world, memory, me, self.job)


def _cleared(world: World, memory: Memory, me: int, job: Job) -> Step:
    return Reclaim(AfterClear(job)).follow(world, memory, me)


class AfterClear(NamedTuple):
    job: Job
    at: str = "after clear"

    def follow(self, world: World, memory: Memory, me: int) -> Step:
        leave = Leave(Job(self.job.author, self.job.operation + 1))
        return ReleaseDeadReaders(Reclaim(Leaving(leave)), Leaving(leave)).follow(world, memory, me)
