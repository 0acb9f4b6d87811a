"""Looks of native/growing_looks.hpp: announced, made and over, beside who gives memory back.

One level is in use, and the stage moves from one to the next that has memory, or gets some. What was left is dirty
until its memory is given back. A store goes into a buffer of its processor first and is seen by the others any time
later, in order; a fence for everybody empties all buffers. Loads are not delayed, and see what the others see.
What is asked is whether anybody ever looks at a level that has no memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from models.core.search import Transition, Violation
from models.growing.read_guard.rules import Configuration

LATE = "late"
FREE_LOCK = -1
LEVELS = 3
NOTHING, EVERYTHING = 0, -1
"""What a line says instead of a stage: those are numbered from one on."""
DEAD, FINISHED, BEGIN = "dead", "finished", "begin"
LOOKER, ADOPTER, TIDIER = "looker", "adopter", "tidier"


class Process(NamedTuple):
    role: str
    left: int
    at: str = BEGIN
    stage: int = 1
    """The one that it has seen last; a looker remembers it."""
    level: int = 0
    line: int = 0


class State(NamedTuple):
    stage: int
    """Which move it is after. The level that is in use follows from it."""
    has_memory: tuple[bool, ...]
    is_dirty: tuple[bool, ...]
    lock: int
    lines: tuple[int, ...]
    """What each process is seen to look at."""
    buffers: tuple[tuple[int, ...], ...]
    """What each has stored in its line and nobody sees yet."""
    processes: tuple[Process, ...]
    moves: int
    kills: int


def level_of(stage: int) -> int:
    return (stage - 1) % LEVELS


class LooksModel:
    def __init__(self, configuration: Configuration) -> None:
        self._size = configuration
        self._variant = configuration.variant

    def initial(self) -> State:
        size = self._size
        roles = ((LOOKER, size.lookers), (ADOPTER, size.adopters), (TIDIER, size.tidiers))
        processes = tuple(Process(role, times) for role, each in roles for times in each)
        memory = (True,) + (False,) * (LEVELS - 1)
        nobody = (NOTHING,) * len(processes)
        buffers = ((),) * len(processes)
        return State(1, memory, (False,) * LEVELS, FREE_LOCK, nobody, buffers, processes, size.moves, size.kills)

    def is_accepted(self, state: State) -> bool:
        return all(each.at in (DEAD, FINISHED) for each in state.processes)

    def describe(self, state: State) -> str:
        memory = " ".join(
            ("+" if has else "-") + "!" * dirty for has, dirty in zip(state.has_memory, state.is_dirty, strict=True)
        )
        lines = " ".join(
            f"{line}{list(late) if late else ''}" for line, late in zip(state.lines, state.buffers, strict=True)
        )
        return f"stage {state.stage} memory {memory} looking {lines}"

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
        """Whoever puts and gets: the next level is opened, and gets its memory, only when it is clean."""
        following = level_of(state.stage + 1)
        if state.moves and not state.is_dirty[following]:
            memory = self._put(state.has_memory, following, True)
            dirty = self._put(state.is_dirty, level_of(state.stage), True)
            yield Transition(
                "the stage moves",
                state._replace(stage=state.stage + 1, has_memory=memory, is_dirty=dirty, moves=state.moves - 1),
            )

    # -- words ------------------------------------------------------------------------------------------

    @staticmethod
    def _put(words: tuple[bool, ...], number: int, word: bool) -> tuple[bool, ...]:
        return (*words[:number], word, *words[number + 1 :])

    @staticmethod
    def _with(state: State, me: int, process: Process) -> State:
        return state._replace(processes=(*state.processes[:me], process, *state.processes[me + 1 :]))

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
        return state._replace(buffers=(*state.buffers[:me], buffer, *state.buffers[me + 1 :]))

    @staticmethod
    def _seen(state: State, me: int) -> State:
        first, *rest = state.buffers[me]
        return state._replace(
            lines=(*state.lines[:me], first, *state.lines[me + 1 :]),
            buffers=(*state.buffers[:me], tuple(rest), *state.buffers[me + 1 :]),
        )

    def _all_seen(self, state: State, me: int) -> State:
        while state.buffers[me]:
            state = self._seen(state, me)
        return state

    def _look(self, state: State, me: int, level: int, then: str) -> Transition[State]:
        after = self._go(state, me, then)
        if state.has_memory[level]:
            return after
        return after._replace(violation=Violation(LATE, f"{me} looks at level {level}, which has no memory"))

    # -- looks at what is in use ------------------------------------------------------------------------

    def _looker(self, state: State, me: int, process: Process) -> Iterator[Transition[State]]:
        at = process.at
        if at == BEGIN:
            if self._variant == "unannounced":
                yield self._go(state, me, "look", stage=state.stage)
            elif self._variant == "seen-first":
                yield self._go(state, me, "announce", stage=state.stage)
            else:
                yield self._go(self._store(state, me, process.stage), me, "is it still this stage")
        elif at == "announce":
            yield self._go(self._store(state, me, process.stage), me, "look")
        elif at == "is it still this stage":
            if state.stage == process.stage:
                yield self._go(state, me, "over early" if self._variant == "over-early" else "look")
            else:
                yield self._go(self._store(state, me, state.stage), me, at, stage=state.stage)
        elif at == "over early":
            yield self._go(self._store(state, me, NOTHING), me, "look")
        elif at == "look":
            yield self._look(state, me, level_of(process.stage), "over")
        elif at == "over":
            yield self._done(self._store(state, me, NOTHING), me)

    # -- looks at a level that was left: what the dead held there -----------------------------------------

    def _adopter(self, state: State, me: int, process: Process) -> Iterator[Transition[State]]:
        at = process.at
        announced = self._store(state, me, EVERYTHING)
        if at == BEGIN:
            if not state.moves and not any(state.is_dirty):
                yield self._done(state, me)  # there will be nothing to take over
            if self._is_free(state):
                yield self._go(state._replace(lock=me), me, "find")
        elif at == "find":
            dirty = [level for level in range(LEVELS) if state.is_dirty[level]]
            if not dirty:
                yield self._done(state._replace(lock=FREE_LOCK), me)
            for level in dirty:
                if self._variant == "after-the-lock":
                    yield self._go(state, me, "leave first", level=level)
                else:
                    yield self._go(announced, me, "leave", level=level)
        elif at == "leave first":
            yield self._go(state._replace(lock=FREE_LOCK), me, "announce late")
        elif at == "announce late":
            yield self._go(announced, me, "look")
        elif at == "leave":
            # to unlock is a release: what was stored before is seen by the next owner
            yield self._go(self._all_seen(state, me)._replace(lock=FREE_LOCK), me, "look")
        elif at == "look":
            yield self._look(state, me, process.level, "over")
        elif at == "over":
            yield self._done(self._store(state, me, NOTHING), me)

    # -- giving back ------------------------------------------------------------------------------------

    def _is_free(self, state: State) -> bool:
        return state.lock == FREE_LOCK or state.processes[state.lock].at == DEAD

    def _tidier(self, state: State, me: int, process: Process) -> Iterator[Transition[State]]:
        at = process.at
        if at == BEGIN:
            if self._is_free(state):
                yield self._go(
                    state._replace(lock=me), me, "ask first" if self._variant == "asked-first" else "read the stage"
                )
        elif at == "ask first":
            busy = any(state.lines[line] != NOTHING for line in range(len(state.lines)) if line != me)
            yield self._go(state, me, "leave" if busy else "read the stage")
        elif at == "read the stage":
            yield self._go(state, me, "find", stage=state.stage)
        elif at == "find":
            level = level_of(process.stage)
            dirty = [i for i in range(LEVELS) if state.is_dirty[i] and i != level]
            if not dirty:
                yield self._go(state, me, "leave")
            for found in dirty:
                then = "give back" if self._variant == "asked-first" else "fence"
                yield self._go(state, me, then, level=found, line=0)
        elif at == "fence":
            if self._variant != "no-fence":
                for each in range(len(state.processes)):
                    state = self._all_seen(state, each)
            yield self._go(state, me, "ask")
        elif at == "ask":
            yield from self._ask(state, me, process)
        elif at == "give back":
            memory = self._put(state.has_memory, process.level, False)
            dirty = self._put(state.is_dirty, process.level, False)
            yield self._go(state._replace(has_memory=memory, is_dirty=dirty), me, "leave")
        elif at == "leave":
            yield self._done(state._replace(lock=FREE_LOCK), me)

    def _ask(self, state: State, me: int, process: Process) -> Iterator[Transition[State]]:
        line = process.line
        if line == len(state.lines):
            yield self._go(state, me, "give back")
            return
        counts_as_dead = state.processes[line].at == DEAD and self._variant != "the-dead-too"
        if state.lines[line] in (NOTHING, process.stage) or counts_as_dead:
            yield self._go(state, me, "ask", line=line + 1)
        else:  # asked again: it is about to end its look
            yield self._go(state, me, "ask")
