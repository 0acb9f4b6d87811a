"""The end check of a consumer that finds the queue shut down and empty: is an item claimed that may come back?

No participant claims any more. So the consumer reads the lines, one a step, and each position that a line names for
a pop. Producers that are done stand for the shutdown.
"""

from __future__ import annotations

from typing import NamedTuple

from models.core.participant import FINISHED, PromiseBroken
from models.ring.recovery import begin_recovery, is_redelivered
from models.ring.words import POP, Intent, head_distance, published
from models.ring.world import LOST, Outcome, Step, World


def begin_end_check(world: World, resume: Step) -> Step:
    """`resume`: what to do if it is not over."""
    return EndCheckReadIntent(resume, 0)


def is_end_check(step: Step) -> bool:
    return isinstance(step, (EndCheckReadIntent, EndCheckReadSlot))


def _after_line(world: World, resume: Step, line: int) -> Step:
    if line + 1 < world.configuration.lines:
        return EndCheckReadIntent(resume, line + 1)
    lost = world.memory.acknowledged & ~world.memory.delivered
    if lost:
        raise PromiseBroken(LOST, f"the queue was taken to be over, but items {lost:#b} were not delivered")
    # What is left of a long item is no item, but must be freed: that shows whether a slot leaks.
    return FINISHED if world.is_quiet() else begin_recovery(world, resume)


class EndCheckReadIntent(NamedTuple):
    resume: Step
    line: int
    at: str = "end check: read intent"

    def run(self, world: World, me: int) -> Outcome:
        memory, intent = world.memory, world.memory.intents[self.line]
        is_left_out = world.is_dead(self.line) and not world.rules.end_check_counts_the_dead
        if intent is None or intent.side != POP or is_left_out:
            return memory, _after_line(world, self.resume, self.line)
        return memory, EndCheckReadSlot(self.resume, self.line, intent, 0)


class EndCheckReadSlot(NamedTuple):
    """No producer writes a length any more, so generation and length are read in one step."""

    resume: Step
    line: int
    intent: Intent
    offset: int
    at: str = "end check: read generation and length"

    def run(self, world: World, me: int) -> Outcome:
        memory, position = world.memory, self.intent.position + self.offset
        seen = memory.generation(position)
        is_held = seen == published(position) or is_redelivered(seen, position)
        if is_held and position < memory.pop_position and not head_distance(memory.length(position)):
            return memory, begin_recovery(world, self.resume)
        if self.offset + 1 < self.intent.slots:
            return memory, self._replace(offset=self.offset + 1)
        return memory, _after_line(world, self.resume, self.line)
