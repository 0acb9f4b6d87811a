"""The lock whose word names its owner: enter, take over from the dead, repair, leave."""

from __future__ import annotations

from typing import NamedTuple

from models.core.participant import PromiseBroken
from models.events.log.memory import FREE, ORPHAN, Lock, Memory
from models.events.log.repair import begin_repair
from models.events.log.world import LEAKED, UNFINISHED, Continuation, Outcome, World, under_lock


class Enter(NamedTuple):
    """Load and compare-and-swap of a free word are one step: a failed swap is only a retry.

    So is the load of an owned word and the question whether its owner lives, if the answer is no.
    """

    then: Continuation
    at: str = "lock: take it if it is free, or check whether its owner is dead"

    def run(self, world: World, me: int) -> Outcome:
        memory, lock = world.memory, world.memory.lock
        is_orphan = lock.owner == ORPHAN
        if lock.owner == FREE or (is_orphan and not world.rules.orphan_is_repaired):
            memory = _taken(world, me)
            return memory, self.then.follow(world, memory, me)
        if is_orphan:
            return _repair(world, me, self.then)
        if world.rules.dead_owner_is_replaced and world.is_dead(lock.owner):
            return memory, TakeOver(self.then, lock)
        return None


class TakeOver(NamedTuple):
    then: Continuation
    seen: Lock
    at: str = "lock: compare-and-swap the word of the dead owner"

    def run(self, world: World, me: int) -> Outcome:
        lock = world.memory.lock
        is_same = lock == self.seen if world.rules.lock_has_sequence else lock.owner == self.seen.owner
        if not is_same:
            return world.memory, Enter(self.then)
        return _repair(world, me, self.then)


def _taken(world: World, me: int) -> Memory:
    # Only whether a sequence was seen before matters, so the least that no participant remembers will do.
    held = {step.seen.sequence for step in world.steps if isinstance(step, TakeOver)}
    sequence = next(number for number in range(len(held) + 1) if number not in held)
    return world.memory._replace(lock=Lock(me, sequence))


def _repair(world: World, me: int, then: Continuation) -> Outcome:
    memory = _taken(world, me)
    if world.rules.taker_repairs:
        return memory, begin_repair(world, memory, me, then)
    return memory, then.follow(world, memory, me)


@under_lock
class Leave(NamedTuple):
    then: Continuation
    at: str = "lock: free it"

    def run(self, world: World, me: int) -> Outcome:
        memory = world.memory
        require_settled(memory)
        memory = memory._replace(lock=Lock(FREE, memory.lock.sequence))
        return memory, self.then.follow(world, memory, me)


def require_settled(memory: Memory) -> None:
    """What the next holder must find."""
    if memory.start.epoch != memory.end.epoch:
        raise PromiseBroken(UNFINISHED, "a clear was begun and left: some readers see it, some do not")
    kept = memory.made - memory.head
    if memory.blocks != memory.blocks_of_kept_chunks() or memory.used != kept:
        raise PromiseBroken(
            LEAKED,
            f"blocks in use are {memory.blocks:b}, those of kept chunks "
            f"{memory.blocks_of_kept_chunks():b}; used={memory.used}, kept={kept}",
        )


def orphaned(world: World, line: int) -> Memory:
    """Before a dead owner's line gets a new owner, its name goes from the lock."""
    lock = world.memory.lock
    if lock.owner != line or not world.rules.line_is_orphaned_before_reuse:
        return world.memory
    return world.memory._replace(lock=Lock(ORPHAN, lock.sequence))
