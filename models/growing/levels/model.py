"""The levels of the growing queue and the reset of drained ones, one shared access a step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from models.core.participant import PromiseBroken, replaced
from models.core.search import Transition, Violation
from models.growing.levels.rules import Configuration
from models.growing.levels.world import (
    CORRUPT,
    DEAD,
    DOUBLED,
    FINISHED,
    FREE_LOCK,
    GET,
    LOST,
    PASSED,
    PUT,
    TOMBSTONE,
    TORN,
    Level,
    LevelRange,
    Process,
    Slot,
    State,
)


class LevelsModel:
    def __init__(self, configuration: Configuration) -> None:
        self._size = configuration
        self._variant = configuration.variant
        self._producers = len(configuration.producers)

    def initial(self) -> State:
        size = self._size
        return State(
            LevelRange(),
            tuple(Level(slots=(Slot(),) * count) for count in size.slots),
            FREE_LOCK,
            (Process(PUT),) * self._producers + (Process(GET),) * size.consumers,
            frozenset(),
            frozenset(),
            (0,) * self._producers,
            size.shrinks,
            size.kills,
        )

    def is_accepted(self, state: State) -> bool:
        """Returns true if all participants have ended, or if no consumer lives."""
        if all(each.at == DEAD for each in state.processes[self._producers :]):
            return True
        return all(each.at in (DEAD, FINISHED) for each in state.processes)

    def describe(self, state: State) -> str:
        levels = " ".join(
            f"[{level.pop}..{level.push}{'x' * level.closed}{'s' * level.shrinking} from {level.base}]"
            for level in state.levels
        )
        return f"read {state.level_range.read} written {state.level_range.written} {levels} got {len(state.got)}"

    def steps(self, state: State) -> tuple[Process, ...]:
        return state.processes

    def successors(self, state: State) -> Iterator[Transition[State]]:
        for me, process in enumerate(state.processes):
            if process.at in (DEAD, FINISHED):
                continue
            if state.kills:
                left = Process(DEAD, process.number, *process[2:]) if process.holds else Process(DEAD, process.number)
                dead = self._replaced(state, me, left)
                yield Transition(f"kill {me}", dead._replace(kills=state.kills - 1), is_adversary=True)
            for after in self._step(state, me, process):
                label = f"{me}: {process.at}"
                if isinstance(after, Violation):
                    yield Transition(label, state, after)
                else:
                    yield Transition(label, after)

    def _step(self, state: State, me: int, process: Process) -> Iterator[State | Violation]:
        ways = getattr(self, "_" + process.at.split(":")[0])(state, me, process)
        try:
            yield from ways
        except PromiseBroken as broken:
            yield broken.violation

    # Words.

    @staticmethod
    def _replaced(state: State, me: int, process: Process) -> State:
        return state._replace(processes=replaced(state.processes, me, process))

    def _go(self, state: State, me: int, at: str, **registers: Any) -> State:
        process = state.processes[me]._replace(at=at, **registers)
        if at in (PUT, GET, FINISHED):
            process = Process(at, process.number)  # an operation begins with nothing known
        return self._replaced(state, me, process)

    @staticmethod
    def _with_level(state: State, number: int, **words: Any) -> State:
        level = state.levels[number]._replace(**words)
        return state._replace(levels=replaced(state.levels, number, level))

    def _with_slot(self, state: State, number: int, index: int, slot: Slot) -> State:
        slots = state.levels[number].slots
        return self._with_level(state, number, slots=replaced(slots, index, slot))

    @staticmethod
    def _free(process: Process, capacity: int) -> int:
        """The generation of a slot that is free for this position: 0 in the first lap."""
        return 0 if process.position - process.base < capacity else process.position

    def _move(self, state: State, judged: LevelRange, read: int, written: int) -> State:
        """Compare-and-swap of the level range."""
        if self._variant == "range-read-again":
            read += state.level_range.read - judged.read
            written += state.level_range.written - judged.written
            judged = state.level_range
            if written >= len(state.levels):
                raise PromiseBroken(PASSED, f"the written level {written} is none that there is")
        if state.level_range != judged:
            return state
        if read > written:
            raise PromiseBroken(PASSED, f"the read level {read} passes the written level {written}")
        left = state.levels[judged.read]
        if read > judged.read and left.pop != left.push:
            raise PromiseBroken(LOST, f"items {left.pop} to {left.push} are left behind in level {judged.read}")
        return state._replace(level_range=LevelRange(judged.moves + 1, read, written))

    # Put.

    def _put(self, state: State, me: int, process: Process) -> Iterator[State]:
        at, number = process.at, process.level
        level = state.levels[number]
        capacity = len(level.slots)
        index = (process.position - process.base) % capacity
        again = PUT
        if at == again:
            if process.number == self._size.producers[me]:
                yield self._go(state, me, FINISHED)
                return
            yield self._go(
                state,
                me,
                "put: read where the ring begins",
                level_range=state.level_range,
                level=state.level_range.written,
            )
        elif at == "put: read where the ring begins":
            yield self._go(state, me, "put: read the push position", base=level.base)
        elif at == "put: read the push position":
            if level.closed and self._variant != "closed-apart":
                yield self._go(state, me, "follow: read the closing")
                return
            after = (
                "put: read the generation"
                if self._variant == "range-not-checked-again"
                else "put: is the level range the same"
            )
            yield self._go(state, me, after, position=level.push)
        elif at == "put: is the level range the same":
            yield self._go(state, me, "put: read the generation" if state.level_range == process.level_range else again)
        elif at == "put: read the generation":
            if level.slots[index].generation == self._free(process, capacity):
                yield self._go(state, me, "put: claim")
            elif self._variant == "closed-apart" and level.closed:
                yield self._go(state, me, "follow: read the closing")
            elif number + 1 == len(state.levels):
                yield self._go(state, me, again)
            else:
                yield self._go(state, me, "grow: is the next level clean")
        elif at == "put: claim":
            if (level.push, level.closed and self._variant != "closed-apart") != (process.position, False):
                yield self._go(state, me, again)
                return
            if not state.level_range.read <= number <= state.level_range.written:
                raise PromiseBroken(LOST, f"an item goes into level {number}, which no consumer reads any more")
            if process.base != level.base or level.slots[index].generation != self._free(process, capacity):
                raise PromiseBroken(CORRUPT, "a position is claimed whose slot is another one, or not free")
            claimed = self._with_level(state, number, push=process.position + 1)
            yield self._go(claimed, me, "put: publish", holds=True)
        elif at == "put: publish":
            slot = Slot(process.position + 1, (me, process.number))
            published = self._with_slot(state, number, index, slot)
            published = published._replace(put=published.put | {(me, process.number)})
            yield self._go(published, me, again, number=process.number + 1, holds=False)

    # Moves.

    def _grow(self, state: State, me: int, process: Process) -> Iterator[State]:
        level = state.levels[process.level]
        again = PUT
        if process.at == "grow: is the next level clean":
            next_level = state.levels[process.level + 1]
            if not next_level.is_clean and self._variant not in ("reset-in-range", "naive"):
                yield self._go(state, me, again)
            elif self._variant == "naive":
                yield self._go(state, me, "follow: move the level range", word=process.position)
            else:
                yield self._go(state, me, "grow: close")
        elif process.at == "grow: close":
            # from the position that was judged full
            at = "follow: read the closing"
            if (level.push, level.closed) != (process.position, False):
                yield self._go(state, me, at if level.closed else again)
            else:
                yield self._go(self._with_level(state, process.level, closed=True), me, at, position=-1)

    def _follow(self, state: State, me: int, process: Process) -> Iterator[State]:
        """Raise the words of the next level to its opening, then move the level range."""
        again = PUT if me < self._producers else GET
        judged = process.level_range
        assert judged is not None
        written = state.levels[judged.written]
        target = 0 if process.base == TOMBSTONE else judged.written + 1
        if process.at == "follow: read the closing":
            if not written.closed or (not written.shrinking and judged.written + 1 == len(state.levels)):
                yield self._go(state, me, again)
                return
            if self._variant == "followed-by-maker-only" and process.position != -1:
                yield self._go(state, me, again)
                return
            shrinking = TOMBSTONE if written.shrinking else 0
            at = "follow: raise the base" if self._variant == "unused-seems-used" else "follow: note what is reset"
            yield self._go(state, me, at, base=shrinking, word=written.push + 1)
        elif process.at == "follow: note what is reset":
            level = state.levels[target]
            noted = (
                self._with_level(state, target, reset=max(level.reset, level.push))
                if level.push == level.base
                else state
            )
            yield self._go(noted, me, "follow: raise the base")
        elif process.at == "follow: raise the base":
            yield self._go(self._raised(state, target, "base", process.word), me, "follow: raise the pop position")
        elif process.at == "follow: raise the pop position":
            yield self._go(self._raised(state, target, "pop", process.word), me, "follow: raise the push position")
        elif process.at == "follow: raise the push position":
            yield self._go(self._raised(state, target, "push", process.word), me, "follow: move the level range")
        elif process.at == "follow: move the level range":
            if self._variant == "naive":
                opened = (
                    state if state.level_range != judged else self._opened(state, judged.written + 1, process.word + 1)
                )
                yield self._go(self._move(opened, judged, judged.read, judged.written + 1), me, again)
                return
            read = 0 if process.base == TOMBSTONE else judged.read
            yield self._go(self._move(state, judged, read, target), me, again)

    def _raised(self, state: State, number: int, word: str, to: int) -> State:
        level = state.levels[number]
        if getattr(level, word) >= to and self._variant != "lowered":
            return state
        words: dict[str, Any] = {word: to}
        if word == "push":
            words |= {"closed": False, "shrinking": False}
        return self._with_level(state, number, **words)

    def _opened(self, state: State, number: int, to: int) -> State:
        for word in ("base", "pop", "push"):
            state = self._raised(state, number, word, to)
        return state

    def _shrink(self, state: State, me: int, process: Process) -> Iterator[State]:
        again = GET
        level = state.levels[process.level]
        if process.at == "shrink: is level 0 clean":
            yield self._go(state, me, "shrink: read the position" if state.levels[0].is_clean else again)
        elif process.at == "shrink: read the position":
            position = level.push if self._variant == "shrink-unjudged" else level.pop
            yield self._go(state, me, "shrink: is the level range the same", position=position)
        elif process.at == "shrink: is the level range the same":
            yield self._go(state, me, "shrink: close" if state.level_range == process.level_range else again)
        elif process.at == "shrink: close":
            if (level.push, level.closed) != (process.position, False):
                yield self._go(state, me, again)
                return
            if level.pop != level.push:
                raise PromiseBroken(LOST, "a ring that is not empty is closed for shrinking")
            closed = self._with_level(state, process.level, closed=True, shrinking=True)
            closed = closed._replace(shrinks=closed.shrinks - 1)
            yield self._go(closed, me, "follow: read the closing", position=-1)

    # Get.

    def _get(self, state: State, me: int, process: Process) -> Iterator[State]:
        at, number = process.at, process.level
        level = state.levels[number]
        index = (process.position - process.base) % len(level.slots)
        again = GET
        if at == again:
            if self._is_over(state):
                yield self._go(state, me, FINISHED)
                return
            yield from self._recover(state, me)
            yield from self._reclaim_begin(state, me)
            yield self._go(
                state,
                me,
                "get: read where the ring begins",
                level_range=state.level_range,
                level=state.level_range.read,
            )
        elif at == "get: read where the ring begins":
            yield self._go(state, me, "get: read the pop position", base=level.base)
        elif at == "get: read the pop position":
            after = (
                "get: read the generation"
                if self._variant == "range-not-checked-again"
                else "get: is the level range the same"
            )
            yield self._go(state, me, after, position=level.pop)
        elif at == "get: is the level range the same":
            yield self._go(state, me, "get: read the generation" if state.level_range == process.level_range else again)
        elif at == "get: read the generation":
            seen = level.slots[index].generation
            is_there = seen == process.position + 1 or seen == TOMBSTONE
            yield self._go(state, me, "get: claim" if is_there else "get: read the push position")
        elif at == "get: claim":
            if level.pop != process.position:
                yield self._go(state, me, again)
                return
            yield self._claimed(state, me, process, index)
        elif at == "get: release":
            slot = level.slots[index]
            if slot.item != process.item:
                raise PromiseBroken(TORN, f"{process.item} was claimed, and {slot.item} is there")
            yield self._go(self._released(state, process, index), me, again, item=None, holds=False)
        elif at == "get: read the push position":
            yield from self._found_nothing(state, me, process, level)

    def _claimed(self, state: State, me: int, process: Process, index: int) -> State:
        level = state.levels[process.level]
        slot = level.slots[index]
        if process.base != level.base or slot.generation not in (process.position + 1, TOMBSTONE):
            raise PromiseBroken(CORRUPT, "an item is claimed whose slot is another one")
        claimed = self._with_level(state, process.level, pop=process.position + 1)
        if slot.item is None:
            return self._go(claimed, me, "get: release", item=None, holds=True)
        producer, count = slot.item
        if count < claimed.taken[producer]:
            raise PromiseBroken(DOUBLED, f"item {count} of producer {producer} is claimed again, or after a later one")
        taken = (*claimed.taken[:producer], count + 1, *claimed.taken[producer + 1 :])
        return self._go(claimed._replace(taken=taken), me, "get: release", item=slot.item, holds=True)

    def _released(self, state: State, process: Process, index: int) -> State:
        capacity = len(state.levels[process.level].slots)
        released = self._with_slot(state, process.level, index, Slot(process.position + capacity))
        if process.item is None:
            return released
        if process.item in released.got:
            raise PromiseBroken(DOUBLED, f"{process.item} is delivered twice")
        return released._replace(got=released.got | {process.item})

    def _found_nothing(self, state: State, me: int, process: Process, level: Level) -> Iterator[State]:
        again = GET
        judged = process.level_range
        assert judged is not None
        if level.push != process.position:
            yield self._go(state, me, again)  # in mid-copy
        elif judged.read < judged.written and (level.closed or self._variant == "naive"):
            yield self._go(state, me, "leave: judge")
        elif level.closed:
            yield self._go(state, me, "follow: read the closing")
        else:
            yield self._go(state, me, again)
            if judged.read == judged.written > 0 and state.shrinks:
                yield self._go(state, me, "shrink: is level 0 clean")

    def _leave(self, state: State, me: int, process: Process) -> Iterator[State]:
        """The read level moves on."""
        again = GET
        judged = process.level_range
        assert judged is not None
        level = state.levels[judged.read]
        if process.at == "leave: judge":
            is_drained = level.pop == level.push and (level.closed or self._variant == "naive")
            yield self._go(
                state, me, "leave: move the level range" if is_drained and state.level_range == judged else again
            )
        else:
            yield self._go(self._move(state, judged, judged.read + 1, judged.written), me, again)

    # Upkeep, under a lock.

    def _reclaim_begin(self, state: State, me: int) -> Iterator[State]:
        is_held = state.lock != FREE_LOCK and state.processes[state.lock].at != DEAD
        for number, level in enumerate(state.levels):
            in_use = state.level_range.read <= number <= state.level_range.written
            if not in_use and not level.is_clean and not is_held:
                yield self._go(state._replace(lock=me), me, "reclaim: judge", level=number)

    def _reclaim(self, state: State, me: int, process: Process) -> Iterator[State]:
        level = state.levels[process.level]
        again = GET
        if process.at == "reclaim: judge":
            released = all(slot.item is None and slot.generation != TOMBSTONE for slot in level.slots)
            if not released and self._variant != "reset-under-readers":
                yield self._go(state._replace(lock=FREE_LOCK), me, again)
            else:
                yield self._go(state, me, "reclaim: zero")
        elif process.at == "reclaim: zero":
            zeroed = self._with_level(state, process.level, slots=(Slot(),) * len(level.slots))
            yield self._go(zeroed, me, "reclaim: store what is reset")
        else:
            done = self._with_level(state, process.level, reset=level.push)._replace(lock=FREE_LOCK)
            yield self._go(done, me, again)

    # The dead, in one step each.

    def _recover(self, state: State, me: int) -> Iterator[State]:
        for number, dead in enumerate(state.processes):
            if dead.at != DEAD or not dead.holds:
                continue
            index = (dead.position - dead.base) % len(state.levels[dead.level].slots)
            if number < self._producers:
                settled = self._with_slot(state, dead.level, index, Slot(TOMBSTONE))
            else:
                settled = self._released(state, dead, index)
            settled = self._replaced(settled, number, dead._replace(holds=False))
            yield self._go(settled, me, GET)

    def _is_over(self, state: State) -> bool:
        """Returns true if all that was put is delivered, and no producer puts any more."""
        producers = state.processes[: self._producers]
        return all(each.at in (DEAD, FINISHED) for each in producers) and state.put <= state.got
