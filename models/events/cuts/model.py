"""A log on a disk after a crash of the machine: several open it at once, and a kill may come at every step.

The log has four old items, of which two are synced, and a durable reader that had committed three. An
opener settles: it cuts the log at two, unless another opener has done so in this boot. Then it puts an item.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from models.core.participant import replaced
from models.core.search import Transition, Violation
from models.events.cuts.rules import Configuration

BELIEVED, LOST, SILENT, UNTOLD = "believed", "lost", "silent", "untold"
NOBODY = -1
OLD, SYNCED, COMMITTED = 4, 2, 3
DEAD, FINISHED, BEGIN = "dead", "finished", "begin"
PUT = "put"


class State(NamedTuple):
    log: tuple[int, ...]
    """The opener that put the item at each position; NOBODY for the old items."""
    place: int
    beyond: int
    cuts: int
    is_noted: bool
    """Do the witnesses say this boot?"""
    settling: int
    """The opener that holds the settling lock exclusively."""
    sharing: frozenset[int]
    lines: frozenset[int]
    """The openers that hold a line."""
    lock: int
    at: tuple[str, ...]
    kills: int


class CutsModel:
    def __init__(self, configuration: Configuration) -> None:
        self._size = configuration
        self._variant = configuration.variant
        self._steps = self._order()

    def initial(self) -> State:
        size = self._size
        none: frozenset[int] = frozenset()
        old = (NOBODY,) * OLD
        return State(old, COMMITTED, 0, 0, False, NOBODY, none, none, NOBODY, (BEGIN,) * size.openers, size.kills)

    def is_accepted(self, state: State) -> bool:
        return all(at in (DEAD, FINISHED) for at in state.at)

    def describe(self, state: State) -> str:
        return (
            f"log {state.log} place {state.place} beyond {state.beyond} cuts {state.cuts} noted {state.is_noted} "
            f"alone {state.settling} lock {state.lock}"
        )

    def successors(self, state: State) -> Iterator[Transition[State]]:
        for me, at in enumerate(state.at):
            if at in (DEAD, FINISHED):
                continue
            if state.kills:
                dead = self._let_go(state, me)._replace(kills=state.kills - 1)
                yield Transition(f"kill {me}", self._at(dead, me, DEAD), is_adversary=True)
            after = self._step(state, me, at)
            if after is not None:
                yield Transition(f"{me}: {at}", after, self._broken(state, after, me))

    # What an opener does.

    def _order(self) -> list[str]:
        """The steps of a cut, under the queue's lock."""
        readers, counted, noted = ["note where the reader was", "lower its place"], ["count"], ["note the boot"]
        if self._variant == "lowered-first":
            readers.reverse()
        if self._variant == "never-counted":
            counted = []
        if self._variant == "noted-first":
            return ["lock", *noted, *readers, "cut", *counted, "leave"]
        if self._variant == "noted-before-counted":
            return ["lock", *readers, "cut", *noted, *counted, "leave"]
        return ["lock", *readers, "cut", *counted, *noted, "leave"]

    def _step(self, state: State, me: int, at: str) -> State | None:
        """Returns None if the opener must wait."""
        if at == BEGIN:
            return self._begin(state, me)
        if at == "check the boot":
            return self._check_boot(state, me)
        if at == PUT:
            if state.lock != NOBODY:
                return None
            after = state._replace(log=(*state.log, me), lines=state.lines | {me})
            return self._at(after, me, FINISHED)
        return self._cut(state, me, at)

    def _begin(self, state: State, me: int) -> State | None:
        if self._variant == "lines-only":
            return self._at(state, me, "check the boot")
        if state.settling == NOBODY and not state.sharing:
            return self._at(state._replace(settling=me), me, "check the boot")
        if state.settling == NOBODY:
            return self._at(state._replace(sharing=state.sharing | {me}), me, PUT)
        return None

    def _check_boot(self, state: State, me: int) -> State:
        if state.is_noted or state.lines - {me}:
            return self._at(self._shared(state, me), me, PUT)
        if self._variant == "shared-early":
            state = self._shared(state, me)
        return self._at(state._replace(lines=state.lines | {me}), me, self._steps[0])

    def _cut(self, state: State, me: int, at: str) -> State | None:
        after = state
        if at == "lock":
            if state.lock != NOBODY:
                return None
            if state.is_noted:  # another opener was faster
                return self._at(self._shared(state, me), me, PUT)
            after = state._replace(lock=me)
        elif at == "note where the reader was":
            if state.place > SYNCED:
                after = state._replace(beyond=state.place)
        elif at == "lower its place":
            after = state._replace(place=min(state.place, SYNCED))
        elif at == "cut":
            after = state._replace(log=state.log[:SYNCED])
        elif at == "count":
            after = state._replace(cuts=min(state.cuts + 1, 2))
        elif at == "note the boot":
            after = state._replace(is_noted=True)
        elif at == "leave":
            return self._at(self._shared(state._replace(lock=NOBODY), me), me, PUT)
        return self._at(after, me, self._steps[self._steps.index(at) + 1])

    # Words.

    @staticmethod
    def _at(state: State, me: int, at: str) -> State:
        return state._replace(at=replaced(state.at, me, at))

    @staticmethod
    def _shared(state: State, me: int) -> State:
        if state.settling != me:
            return state
        return state._replace(settling=NOBODY, sharing=state.sharing | {me})

    @staticmethod
    def _let_go(state: State, me: int) -> State:
        """The kernel drops what a dead opener held; its lock is taken over."""
        return state._replace(
            settling=NOBODY if state.settling == me else state.settling,
            lock=NOBODY if state.lock == me else state.lock,
            sharing=state.sharing - {me},
            lines=state.lines - {me},
        )

    @staticmethod
    def _broken(before: State, after: State, me: int) -> Violation | None:
        finished: list[Any] = [opener for opener, at in enumerate(after.at) if at == FINISHED]
        for opener in finished:
            if opener not in after.log:
                return Violation(LOST, f"what {opener} has put is gone")
        if after.at[me] != FINISHED:
            return None
        if NOBODY in before.log[SYNCED:]:
            return Violation(BELIEVED, f"{me} goes on behind what never reached the disk")
        if after.cuts == 0:
            return Violation(SILENT, f"{me} uses a position again, and no cut is counted")
        if after.beyond == 0:
            return Violation(UNTOLD, "the reader will not learn that its place was another")
        return None
