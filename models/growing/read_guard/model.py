"""The read guard of the growing queue: taken, used and dropped, beside a reclaimer that gives memory back.

One level is in use. The level range counts the moves from one level to the next, which has memory or gets it.
A level that was left is drained until its memory is reclaimed.
A store goes into a buffer of its processor first. The others see it any time later, in order; a fence of all
processors empties all buffers. Loads are not delayed.
The search asks whether a participant ever reads a level that has no memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from models.core.participant import replaced
from models.core.search import Transition, Violation
from models.growing.read_guard.rules import Configuration

LATE = "late"
FREE_LOCK = -1
LEVELS = 3
NOTHING, ALL_LEVELS = 0, -1
"""What a guard says instead of a level range. Level ranges are numbered from one on."""
DEAD, FINISHED, BEGIN = "dead", "finished", "begin"
READER, REDELIVERER, RECLAIMER = "reader", "redeliverer", "reclaimer"


class Process(NamedTuple):
    role: str
    left: int
    at: str = BEGIN
    level_range: int = 1
    """The level range that it has seen last; a reader remembers it."""
    level: int = 0
    line: int = 0


class State(NamedTuple):
    level_range: int
    """One more than the moves that were made. The level in use follows from it."""
    has_memory: tuple[bool, ...]
    is_drained: tuple[bool, ...]
    lock: int
    lines: tuple[int, ...]
    """The guard of each process, as the others see it."""
    buffers: tuple[tuple[int, ...], ...]
    """What each process has stored in its line and the others do not see yet."""
    processes: tuple[Process, ...]
    moves: int
    kills: int


def level_of(level_range: int) -> int:
    return (level_range - 1) % LEVELS


class ReadGuardModel:
    def __init__(self, configuration: Configuration) -> None:
        self._size = configuration
        self._variant = configuration.variant

    def initial(self) -> State:
        size = self._size
        roles = ((READER, size.readers), (REDELIVERER, size.redeliverers), (RECLAIMER, size.reclaimers))
        processes = tuple(Process(role, times) for role, each in roles for times in each)
        memory = (True,) + (False,) * (LEVELS - 1)
        no_guards = (NOTHING,) * len(processes)
        buffers = ((),) * len(processes)
        return State(1, memory, (False,) * LEVELS, FREE_LOCK, no_guards, buffers, processes, size.moves, size.kills)

    def is_accepted(self, state: State) -> bool:
        return all(each.at in (DEAD, FINISHED) for each in state.processes)

    def describe(self, state: State) -> str:
        memory = " ".join(
            ("+" if has else "-") + "!" * drained
            for has, drained in zip(state.has_memory, state.is_drained, strict=True)
        )
        lines = " ".join(
            f"{line}{list(late) if late else ''}" for line, late in zip(state.lines, state.buffers, strict=True)
        )
        return f"level range {state.level_range} memory {memory} guards {lines}"

    def successors(self, state: State) -> Iterator[Transition[State]]:
        yield from self._move(state)
        for me, process in enumerate(state.processes):
            if state.buffers[me]:
                yield Transition(f"{me}: its store is seen", self._seen(state, me))
            if process.at in (DEAD, FINISHED):
                continue
            if state.kills:
                dead = self._with(self._all_seen(state, me), me, process._replace(at=DEAD))
                yield Transition(f"kill {me}", dead._replace(kills=state.kills - 1), is_adversary=True)
            yield from getattr(self, "_" + process.role)(state, me, process)

    def _move(self, state: State) -> Iterator[Transition[State]]:
        """A put or a get opens the next level, and gives it memory, once that level was reclaimed."""
        following = level_of(state.level_range + 1)
        if state.moves and not state.is_drained[following]:
            memory = replaced(state.has_memory, following, True)
            drained = replaced(state.is_drained, level_of(state.level_range), True)
            yield Transition(
                "the level range moves",
                state._replace(
                    level_range=state.level_range + 1, has_memory=memory, is_drained=drained, moves=state.moves - 1
                ),
            )

    # Words.

    @staticmethod
    def _with(state: State, me: int, process: Process) -> State:
        return state._replace(processes=replaced(state.processes, me, process))

    def _go(self, state: State, me: int, at: str, **registers: Any) -> Transition[State]:
        process = state.processes[me]
        after = self._with(state, me, process._replace(at=at, **registers))
        return Transition(f"{me}: {process.role}: {process.at}", after)

    def _done(self, state: State, me: int) -> Transition[State]:
        left = state.processes[me].left - 1
        return self._go(state, me, BEGIN if left else FINISHED, left=left, level=0, line=0)

    @staticmethod
    def _store(state: State, me: int, word: int) -> State:
        buffer = (*state.buffers[me], word)
        return state._replace(buffers=replaced(state.buffers, me, buffer))

    @staticmethod
    def _seen(state: State, me: int) -> State:
        first, *rest = state.buffers[me]
        return state._replace(
            lines=replaced(state.lines, me, first),
            buffers=(*state.buffers[:me], tuple(rest), *state.buffers[me + 1 :]),
        )

    def _all_seen(self, state: State, me: int) -> State:
        while state.buffers[me]:
            state = self._seen(state, me)
        return state

    def _read(self, state: State, me: int, level: int, then: str) -> Transition[State]:
        after = self._go(state, me, then)
        if state.has_memory[level]:
            return after
        return after._replace(violation=Violation(LATE, f"{me} reads level {level}, which has no memory"))

    # A reader of the level in use.

    def _reader(self, state: State, me: int, process: Process) -> Iterator[Transition[State]]:
        at = process.at
        if at == BEGIN:
            if self._variant == "unguarded":
                yield self._go(state, me, "read the slot", level_range=state.level_range)
            elif self._variant == "range-read-first":
                yield self._go(state, me, "take the guard", level_range=state.level_range)
            else:
                yield self._go(self._store(state, me, process.level_range), me, "is it still this level range")
        elif at == "take the guard":
            yield self._go(self._store(state, me, process.level_range), me, "read the slot")
        elif at == "is it still this level range":
            if state.level_range == process.level_range:
                yield self._go(
                    state, me, "drop the guard early" if self._variant == "guard-dropped-early" else "read the slot"
                )
            else:
                yield self._go(self._store(state, me, state.level_range), me, at, level_range=state.level_range)
        elif at == "drop the guard early":
            yield self._go(self._store(state, me, NOTHING), me, "read the slot")
        elif at == "read the slot":
            yield self._read(state, me, level_of(process.level_range), "drop the guard")
        elif at == "drop the guard":
            yield self._done(self._store(state, me, NOTHING), me)

    # A redeliverer of what dead consumers held in a level that was left.

    def _redeliverer(self, state: State, me: int, process: Process) -> Iterator[Transition[State]]:
        at = process.at
        announced = self._store(state, me, ALL_LEVELS)
        if at == BEGIN:
            if not state.moves and not any(state.is_drained):
                yield self._done(state, me)  # there will be nothing to redeliver
            if self._is_free(state):
                yield self._go(state._replace(lock=me), me, "find")
        elif at == "find":
            drained = [level for level in range(LEVELS) if state.is_drained[level]]
            if not drained:
                yield self._done(state._replace(lock=FREE_LOCK), me)
            for level in drained:
                if self._variant == "guarded-after-the-lock":
                    yield self._go(state, me, "leave first", level=level)
                else:
                    yield self._go(announced, me, "leave", level=level)
        elif at == "leave first":
            yield self._go(state._replace(lock=FREE_LOCK), me, "take the guard late")
        elif at == "take the guard late":
            yield self._go(announced, me, "read the slot")
        elif at == "leave":
            # Unlocking is a release: the next owner sees what was stored before.
            yield self._go(self._all_seen(state, me)._replace(lock=FREE_LOCK), me, "read the slot")
        elif at == "read the slot":
            yield self._read(state, me, process.level, "drop the guard")
        elif at == "drop the guard":
            yield self._done(self._store(state, me, NOTHING), me)

    # A reclaimer.

    def _is_free(self, state: State) -> bool:
        return state.lock == FREE_LOCK or state.processes[state.lock].at == DEAD

    def _reclaimer(self, state: State, me: int, process: Process) -> Iterator[Transition[State]]:
        at = process.at
        if at == BEGIN:
            if self._is_free(state):
                yield self._go(
                    state._replace(lock=me),
                    me,
                    "read the guards first" if self._variant == "guards-read-first" else "read the level range",
                )
        elif at == "read the guards first":
            busy = any(state.lines[line] != NOTHING for line in range(len(state.lines)) if line != me)
            yield self._go(state, me, "leave" if busy else "read the level range")
        elif at == "read the level range":
            yield self._go(state, me, "find", level_range=state.level_range)
        elif at == "find":
            level = level_of(process.level_range)
            drained = [i for i in range(LEVELS) if state.is_drained[i] and i != level]
            if not drained:
                yield self._go(state, me, "leave")
            for found in drained:
                then = "reclaim" if self._variant == "guards-read-first" else "fence"
                yield self._go(state, me, then, level=found, line=0)
        elif at == "fence":
            if self._variant != "no-fence":
                for each in range(len(state.processes)):
                    state = self._all_seen(state, each)
            yield self._go(state, me, "read a guard")
        elif at == "read a guard":
            yield from self._read_guard(state, me, process)
        elif at == "reclaim":
            memory = replaced(state.has_memory, process.level, False)
            is_drained = replaced(state.is_drained, process.level, False)
            yield self._go(state._replace(has_memory=memory, is_drained=is_drained), me, "leave")
        elif at == "leave":
            yield self._done(state._replace(lock=FREE_LOCK), me)

    def _read_guard(self, state: State, me: int, process: Process) -> Iterator[Transition[State]]:
        line = process.line
        if line == len(state.lines):
            yield self._go(state, me, "reclaim")
            return
        counts_as_dead = state.processes[line].at == DEAD and self._variant != "dead-guards-count"
        if state.lines[line] in (NOTHING, process.level_range) or counts_as_dead:
            yield self._go(state, me, "read a guard", line=line + 1)
        else:  # read again: the reader is about to drop its guard
            yield self._go(state, me, "read a guard")
