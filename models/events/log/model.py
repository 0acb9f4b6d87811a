"""The log of events as a model for the search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

from models.core.participant import DEAD, FINISHED, PromiseBroken
from models.core.search import Transition
from models.events.log.lock import orphaned
from models.events.log.memory import DURABLE, EPHEMERAL, Memory, ReaderLine
from models.events.log.reader import BeginSession, Cursor
from models.events.log.rules import NAMED, UNREGISTERED, Configuration
from models.events.log.subscription import begin_subscribe
from models.events.log.unregistered_reader import ReadPosition
from models.events.log.world import SHARED, UNDER_LOCK, Outcome, Step, World
from models.events.log.writer import Job, WaitForRoom

# Kills left, newcomers left, the number of the memory, the number of each participant's step.
# Numbers stand for equal parts of different states, which are kept once.
EventsState = tuple[int, ...]
PROCESSES_FROM = 3

Part = TypeVar("Part")


class Numbered(Generic[Part]):
    """Equal parts have equal numbers."""

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._number_of: dict[Part, int] = {}

    def number(self, part: Part) -> int:
        number = self._number_of.setdefault(part, len(self._parts))
        if number == len(self._parts):
            self._parts.append(part)
        return number

    def __getitem__(self, number: int) -> Part:
        return self._parts[number]


class StepLabel(NamedTuple):
    process: int
    role: str
    event: str | Step

    def __str__(self) -> str:
        if isinstance(self.event, str):
            return f"{self.role} on line {self.process}: {self.event}"
        phase = getattr(self.event, "phase", "")
        return f"{self.role} on line {self.process}: {self.event.at}{phase and ' '}{phase}"


class EventsModel:
    """Every participant takes its steps in any order; the adversary may kill between any two."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._memories: Numbered[Memory] = Numbered()
        self._steps: Numbered[Step] = Numbered()
        self._roles = (*("writer" for _ in configuration.writers), *configuration.readers)
        self._dead = self._steps.number(DEAD)
        self._finished = self._steps.number(FINISHED)

    def initial(self) -> EventsState:
        size = self._configuration
        readers: list[ReaderLine] = []
        for process, role in enumerate(self._roles):
            if role in (EPHEMERAL, DURABLE):
                readers.append(ReaderLine(role, is_named=role == DURABLE, holder=process))
            elif role not in ("writer", UNREGISTERED):
                readers.append(ReaderLine())
        if NAMED in self._roles:
            readers.append(ReaderLine())  # so that a line in vain is not a full table
        memory = Memory.initial(
            chunk_items=size.chunk_items,
            chunk_lines=size.chunk_lines,
            blocks=size.blocks,
            readers=tuple(readers),
        )
        world = World(size, memory, ())
        steps = [self._first_step(world, process) for process in range(size.processes)]
        numbers = map(self._steps.number, steps)
        return (size.kills, bool(size.newcomer), self._memories.number(memory), *numbers)

    def _first_step(self, world: World, process: int) -> Step:
        role = self._roles[process]
        if role == "writer":
            return Job(process).first_step(world)
        if role == UNREGISTERED:
            return ReadPosition()
        for index, line in enumerate(world.memory.readers):
            if line.holder == process:
                return BeginSession(Cursor(index, role == DURABLE, 0, 0))
        return begin_subscribe(world, role == NAMED, role)

    def successors(self, state: EventsState) -> Iterator[Transition[EventsState]]:
        kills_left, memory = state[0], self._memories[state[2]]
        steps = self.steps(state)
        world = World(self._configuration, memory, steps)
        for process, step in enumerate(steps):
            if step is FINISHED:
                continue
            if step is DEAD:
                yield from self._succeed(world, state, process)
                continue
            transition = self._step(world, state, process, step)
            if transition is not None:
                yield transition
            if kills_left:
                left = self._changed(state, process, memory.without_holder(process), DEAD)
                label = StepLabel(process, self._roles[process], "is killed")
                killed = (kills_left - 1, *left[1:])
                yield Transition(label, killed, is_adversary=True)

    def steps(self, state: EventsState) -> tuple[Step, ...]:
        """What each participant does next."""
        return tuple(self._steps[number] for number in state[PROCESSES_FROM:])

    def _step(self, world: World, state: EventsState, process: int, step: Step) -> Transition[EventsState] | None:
        label = StepLabel(process, self._roles[process], step)
        try:
            outcome = self._run(world, process, step)
        except PromiseBroken as broken:
            return Transition(label, state, broken.violation)
        if outcome is None:
            return None
        return Transition(label, self._changed(state, process, *outcome))

    def _run(self, world: World, process: int, step: Step) -> Outcome:
        if type(step) in UNDER_LOCK and world.memory.lock.owner != process:
            raise PromiseBroken(SHARED, "another one holds the lock too")
        return step.run(world, process)

    def _succeed(self, world: World, state: EventsState, process: int) -> Iterator[Transition[EventsState]]:
        """A dead line gets a new owner: a durable reader comes again, a newcomer may come."""
        role = self._roles[process]
        if role in (DURABLE, NAMED):
            memory, step = orphaned(world, process), begin_subscribe(world, True, role)
            label = StepLabel(process, role, "comes again")
            yield Transition(label, self._changed(state, process, memory, step))
        # Readers that left because all work was done would not see a late writer's items.
        elif role == "writer" and state[1] and self._finished not in state[PROCESSES_FROM:]:
            memory = orphaned(world, process)
            step = Job(len(self._configuration.writers)).first_step(world)
            joined = self._changed(state, process, memory, step)
            label = StepLabel(process, role, "a newcomer takes the dead line")
            # A newcomer may never come, so this is no way out of a stuck state.
            yield Transition(label, (joined[0], 0, *joined[2:]), is_adversary=True)

    def _changed(self, state: EventsState, process: int, memory: Memory, step: Step) -> EventsState:
        at = PROCESSES_FROM + process
        number = state[2]
        if memory is not self._memories[number]:
            number = self._memories.number(memory)
        return (*state[:2], number, *state[PROCESSES_FROM:at], self._steps.number(step), *state[at + 1 :])

    def is_accepted(self, state: EventsState) -> bool:
        """All have finished or died; or no reader lives, and writers may wait for ever."""
        alive = [
            (step, role)
            for step, role in zip(self.steps(state), self._roles, strict=True)
            if step is not FINISHED and (step is not DEAD or role in (DURABLE, NAMED))
        ]
        return all(isinstance(step, WaitForRoom) or role == UNREGISTERED for step, role in alive)

    def describe(self, state: EventsState) -> str:
        return str(self._memories[state[2]])
