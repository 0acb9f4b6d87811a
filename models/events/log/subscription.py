"""Subscribe: take a line of the table of readers, or find a durable one again."""

from __future__ import annotations

from typing import NamedTuple

from models.core.participant import PromiseBroken
from models.events.log.lock import Enter, Leave
from models.events.log.memory import DURABLE, EPHEMERAL, NONE, Memory, ReaderLine
from models.events.log.reader import BeginSession, Cursor
from models.events.log.reclaim import ReleaseDeadReaders
from models.events.log.rules import LATEST
from models.events.log.world import LOST, REPEATED, Outcome, Step, World, under_lock


def begin_subscribe(world: World, is_durable: bool, start: str) -> Step:
    subscribe = Subscribe(is_durable, start)
    find = FindName(subscribe)
    return Enter(ReleaseDeadReaders(find, find)) if _holds_lock(world, is_durable) else subscribe


def _holds_lock(world: World, is_durable: bool) -> bool:
    return is_durable or world.rules.subscribed_under_lock


class FindName(NamedTuple):
    subscribe: Subscribe
    at: str = "search for the name"

    def follow(self, world: World, memory: Memory, me: int) -> Step:
        if self.subscribe.is_durable:
            for index, line in enumerate(memory.readers):
                if line.kind == DURABLE and line.is_named:
                    return Attach(index)
        return self.subscribe


class Subscribe(NamedTuple):
    """Holds the lock of a free line, and decides where to begin."""

    is_durable: bool
    start: str
    at: str = "subscribe: hold a free line"

    def run(self, world: World, me: int) -> Outcome:
        memory = world.memory
        for index, line in enumerate(memory.readers):
            if line.kind == NONE and line.holder is None:
                start = memory.end.position if self.start == LATEST else memory.earliest()
                memory = memory.with_reader(index, line._replace(holder=me))
                cursor = Cursor(index, self.is_durable, start, memory.end.epoch)
                return memory, WriteLine(cursor) if world.rules.kind_stored_last else WriteKind(cursor)
        return None


class WriteLine(NamedTuple):
    cursor: Cursor
    at: str = "subscribe: write name and place"

    def run(self, world: World, me: int) -> Outcome:
        memory, cursor = world.memory, self.cursor
        kind = memory.readers[cursor.line].kind
        line = ReaderLine(kind, cursor.position, is_named=cursor.is_durable, holder=me)
        memory = memory.with_reader(cursor.line, line)
        return memory, WriteKind(cursor) if world.rules.kind_stored_last else _subscribed(world, cursor)


class WriteKind(NamedTuple):
    cursor: Cursor
    at: str = "subscribe: store kind"

    def run(self, world: World, me: int) -> Outcome:
        memory, cursor = world.memory, self.cursor
        kind = DURABLE if cursor.is_durable else EPHEMERAL
        memory = memory.with_reader(cursor.line, memory.readers[cursor.line]._replace(kind=kind))
        if cursor.is_durable:
            memory = memory._replace(committed=cursor.position)
        return memory, _subscribed(world, cursor) if world.rules.kind_stored_last else WriteLine(cursor)


def _subscribed(world: World, cursor: Cursor) -> Step:
    return Leave(cursor) if _holds_lock(world, cursor.is_durable) else BeginSession(cursor)


@under_lock
class Attach(NamedTuple):
    line: int
    at: str = "subscribe: hold the line of that name again"

    def run(self, world: World, me: int) -> Outcome:
        memory, line = world.memory, world.memory.readers[self.line]
        position = max(line.place, memory.start.position)
        if position > max(memory.committed, memory.start.position):
            message = f"a durable reader that committed {memory.committed} goes on at {position}"
            raise PromiseBroken(LOST, message)
        if position < memory.committed:
            message = f"a durable reader that committed {memory.committed} goes on at {position}"
            raise PromiseBroken(REPEATED, message)
        memory = memory.with_reader(self.line, line._replace(holder=me))
        return memory, Leave(Cursor(self.line, True, position, memory.end.epoch))
