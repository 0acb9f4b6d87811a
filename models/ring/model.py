"""The bounded queue and its ledger as a model for the search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from models.core.participant import DEAD, FINISHED, PromiseBroken, replaced
from models.core.search import Transition
from models.ring.consumer import GetReadPosition
from models.ring.end_check import is_end_check
from models.ring.memory import Memory
from models.ring.newcomer import JoinReadPosition
from models.ring.places import first_place
from models.ring.producer import PutReadPosition
from models.ring.rules import Configuration
from models.ring.world import CONSUMER, PRODUCER, Role, Step, World


class LedgerState(NamedTuple):
    memory: Memory
    steps: tuple[Step, ...]
    roles: tuple[Role, ...]
    kills_left: int
    rejoins_left: int

    def lines(self) -> Iterator[tuple[Step, Role]]:
        return zip(self.steps, self.roles, strict=True)


class StepLabel(NamedTuple):
    line: int
    role: Role
    event: str | Step

    def __str__(self) -> str:
        event = self.event if isinstance(self.event, str) else step_text(self.event)
        return f"{self.role} on line {self.line}: {event}"


def step_text(step: Step) -> str:
    """What the step does, and to which slot or line."""
    registers = {name: getattr(step, name, None) for name in ("item", "position", "offset", "line")}
    for holder in (getattr(step, "found", None), getattr(step, "redelivery", None)):
        if holder is not None:
            registers["position"] = holder.position
    targets = getattr(step, "targets", 0)
    if targets:
        _, registers["position"] = first_place(targets)
    text = ", ".join(f"{name}={value}" for name, value in registers.items() if value is not None)
    return f"{step.at} ({text})" if text else step.at


class LedgerModel:
    """Every participant takes its steps in any order; the adversary may kill between any two."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        # Equal parts of different states are kept once: most states differ in one part only.
        self._memories: dict[Memory, Memory] = {}
        self._steps: dict[tuple[Step, ...], tuple[Step, ...]] = {}

    def initial(self) -> LedgerState:
        size = self._configuration
        putting = [PutReadPosition(size.first_item(line)) for line in range(size.producers)]
        getting = [GetReadPosition()] * size.consumers
        return LedgerState(
            memory=Memory.initial(size.capacity, size.lines),
            steps=(*putting, *getting),
            roles=(PRODUCER,) * size.producers + (CONSUMER,) * size.consumers,
            kills_left=size.kills,
            rejoins_left=size.rejoins,
        )

    def successors(self, state: LedgerState) -> Iterator[Transition[LedgerState]]:
        memory, steps, roles, kills_left, rejoins_left = state
        world = World(self._configuration, memory, steps, roles, kills_left)
        for line, step in enumerate(steps):
            if step is FINISHED:
                continue
            if step is DEAD:
                if rejoins_left:
                    yield from self._rejoin(state, line)
                continue
            yield self._step(world, state, line, step)
            if kills_left:
                killed = state._replace(
                    steps=self._with_step(steps, line, DEAD),
                    kills_left=kills_left - 1,
                )
                label = StepLabel(line, roles[line], "is killed")
                yield Transition(label, killed, is_adversary=True)

    def steps(self, state: LedgerState) -> tuple[Step, ...]:
        """What each participant does next."""
        return state.steps

    def _step(
        self,
        world: World,
        state: LedgerState,
        line: int,
        step: Step,
    ) -> Transition[LedgerState]:
        label = StepLabel(line, state.roles[line], step)
        try:
            memory, following = step.run(world, line)
        except PromiseBroken as broken:
            return Transition(label, state, broken.violation)
        if memory is not world.memory:
            memory = self._memories.setdefault(memory, memory)
        # Only a joiner that found work for others to do is dead after its own step: it may retry.
        rejoins_left = state.rejoins_left + (following is DEAD)
        steps = self._with_step(state.steps, line, following)
        after = LedgerState(memory, steps, state.roles, state.kills_left, rejoins_left)
        return Transition(label, after)

    def _rejoin(self, state: LedgerState, line: int) -> Iterator[Transition[LedgerState]]:
        size = self._configuration
        first_item = size.first_item(size.producers)
        # Consumers that left because all work was done, or are about to, would not see a late producer's items.
        is_too_late = any((step is FINISHED and role == CONSUMER) or is_end_check(step) for step, role in state.lines())
        for role in (CONSUMER,) if is_too_late else (CONSUMER, PRODUCER):
            joined = state._replace(
                steps=self._with_step(state.steps, line, JoinReadPosition(first_item)),
                roles=replaced(state.roles, line, role),
                rejoins_left=state.rejoins_left - 1,
            )
            label = StepLabel(line, role, "locks the dead line")
            # A newcomer may never come, so this is no way out of a stuck state.
            yield Transition(label, joined, is_adversary=True)

    def _with_step(self, steps: tuple[Step, ...], line: int, step: Step) -> tuple[Step, ...]:
        changed = replaced(steps, line, step)
        return self._steps.setdefault(changed, changed)

    def is_accepted(self, state: LedgerState) -> bool:
        """All have finished or died; or no consumer lives, and producers may wait for ever."""
        if all(step is DEAD or step is FINISHED for step in state.steps):
            return True
        return not any(step is not DEAD and role == CONSUMER for step, role in state.lines())

    def describe(self, state: LedgerState) -> str:
        return str(state.memory)
