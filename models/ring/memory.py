"""The shared memory of the ring, and what the outside world saw of it."""

from __future__ import annotations

from typing import NamedTuple

from models.core.participant import replaced
from models.ring.words import Intent, free, generation_text

NO_BYTES = -1
NO_LENGTH = 0


class Memory(NamedTuple):
    """Immutable: every store makes a new one."""

    generations: tuple[int, ...]
    payloads: tuple[int, ...]
    lengths: tuple[int, ...]
    push_position: int
    pop_position: int
    intents: tuple[Intent | None, ...]
    # Not memory but history, as bit sets of items: puts that returned, items that were handed out.
    acknowledged: int
    delivered: int

    @classmethod
    def initial(cls, capacity: int, lines: int) -> Memory:
        return cls(
            generations=tuple(free(position) for position in range(capacity)),
            payloads=(NO_BYTES,) * capacity,
            lengths=(NO_LENGTH,) * capacity,
            push_position=0,
            pop_position=0,
            intents=(None,) * lines,
            acknowledged=0,
            delivered=0,
        )

    @property
    def capacity(self) -> int:
        return len(self.generations)

    def generation(self, position: int) -> int:
        return self.generations[position % len(self.generations)]

    def payload(self, position: int) -> int:
        return self.payloads[position % len(self.payloads)]

    def length(self, position: int) -> int:
        return self.lengths[position % len(self.lengths)]

    def with_generation(self, position: int, generation: int) -> Memory:
        index = position % self.capacity
        return self._replace(generations=replaced(self.generations, index, generation))

    def with_bytes(self, position: int, payload: int, length: int) -> Memory:
        index = position % self.capacity
        return self._replace(
            payloads=replaced(self.payloads, index, payload),
            lengths=replaced(self.lengths, index, length),
        )

    def released(self, position: int) -> Memory:
        """The slot is free for the next lap.

        Its payload becomes unreadable, so that a copy made too late is seen as torn.
        Its length word stays, because a slow consumer may still read it before its claim fails.
        """
        index = position % self.capacity
        return self._replace(
            generations=replaced(self.generations, index, free(position + self.capacity)),
            payloads=replaced(self.payloads, index, NO_BYTES),
        )

    def with_intent(self, line: int, intent: Intent | None) -> Memory:
        return self._replace(intents=replaced(self.intents, line, intent))

    def __str__(self) -> str:
        slots = ", ".join(map(self._slot_text, range(self.capacity)))
        intents = ", ".join(str(intent or "-") for intent in self.intents)
        return (
            f"push={self.push_position} pop={self.pop_position} [{slots}] intents [{intents}] "
            f"acknowledged={self.acknowledged:b} delivered={self.delivered:b}"
        )

    def _slot_text(self, index: int) -> str:
        text = generation_text(self.generations[index])
        if self.payloads[index] == NO_BYTES:
            return text
        return f"{text} item {self.payloads[index]} length {self.lengths[index]}"
