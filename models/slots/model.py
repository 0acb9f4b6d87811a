"""The slots as a model for the search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from models.core.participant import DEAD, FINISHED, PromiseBroken, replaced
from models.core.search import Transition
from models.slots import put_once
from models.slots.memory import Memory
from models.slots.participants import consuming, producing
from models.slots.rules import Configuration
from models.slots.world import Step, World


class SlotsState(NamedTuple):
    memory: Memory
    steps: tuple[Step, ...]
    kills_left: int


class StepLabel(NamedTuple):
    role: str
    number: int
    event: str

    def __str__(self) -> str:
        return f"{self.role} {self.number}: {self.event}"


class SlotsModel:
    """Every participant takes its steps in any order; the adversary may kill between any two."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        # Equal parts of different states are kept once: most states differ in one part only.
        self._memories: dict[Memory, Memory] = {}
        self._steps: dict[tuple[Step, ...], tuple[Step, ...]] = {}

    def initial(self) -> SlotsState:
        size = self._configuration
        first = put_once.living if size.put_once else lambda number: producing(number * size.items)
        producers = map(first, range(size.producers))
        return SlotsState(Memory.initial(size.slots), (*producers, *[consuming()] * size.consumers), size.kills)

    def successors(self, state: SlotsState) -> Iterator[Transition[SlotsState]]:
        world = World(self._configuration, state.memory, state.steps)
        for number, step in enumerate(state.steps):
            if step is FINISHED or step is DEAD:
                continue
            yield self._step(world, state, number, step)
            if state.kills_left:
                killed = state._replace(
                    steps=self._with_step(state.steps, number, DEAD), kills_left=state.kills_left - 1
                )
                yield Transition(self._label(number, "is killed"), killed, is_adversary=True)

    def steps(self, state: SlotsState) -> tuple[Step, ...]:
        """What each participant does next."""
        return state.steps

    def _label(self, number: int, event: str) -> StepLabel:
        return StepLabel("producer" if number < self._configuration.producers else "consumer", number, event)

    def _step(self, world: World, state: SlotsState, number: int, step: Step) -> Transition[SlotsState]:
        label = self._label(number, step.at)
        try:
            memory, following = step.run(world, number)
        except PromiseBroken as broken:
            return Transition(label, state, broken.violation)
        if memory is not world.memory:
            memory = self._memories.setdefault(memory, memory)
        return Transition(label, SlotsState(memory, self._with_step(state.steps, number, following), state.kills_left))

    def _with_step(self, steps: tuple[Step, ...], number: int, step: Step) -> tuple[Step, ...]:
        changed = replaced(steps, number, step)
        return self._steps.setdefault(changed, changed)

    def is_accepted(self, state: SlotsState) -> bool:
        """All have finished or died; or no consumer lives, and producers may wait for ever."""
        if all(step is DEAD or step is FINISHED for step in state.steps):
            return True
        return all(step is DEAD for step in state.steps[self._configuration.producers :])

    def describe(self, state: SlotsState) -> str:
        return str(state.memory)
