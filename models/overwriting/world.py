"""The shared memory, the processes, and what is known of the items besides."""

from __future__ import annotations

from typing import NamedTuple

from models.core.participant import replaced
from models.overwriting.rules import Configuration, Rules

TORN, TWICE, DISORDERED, MISCOUNTED, LOST = "torn", "twice", "disordered", "miscounted", "lost"
HEADER, WRITER, READER = "header", "writer", "reader"
FILLER, HOLDER, OVERTAKEN = "filler", "holder", "overtaken"
DEAD, FINISHED = "dead", "finished"


class Word(NamedTuple):
    """A lock that is held."""

    line: int
    tenure: int
    role: str


class Counts(NamedTuple):
    puts: int = 0
    taken: int = 0
    dropped: int = 0
    torn: int = 0
    lost: int = 0  # on the way to a cell


class LeasedMessage(NamedTuple):
    """A cell for one leased message."""

    word: Word | None = None
    position: int = 0
    first: int = 0
    second: int = 0


class Reading(NamedTuple):
    is_reading: bool = False
    lost: int = 0
    overwritten: int = 0


class Message(NamedTuple):
    lock: Word | None = None
    first: int = 0
    second: int = 0


class Change(NamedTuple):
    """What the journal says. -1 in `message`, `line` or `cell`: it changes no message, notes no get or no lease."""

    start: int
    length: int
    message: int
    lock: Word | None
    line: int
    reading: Reading
    counts: Counts
    cell: int = -1
    filled: LeasedMessage | None = None


class Memory(NamedTuple):
    header: Word | None
    is_committed: bool
    journal: Change | None
    start: int
    length: int
    messages: tuple[Message, ...]
    counts: Counts
    readings: tuple[Reading, ...]
    leased: tuple[LeasedMessage, ...]

    def with_message(self, index: int, message: Message) -> Memory:
        return self._replace(messages=replaced(self.messages, index, message))

    def with_reading(self, line: int, reading: Reading) -> Memory:
        return self._replace(readings=replaced(self.readings, line, reading))

    def with_cell(self, number: int, cell: LeasedMessage) -> Memory:
        return self._replace(leased=replaced(self.leased, number, cell))


class Process(NamedTuple):
    """The owner of a line, its place in its program, and its registers."""

    at: str
    program: str
    author: int
    tenure: int = 0
    done: int = 0
    seen: Word | None = None
    back_to: str = ""
    change: Change | None = None
    first: int = 0
    second: int = 0
    is_mine: bool = False
    last: int = -1  # of the items that it got, by their order in the queue
    cell: int = -1  # of a leased message
    owner: Word | None = None  # of that cell, as it was found
    is_ending: bool = False  # that cell ends without a message

    @property
    def operation(self) -> str:
        return self.program[self.done]

    @property
    def item(self) -> int:
        """A number of its own for every put."""
        return 10 * (self.author + 1) + self.done


def first_step(operation: str) -> str:
    return "scan the leased messages" if operation == "l" else "read the header"


def next_operation(process: Process) -> Process:
    done = process.done + 1
    at = first_step(process.program[done]) if done < len(process.program) else FINISHED
    begun = Process(at=at, program=process.program, author=process.author, tenure=process.tenure)
    return begun._replace(done=done, last=process.last)


class Known(NamedTuple):
    """What really happened: which items were put, in this order; which are whole; how many gets ended with one."""

    put: tuple[int, ...] = ()
    whole: frozenset[int] = frozenset()
    got: tuple[int, ...] = ()


class World(NamedTuple):
    size: Configuration
    memory: Memory
    processes: tuple[Process, ...]
    known: Known

    @property
    def rules(self) -> Rules:
        return self.size.rules

    def word(self, line: int, role: str) -> Word:
        return Word(line, self.processes[line].tenure if self.rules.word_has_tenure else 0, role)

    def is_alive(self, word: Word) -> bool:
        return self.processes[word.line].at != DEAD and self.word(word.line, word.role) == word

    def lock_for(self, line: int) -> Word | None:
        """Of the message that a claim by that line is about."""
        memory, operation = self.memory, self.processes[line].operation
        index = memory.start if operation in "gl" else memory.start + memory.length
        return memory.messages[index % self.size.capacity].lock

    def left_in(self, line: int) -> Word | None:
        """That lock, as its owner that we saw and that died since has left it."""
        seen = self.processes[line].seen
        return seen if seen is None or not self.rules.lock_of_the_dead_is_read_again else self.lock_for(line)
