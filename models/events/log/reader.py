"""How a registered reader goes through the log: sessions, runs, chunks crossed, its place moved."""

from __future__ import annotations

from typing import NamedTuple

from models.core.participant import FINISHED, PromiseBroken
from models.events.log.chunk_search import FindHead, SeenChunk
from models.events.log.lock import Enter, Leave
from models.events.log.memory import Memory
from models.events.log.world import CORRUPT, TORN, UNCLEARED, Outcome, Step, World, under_lock


class Cursor(NamedTuple):
    line: int
    is_durable: bool
    position: int
    epoch: int
    chunk: SeenChunk | None = None
    at: str = "cursor"

    def follow(self, world: World, memory: Memory, me: int) -> Step:
        return BeginSession(self)

    def is_dropped(self, world: World) -> bool:
        return world.memory.readers[self.line].is_dropped

    def follows(self, world: World) -> bool:
        return not self.is_durable or not world.rules.durable_place_is_committed


def moved(world: World, cursor: Cursor, position: int) -> Memory:
    """`move_to`: load and compare-and-swap as one step, since only a drop comes in between."""
    line = world.memory.readers[cursor.line]
    return world.memory.with_reader(cursor.line, line._replace(place=max(line.place, position)))


class BeginSession(NamedTuple):
    cursor: Cursor
    at: str = "session: load end"

    def run(self, world: World, me: int) -> Outcome:
        memory, cursor = world.memory, self.cursor
        end, start = memory.end, memory.start
        if end.epoch != cursor.epoch:
            return memory, JumpToStart(cursor._replace(epoch=end.epoch), end.position)
        if start.epoch == end.epoch and cursor.position < start.position:
            message = f"a clear is done, but a reader goes on before it, at {cursor.position}"
            raise PromiseBroken(UNCLEARED, message)
        return memory, _begun(world, cursor, end.position, self)


class JumpToStart(NamedTuple):
    """It may load the start of a later clear, which lies beyond the end of this session."""

    cursor: Cursor
    end: int
    at: str = "session: load start"

    def run(self, world: World, me: int) -> Outcome:
        cursor, target = self.cursor, world.memory.start.position
        if world.rules.jump_stays_before_end:
            target = min(target, self.end)
        if cursor.position < target:
            return world.memory, MoveJumped(cursor._replace(position=target, chunk=None), self.end)
        return world.memory, _begun(world, cursor, self.end, BeginSession(cursor))


class MoveJumped(NamedTuple):
    """No reader needs what was cleared, not even a durable one that has not committed it."""

    cursor: Cursor
    end: int
    at: str = "session: move the place to the start"

    def run(self, world: World, me: int) -> Outcome:
        if self.cursor.is_dropped(world):
            return world.memory, Enter(Rejoin(self.cursor))
        memory = moved(world, self.cursor, self.cursor.position)
        return memory, _begun(world, self.cursor, self.end, BeginSession(self.cursor))


def _begun(world: World, cursor: Cursor, end: int, again: BeginSession) -> Step:
    if cursor.is_dropped(world):
        return Enter(Rejoin(cursor))
    if cursor.position < end:
        return next_run(cursor, end)
    if cursor.position > end:
        raise PromiseBroken(CORRUPT, f"a reader at {cursor.position} found the end at {end}")
    place = world.memory.readers[cursor.line].place
    if place < cursor.position and (cursor.is_durable or world.rules.idle_reader_moves):
        return Settle(cursor)
    is_over = world.writers_are_done() and world.memory.end.position == end
    return FINISHED if is_over else again


class Settle(NamedTuple):
    """An idle reader holds nothing back; a durable one commits what it was given."""

    cursor: Cursor
    at: str = "reader: move the place to the cursor"

    def run(self, world: World, me: int) -> Outcome:
        if self.cursor.is_dropped(world):
            return world.memory, Enter(Rejoin(self.cursor))
        memory = moved(world, self.cursor, self.cursor.position)
        if self.cursor.is_durable:
            memory = memory._replace(committed=self.cursor.position)
        return memory, BeginSession(self.cursor)


class Seek(NamedTuple):
    cursor: Cursor
    end: int
    at: str = "seek"

    @property
    def position(self) -> int:
        return self.cursor.position

    def found(self, world: World, me: int, chunk: SeenChunk) -> Step:
        return CheckChunk(self.cursor._replace(chunk=chunk), self.end, is_crossed=False)

    def missing(self, world: World, me: int) -> Step:
        return _failed(world, self.cursor, f"no chunk was found for position {self.position}")


def _failed(world: World, cursor: Cursor, message: str) -> Step:
    """A dropped reader may find anything; to any other the log contradicts itself."""
    if cursor.is_dropped(world):
        return Enter(Rejoin(cursor))
    raise PromiseBroken(CORRUPT, message)


def next_run(cursor: Cursor, end: int) -> Step:
    if cursor.chunk is None:
        return FindHead(Seek(cursor, end))
    return CheckChunk(cursor, end, is_crossed=False)


class CheckChunk(NamedTuple):
    cursor: Cursor
    end: int
    is_crossed: bool
    at: str = "run: read where the chunk ends"

    def run(self, world: World, me: int) -> Outcome:
        memory, cursor = world.memory, self.cursor
        assert cursor.chunk is not None
        most = cursor.chunk.first + world.configuration.chunk_items
        chunk_end = min(memory.chunk(cursor.chunk.number).end, most)
        if cursor.position == chunk_end:
            return memory, CrossChunk(cursor, self.end)
        if cursor.position > chunk_end:
            return memory, _failed(world, cursor, f"chunk {cursor.chunk} ends before the cursor")
        last = cursor.position + 1 if world.configuration.short_sessions else min(self.end, chunk_end)
        copy = CopyItem(cursor, self.end, cursor.position, last, is_torn=False)
        if not world.rules.place_moves_after_copy and cursor.follows(world):
            return memory, MovePlace(copy, copy.last)
        if self.is_crossed and cursor.follows(world):
            return memory, MovePlace(copy, cursor.position)
        return memory, copy


class CrossChunk(NamedTuple):
    cursor: Cursor
    end: int
    at: str = "run: load first_position of the next chunk"

    def run(self, world: World, me: int) -> Outcome:
        memory, cursor = world.memory, self.cursor
        assert cursor.chunk is not None
        number = cursor.chunk.number + 1
        first = memory.chunk(number).first
        if first != cursor.position:
            return memory, _failed(world, cursor, f"chunk {number} begins at {first}")
        return memory, CrossBlock(cursor, self.end, number)


class CrossBlock(NamedTuple):
    cursor: Cursor
    end: int
    number: int
    at: str = "run: load the block of the next chunk"

    def run(self, world: World, me: int) -> Outcome:
        memory, block = world.memory, world.memory.chunk(self.number).block
        cursor = self.cursor._replace(chunk=SeenChunk(self.number, self.cursor.position, block))
        return memory, CheckChunk(cursor, self.end, is_crossed=True)


class CopyItem(NamedTuple):
    """Copies up to `last`; what was copied is handed out at the end of the run."""

    cursor: Cursor
    end: int
    position: int
    last: int
    is_torn: bool
    at: str = "run: copy an item"

    def run(self, world: World, me: int) -> Outcome:
        memory, chunk = world.memory, self.cursor.chunk
        assert chunk is not None
        item = memory.arena[chunk.block][self.position - chunk.first]
        copied = self._replace(
            position=self.position + 1,
            is_torn=self.is_torn or item != memory.log[self.position],
        )
        if copied.position < self.last:
            return memory, copied
        if world.configuration.may_drop and world.rules.copy_is_validated:
            return memory, Validate(copied)
        return memory, handed_out(world, copied)


class Validate(NamedTuple):
    copied: CopyItem
    at: str = "run: was the reader dropped meanwhile?"

    def run(self, world: World, me: int) -> Outcome:
        cursor = self.copied.cursor
        if cursor.is_dropped(world):
            return world.memory, Enter(Rejoin(cursor))
        return world.memory, handed_out(world, self.copied)


def handed_out(world: World, copied: CopyItem) -> Step:
    first, last = copied.cursor.position, copied.last
    if copied.is_torn:
        raise PromiseBroken(TORN, f"what was got for {first}…{last - 1} is not what was put there")
    cursor = copied.cursor._replace(position=last)
    goes_on = last < copied.end and not world.configuration.short_sessions
    return next_run(cursor, copied.end) if goes_on else BeginSession(cursor)


class MovePlace(NamedTuple):
    copy: CopyItem
    position: int
    at: str = "reader: move the place"

    def run(self, world: World, me: int) -> Outcome:
        if self.copy.cursor.is_dropped(world):
            return world.memory, Enter(Rejoin(self.copy.cursor))
        return moved(world, self.copy.cursor, self.position), self.copy


class Rejoin(NamedTuple):
    """A reader that was dropped goes on where it is, or with the earliest that is kept if that is later."""

    cursor: Cursor
    at: str = "rejoin"

    def follow(self, world: World, memory: Memory, me: int) -> Step:
        return StorePlace(self.cursor)


@under_lock
class StorePlace(NamedTuple):
    cursor: Cursor
    at: str = "reader: store the place without the mark of the drop"

    def run(self, world: World, me: int) -> Outcome:
        memory, cursor = world.memory, self.cursor
        earliest = memory.earliest()
        line = memory.readers[cursor.line]
        line = line._replace(place=max(line.place, earliest), is_dropped=False)
        position = max(cursor.position, earliest)
        cursor = Cursor(cursor.line, cursor.is_durable, position, memory.end.epoch)
        memory = memory.with_reader(cursor.line, line)
        if cursor.is_durable:
            memory = memory._replace(committed=max(memory.committed, line.place))
        return memory, Leave(cursor)
