"""The shared memory of the slots, and what the outside world saw of it."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from models.core.participant import replaced

Name = Literal["free", "used"]
FREE_QUEUE: Name = "free"
USED_QUEUE: Name = "used"

FREE, HELD, ARRIVING, QUEUED, TAKEN, LEAVING, STRAY, ORPHANED = (
    "free",
    "held",
    "arriving",
    "queued",
    "taken",
    "leaving",
    "stray",
    "orphaned",
)
CLAIMABLE = {FREE_QUEUE: (FREE, LEAVING), USED_QUEUE: (QUEUED, ARRIVING)}
NOBODY = -1
NO_BYTES = -1


class Word(NamedTuple):
    """The state and the owner of a slot."""

    state: str
    owner: int = NOBODY
    generation: int = 0

    def __str__(self) -> str:
        return f"{self.state}({self.owner})" if self.owner != NOBODY else self.state


class Cell(NamedTuple):
    cycle: int
    slot: int


class IndexQueue(NamedTuple):
    """Head and tail are positions: cycle * n + place."""

    head: int
    tail: int
    cells: tuple[Cell, ...]

    @classmethod
    def full(cls, n: int) -> IndexQueue:
        return cls(0, n, tuple(Cell(0, i) for i in range(n)))

    @classmethod
    def empty(cls, n: int) -> IndexQueue:
        return cls(n, n, (Cell(0, 0),) * n)

    @property
    def n(self) -> int:
        return len(self.cells)

    def cell(self, position: int) -> Cell:
        return self.cells[position % self.n]

    def cycles_behind(self, position: int) -> int:
        """How many cycles the cell there is behind that position."""
        return position // self.n - self.cell(position).cycle

    def with_cell(self, position: int, slot: int) -> IndexQueue:
        return self._replace(cells=replaced(self.cells, position % self.n, Cell(position // self.n, slot)))

    def inside(self) -> list[int]:
        """The slots that are in the queue, each as often as it is."""
        return [cell.slot for place, cell in enumerate(self.cells) if cell.cycle * self.n + place >= self.head]


class ProducerLine(NamedTuple):
    """What the one named producer has written down."""

    is_intended: bool = False
    done: int = 0
    slot: int = 0
    kept: Word = Word(FREE)
    """The slot's word as it was HELD; with STRAY once it is cut."""


class Memory(NamedTuple):
    """Immutable: every store makes a new one."""

    free: IndexQueue
    used: IndexQueue
    words: tuple[Word, ...]
    payloads: tuple[int, ...]
    arrivals: tuple[int, ...]
    """Of each slot: the generation of the word with which its item arrived."""
    handed: tuple[int, ...]
    """Not memory but history: how often that item was taken."""
    # Not memory but history, as bit sets of items: in the queue by their put, and out of it by a get or an eviction.
    published: int
    ended: int
    line: ProducerLine = ProducerLine()

    @classmethod
    def initial(cls, n: int) -> Memory:
        return cls(
            IndexQueue.full(n), IndexQueue.empty(n), (Word(FREE),) * n, (NO_BYTES,) * n, (0,) * n, (0,) * n, 0, 0
        )

    def queue(self, name: Name) -> IndexQueue:
        return self.free if name == FREE_QUEUE else self.used

    def with_queue(self, name: Name, queue: IndexQueue) -> Memory:
        return self._replace(free=queue) if name == FREE_QUEUE else self._replace(used=queue)

    def with_word(self, slot: int, word: Word) -> Memory:
        return self._replace(words=replaced(self.words, slot, word))

    def with_line(self, **changed: Any) -> Memory:
        return self._replace(line=self.line._replace(**changed))

    def with_payload(self, slot: int, item: int) -> Memory:
        return self._replace(payloads=replaced(self.payloads, slot, item))

    def with_arrival(self, slot: int, generation: int) -> Memory:
        return self._replace(arrivals=replaced(self.arrivals, slot, generation))

    def with_handed(self, slot: int, times: int) -> Memory:
        return self._replace(handed=replaced(self.handed, slot, times))

    def __str__(self) -> str:
        words = ", ".join(
            f"{word}{'' if item == NO_BYTES else f' item {item}'}"
            for word, item in zip(self.words, self.payloads, strict=True)
        )
        queues = " ".join(
            f"{name} {queue.head}..{queue.tail} [{' '.join(f'{c.cycle}:{c.slot}' for c in queue.cells)}]"
            for name, queue in ((FREE_QUEUE, self.free), (USED_QUEUE, self.used))
        )
        return f"[{words}] {queues} published={self.published:b} ended={self.ended:b} {self.line}"
