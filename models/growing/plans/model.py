"""The plans of the growing queue's memory: reserved, used and withdrawn, one shared access a step.

There are no items: a grower takes its ring to be full.
The search asks whether a level is ever in use whose memory is not reserved as it was when the level was opened.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from models.core.participant import replaced
from models.core.search import Transition, Violation
from models.growing.plans.rules import Configuration

UNRESERVED, UNCOUNTED = "unreserved", "uncounted"
FREE_LOCK = -1
DEAD, FINISHED, BEGIN = "dead", "finished", "begin"
GROWER, SHRINKER, RECLAIMER = "grower", "shrinker", "reclaimer"


class Level(NamedTuple):
    planned: int = 0
    """Which plan; each has a capacity of its own."""
    is_marked: bool = False
    is_prepared: bool = False
    has_memory: bool = False
    """Of the system's, whether or not it is known to be all that is needed."""
    opened: int = 0
    """The plan that it was last opened with."""
    closed: str = ""
    """How the ring was closed: to grow, to shrink, or not at all."""


class LevelRange(NamedTuple):
    moves: int = 0
    written: int = 0


class Process(NamedTuple):
    role: str
    left: int
    at: str = BEGIN
    level_range: LevelRange | None = None
    level: int = 0


class State(NamedTuple):
    level_range: LevelRange
    levels: tuple[Level, ...]
    lock: int
    noted: int
    """The level that a reclaimer is withdrawing; 0: none."""
    plans: int
    processes: tuple[Process, ...]
    kills: int


class PlansModel:
    def __init__(self, configuration: Configuration) -> None:
        self._size = configuration
        self._variant = configuration.variant

    def initial(self) -> State:
        size = self._size
        # as after a burst: a level that was prepared and not reached is still planned
        levels = (Level(), Level(), Level(1, False, True, True), *(Level(),) * (size.levels - 3))
        roles = ((GROWER, size.growers), (SHRINKER, size.shrinkers), (RECLAIMER, size.reclaimers))
        processes = tuple(Process(role, times) for role, each in roles for times in each)
        return State(LevelRange(), levels, FREE_LOCK, 0, 1, processes, size.kills)

    def is_accepted(self, state: State) -> bool:
        return all(each.at in (DEAD, FINISHED) for each in state.processes)

    def describe(self, state: State) -> str:
        levels = " ".join(
            f"[{level.planned}{'!' * level.is_marked}{'+' * level.is_prepared} {level.opened}{level.closed[:1]}]"
            for level in state.levels
        )
        return f"written {state.level_range.written} {levels}"

    def steps(self, state: State) -> tuple[Process, ...]:
        return state.processes

    def successors(self, state: State) -> Iterator[Transition[State]]:
        for me, process in enumerate(state.processes):
            if process.at in (DEAD, FINISHED):
                continue
            if state.kills:
                dead = self._with(state, me, process._replace(at=DEAD))
                yield Transition(f"kill {me}", dead._replace(kills=state.kills - 1), is_adversary=True)
            for after in getattr(self, "_" + process.role)(state, me, process):
                yield Transition(f"{me}: {process.role}: {process.at}", after, self._broken(after))

    @staticmethod
    def _broken(state: State) -> Violation | None:
        """A level in use has its memory reserved, as much as it was opened with, and what is there is counted."""
        written = state.level_range.written
        level = state.levels[written]
        if written and level.planned != level.opened:
            return Violation(UNRESERVED, f"level {written} is in use with plan {level.opened}: {level}")
        for number, each in enumerate(state.levels):
            if each.has_memory and not each.planned and number != state.noted:
                return Violation(UNCOUNTED, f"level {number} has memory, and no plan counts it: {each}")
        return None

    # Words.

    @staticmethod
    def _with(state: State, me: int, process: Process) -> State:
        return state._replace(processes=replaced(state.processes, me, process))

    def _go(self, state: State, me: int, at: str, **registers: Any) -> State:
        process = state.processes[me]
        if at in (BEGIN, FINISHED):  # nothing is known any more
            return self._with(state, me, Process(process.role, process.left, at))
        return self._with(state, me, process._replace(at=at, **registers))

    def _done(self, state: State, me: int) -> State:
        process = state.processes[me]
        state = self._with(state, me, process._replace(left=process.left - 1))
        return self._go(state, me, BEGIN if process.left > 1 else FINISHED)

    @staticmethod
    def _with_level(state: State, number: int, **words: Any) -> State:
        level = state.levels[number]._replace(**words)
        return state._replace(levels=replaced(state.levels, number, level))

    def _entered(self, state: State, me: int) -> State | None:
        """Takes the lock if it is free or its owner is dead, whose withdrawal is undone.

        Returns None if a live owner holds it.
        """
        if state.lock != FREE_LOCK and state.processes[state.lock].at != DEAD:
            return None
        if state.noted and self._variant != "mark-stays":
            state = self._with_level(state, state.noted, is_marked=False)
        return state._replace(lock=me, noted=0)

    # Up and down.

    def _grower(self, state: State, me: int, process: Process) -> Iterator[State]:
        at, judged = process.at, process.level_range
        if at == BEGIN:
            if state.level_range.written + 1 == len(state.levels):
                yield self._done(state, me)
            else:
                yield self._go(state, me, "is the next level ready", level_range=state.level_range)
            return
        assert judged is not None
        following = judged.written + 1
        if at == "is the next level ready":
            level = state.levels[following]
            is_ready = level.planned and not level.is_marked and level.is_prepared
            yield self._go(state, me, "close" if is_ready else "get the lock")
        elif at == "get the lock":
            entered = self._entered(state, me)
            if entered is not None:
                yield self._go(entered, me, "plan")
        elif at == "plan":
            planned = self._planned(state, following) if state.level_range == judged else state
            yield self._go(planned._replace(lock=FREE_LOCK), me, BEGIN)
        elif at == "close":
            # from the position that was judged: the ring is the same, and not closed
            if state.level_range == judged and not state.levels[judged.written].closed:
                state = self._with_level(state, judged.written, closed="grow")
            yield self._go(state, me, "read the closing")
        else:
            yield from self._follow(state, me, process, judged)

    def _planned(self, state: State, number: int) -> State:
        if not state.levels[number].planned:
            state = self._with_level(state, number, planned=state.plans + 1)._replace(plans=state.plans + 1)
        return self._with_level(state, number, is_prepared=True, has_memory=True)

    def _shrinker(self, state: State, me: int, process: Process) -> Iterator[State]:
        if process.at == BEGIN:
            if not state.level_range.written:
                yield self._done(state, me)  # there is nothing to do
            yield self._go(state, me, "close", level_range=state.level_range)
            return
        assert process.level_range is not None
        if process.at == "close":
            written = process.level_range.written
            if written and state.level_range == process.level_range and not state.levels[written].closed:
                state = self._with_level(state, written, closed="shrink")
            yield self._go(state, me, "read the closing")
        else:
            yield from self._follow(state, me, process, process.level_range)

    def _follow(self, state: State, me: int, process: Process, judged: LevelRange) -> Iterator[State]:
        closed = state.levels[judged.written].closed
        if process.at == "read the closing":
            target = {"grow": judged.written + 1, "shrink": 0}.get(closed, -1)
            if target < 0:
                yield self._done(state, me)
            else:
                yield self._go(state, me, "is the level range the same", level=target)
        elif process.at == "is the level range the same":
            yield self._go(state, me, "open") if state.level_range == judged else self._done(state, me)
        elif process.at == "open":
            # raised from one opening to the next: a late follower changes nothing
            if state.level_range == judged and process.level and state.levels[process.level].closed != "open":
                plan = state.levels[process.level].planned
                state = self._with_level(state, process.level, opened=plan, closed="open")
            yield self._go(state, me, "move")
        elif process.at == "move":
            if state.level_range == judged:
                for number in {judged.written, process.level}:  # the one is left, the other as it was opened
                    state = self._with_level(state, number, closed="")
                state = state._replace(level_range=LevelRange(judged.moves + 1, process.level))
            yield self._done(state, me)

    # Withdrawing.

    def _reclaimer(self, state: State, me: int, process: Process) -> Iterator[State]:
        at, number = process.at, process.level
        if at == BEGIN:
            entered = self._entered(state, me)
            if entered is not None:
                yield self._go(entered, me, "read the level range")
            return
        if at == "read the level range":
            yield self._go(state, me, "find an idle level", level_range=state.level_range)
            return
        judged = process.level_range
        assert judged is not None
        if at == "find an idle level":
            beyond = judged.written + (0 if self._variant == "next-too" else 1)
            idle = [i for i, level in enumerate(state.levels) if level.planned and i > beyond]
            if idle:
                yield self._go(state._replace(noted=idle[0]), me, "mark", level=idle[0])
            else:
                yield self._done(state._replace(lock=FREE_LOCK), me)
        elif at == "mark":
            words: dict[str, Any] = {"planned": 0} if self._variant == "unmarked" else {"is_marked": True}
            yield self._go(self._with_level(state, number, **words), me, "confirm")
        elif at == "confirm":
            if state.level_range == judged or self._variant == "unconfirmed":
                yield self._go(state, me, "unprepare")
            else:
                yield self._go(state, me, "take the mark back")
        elif at == "take the mark back":
            yield self._go(self._with_level(state, number, is_marked=False), me, "end")
        elif at == "unprepare":
            yield self._go(self._with_level(state, number, is_prepared=False), me, "give the memory back")
        elif at == "give the memory back":
            yield self._go(self._with_level(state, number, has_memory=False), me, "clear the plan")
            # refused: the plan stays, and nothing is prepared
            refused = "clear the plan" if self._variant == "refusal-forgotten" else "take the mark back"
            yield self._go(state, me, refused)
        elif at == "clear the plan":
            yield self._go(self._with_level(state, number, planned=0, is_marked=False), me, "end")
        elif at == "end":
            yield self._done(state._replace(lock=FREE_LOCK, noted=0), me)
