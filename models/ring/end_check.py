"""The last look of a consumer that finds the queue shut down and empty: is anything out that may come back?

Nothing is claimed any more, so it reads the lines, one a step, and each position that one of them names for a pop.
Producers that are done stand for the shutdown.
"""

from __future__ import annotations

from typing import NamedTuple

from models.core.participant import FINISHED, PromiseBroken
from models.ring.recovery import begin_recovery, is_adopted
from models.ring.words import POP, Intent, head_distance, published
from models.ring.world import LOST, Outcome, Step, World


def begin_look(world: World, resume: Step) -> Step:
    """`resume`: what to do if it is not over."""
    return LookReadIntent(resume, 0)


def is_look(step: Step) -> bool:
    return isinstance(step, (LookReadIntent, LookReadSlot))


def _after_line(world: World, resume: Step, line: int) -> Step:
    if line + 1 < world.configuration.lines:
        return LookReadIntent(resume, line + 1)
    lost = world.memory.acknowledged & ~world.memory.delivered
    if lost:
        raise PromiseBroken(LOST, f"the queue was taken to be over, but items {lost:#b} were not delivered")
    # What is left of a long item is nobody's item, but must be freed: that shows whether a slot leaks.
    return FINISHED if world.is_quiet() else begin_recovery(world, resume)


class LookReadIntent(NamedTuple):
    resume: Step
    line: int
    at: str = "look: read intent"

    def run(self, world: World, me: int) -> Outcome:
        memory, intent = world.memory, world.memory.intents[self.line]
        is_left_out = world.is_dead(self.line) and not world.rules.look_counts_the_dead
        if intent is None or intent.side != POP or is_left_out:
            return memory, _after_line(world, self.resume, self.line)
        return memory, LookReadSlot(self.resume, self.line, intent, 0)


class LookReadSlot(NamedTuple):
    """Nobody writes a length any more, so generation and length are read in one step."""

    resume: Step
    line: int
    intent: Intent
    offset: int
    at: str = "look: read generation and length"

    def run(self, world: World, me: int) -> Outcome:
        memory, position = world.memory, self.intent.position + self.offset
        seen = memory.generation(position)
        is_held = seen == published(position) or is_adopted(seen, position)
        if is_held and position < memory.pop_position and not head_distance(memory.length(position)):
            return memory, begin_recovery(world, self.resume)
        if self.offset + 1 < self.intent.slots:
            return memory, self._replace(offset=self.offset + 1)
        return memory, _after_line(world, self.resume, self.line)
