"""The shared memory of the log, and what the outside world saw of it."""

from __future__ import annotations

from typing import NamedTuple

from models.core.participant import replaced

FREE, ORPHAN = -1, -2
OPEN_END = 1 << 20
NO_ITEM = -1
NO_BLOCK = 0
NONE, EPHEMERAL, DURABLE = "none", "ephemeral", "durable"


class Word(NamedTuple):
    """A position with the count of clears, in one word."""

    epoch: int
    position: int


class Lock(NamedTuple):
    """`owner` is a line, or FREE, or ORPHAN."""

    owner: int
    sequence: int


class ChunkLine(NamedTuple):
    first: int
    end: int
    block: int
    # Of the item that it was made for: a longer one does not fit.
    length: int = 0


class ReaderLine(NamedTuple):
    kind: str = NONE
    place: int = 0
    is_dropped: bool = False
    # The reader's name, which finds a durable one again; only one name is modelled.
    is_named: bool = False
    # The process that holds the line's lock in the kernel: it says whether the reader lives.
    holder: int | None = None


class Memory(NamedTuple):
    """Immutable: every store makes a new one."""

    end: Word
    start: Word
    head: int
    made: int
    used: int
    lock: Lock
    chunks: tuple[ChunkLine, ...]
    # One bit a block: in use.
    blocks: int
    # What each block holds, item by item.
    arena: tuple[tuple[int, ...], ...]
    readers: tuple[ReaderLine, ...]
    # Not memory but history: the item that was published at each position, and what was committed.
    log: tuple[int, ...] = ()
    committed: int = 0

    @classmethod
    def initial(
        cls,
        *,
        chunk_items: int,
        chunk_lines: int,
        blocks: int,
        readers: tuple[ReaderLine, ...],
    ) -> Memory:
        return cls(
            end=Word(0, 0),
            start=Word(0, 0),
            head=0,
            made=0,
            used=0,
            lock=Lock(FREE, 0),
            chunks=(ChunkLine(0, 0, NO_BLOCK),) * chunk_lines,
            blocks=0,
            arena=((NO_ITEM,) * chunk_items,) * blocks,
            readers=readers,
        )

    def chunk(self, number: int) -> ChunkLine:
        return self.chunks[number % len(self.chunks)]

    def with_chunk(self, number: int, line: ChunkLine) -> Memory:
        return self._replace(chunks=replaced(self.chunks, number % len(self.chunks), line))

    def with_item(self, block: int, at: int, item: int) -> Memory:
        return self._replace(arena=replaced(self.arena, block, replaced(self.arena[block], at, item)))

    def with_reader(self, index: int, line: ReaderLine) -> Memory:
        return self._replace(readers=replaced(self.readers, index, line))

    def given(self, block: int) -> Memory:
        """The block is free, and its memory goes back: a late reader sees nothing there."""
        return self._replace(blocks=self.blocks & ~(1 << block)).wiped(1 << block)

    def wiped(self, blocks: int) -> Memory:
        empty = (NO_ITEM,) * len(self.arena[0])
        arena = tuple(empty if blocks >> block & 1 else content for block, content in enumerate(self.arena))
        return self._replace(arena=arena)

    def published(self, position: int, items: tuple[int, ...]) -> Memory:
        return self._replace(end=Word(self.end.epoch, position), log=self.log + items)

    def has_open_chunk(self) -> bool:
        return self.head < self.made and self.chunk(self.made - 1).end == OPEN_END

    def earliest(self) -> int:
        earliest = self.chunk(self.head).first if self.head < self.made else self.end.position
        return min(max(earliest, self.start.position), self.end.position)

    def blocks_of_kept_chunks(self) -> int:
        blocks = 0
        for number in range(self.head, self.made):
            blocks |= 1 << self.chunk(number).block
        return blocks

    def without_holder(self, process: int) -> Memory:
        """The kernel drops the locks of a process that ends."""
        if all(line.holder != process for line in self.readers):
            return self
        lines = (line._replace(holder=None) if line.holder == process else line for line in self.readers)
        return self._replace(readers=tuple(lines))

    def __str__(self) -> str:
        kept = (self.chunk(number) for number in range(self.head, self.made))
        chunks = " ".join(
            f"[{line.first}…{'' if line.end == OPEN_END else line.end} {self.arena[line.block]}]" for line in kept
        )
        readers = " ".join(
            f"{line.kind}@{line.place}{' dropped' if line.is_dropped else ''}"
            for line in self.readers
            if line.kind != NONE
        )
        owner = {FREE: "free", ORPHAN: "orphan"}.get(self.lock.owner, f"of {self.lock.owner}")
        return (
            f"end={self.end.position}/{self.end.epoch} start={self.start.position}/{self.start.epoch} "
            f"head={self.head} made={self.made} {chunks} blocks={self.blocks:b} used={self.used} "
            f"lock {owner}, readers {readers or '-'}"
        )
