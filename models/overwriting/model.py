"""The overwriting queue as a model for the search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from models.core.participant import PromiseBroken, replaced
from models.core.search import Transition
from models.overwriting.rules import Configuration
from models.overwriting.steps import STEPS
from models.overwriting.world import (
    DEAD,
    FINISHED,
    Counts,
    Known,
    LeasedMessage,
    Memory,
    Message,
    Process,
    Reading,
    World,
    first_step,
)


class OverwritingState(NamedTuple):
    kills_left: int
    newcomer_left: bool
    memory: Memory
    processes: tuple[Process, ...]
    known: Known


class StepLabel(NamedTuple):
    line: int
    operation: str
    event: str

    def __str__(self) -> str:
        return f"{self.operation} on line {self.line}: {self.event}"


class OverwritingModel:
    """Every process takes its steps in any order; the adversary may kill between any two."""

    def __init__(self, configuration: Configuration) -> None:
        self._size = configuration

    def initial(self) -> OverwritingState:
        size = self._size
        memory = Memory(
            header=None,
            is_committed=False,
            journal=None,
            start=0,
            length=0,
            messages=(Message(),) * size.capacity,
            counts=Counts(),
            readings=(Reading(),) * len(size.programs),
            leased=(LeasedMessage(),) * (size.cells if size.has_leases else 0),
        )
        processes = tuple(began(program, author) for author, program in enumerate(size.programs))
        return OverwritingState(size.kills, bool(size.newcomer), memory, processes, Known())

    def successors(self, state: OverwritingState) -> Iterator[Transition[OverwritingState]]:
        world = World(self._size, state.memory, state.processes, state.known)
        for line, process in enumerate(state.processes):
            if process.at == FINISHED:
                continue
            if process.at == DEAD:
                if state.newcomer_left:
                    yield self._succeeded(state, line)
                continue
            operation = process.operation
            try:
                outcome = STEPS[process.at](world, line)
            except PromiseBroken as broken:
                violation = broken.violation
                yield Transition(StepLabel(line, operation, process.at), state, violation)
                continue
            if outcome is not None:
                memory, after, known = outcome
                changed = state._replace(memory=memory, known=known, processes=replaced(state.processes, line, after))
                yield Transition(StepLabel(line, operation, process.at), changed)
            if state.kills_left:
                dead = Process(at=DEAD, program=process.program, author=process.author, tenure=process.tenure)
                killed = state._replace(
                    kills_left=state.kills_left - 1, processes=replaced(state.processes, line, dead)
                )
                yield Transition(StepLabel(line, operation, "is killed"), killed, is_adversary=True)

    def _succeeded(self, state: OverwritingState, line: int) -> Transition[OverwritingState]:
        """A newcomer on a dead line. This is the adversary's, too: a newcomer may never come."""
        newcomer = began(self._size.newcomer, len(self._size.programs))
        newcomer = newcomer._replace(tenure=state.processes[line].tenure + 1)
        changed = state._replace(newcomer_left=False, processes=replaced(state.processes, line, newcomer))
        return Transition(StepLabel(line, "newcomer", "joins"), changed, is_adversary=True)

    def is_accepted(self, state: OverwritingState) -> bool:
        return all(process.at in (FINISHED, DEAD) for process in state.processes)

    def describe(self, state: OverwritingState) -> str:
        memory = state.memory
        header = "." if memory.header is None else memory.header.line
        messages = " ".join(
            f"{{{'.' if lock is None else f'{lock.role[0]}{lock.line}'} {first} {second}}}"
            for lock, first, second in memory.messages
        )
        mark = "*" if memory.is_committed else ""
        leased = " ".join(
            f"<{'.' if cell.word is None else f'{cell.word.role[0]}{cell.word.line}'} {cell.first} {cell.second}>"
            for cell in memory.leased
        )
        return f"[{header}{mark} {memory.start} {memory.length}] {messages} {leased} {tuple(memory.counts)}"


def began(program: str, author: int) -> Process:
    return Process(at=first_step(program[0]) if program else FINISHED, program=program, author=author)
