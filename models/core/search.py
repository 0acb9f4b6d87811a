"""Breadth-first search of every state a model can reach.

A model is a set of hashable states and the steps between them.
The search visits each state once and answers two questions:

* Does some step break a promise?
  The model says so itself, by a transition that carries a `Violation`.
* Is some state stuck, so that no accepted state can be reached from it?
  Steps of the adversary (kills) do not count as a way out: a convenient crash may never come.

Breadth first, so that the first counterexample of each kind is a shortest one.
"""

from __future__ import annotations

import gc
import time
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise, zip_longest
from typing import Generic, NamedTuple, Protocol, TypeVar

State = TypeVar("State", bound=Hashable)

STUCK = "stuck"
PROGRESS_INTERVAL_STATES = 50_000


class Violation(NamedTuple):
    """A broken promise: `kind` is a word to count by, `message` says what was seen."""

    kind: str
    message: str


class Transition(NamedTuple, Generic[State]):
    """One atomic step. A transition with a violation is reported and not followed.

    The label may be any object: it becomes text only if it stands in a counterexample.
    """

    label: object
    state: State
    violation: Violation | None = None
    is_adversary: bool = False


class Model(Protocol[State]):
    """What the search needs to know."""

    def initial(self) -> State: ...

    def successors(self, state: State) -> Iterable[Transition[State]]: ...

    def is_accepted(self, state: State) -> bool:
        """Whether a run may end here."""
        ...

    def describe(self, state: State) -> str:
        """The state in one line, for people."""
        ...


class StateLimitExceeded(RuntimeError):
    """The model has more states than allowed: nothing was shown, neither good nor bad."""


@dataclass(frozen=True)
class Counterexample:
    """A shortest run from the initial state into trouble."""

    kind: str
    message: str
    labels: tuple[str, ...]
    descriptions: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{self.kind}: {self.message}", f"   0. start -> {self.descriptions[0]}"]
        # The last step of a violation is refused: it has a label and no state of its own.
        described = zip_longest(self.labels, pairwise(self.descriptions))
        for number, (label, states) in enumerate(described, 1):
            is_change = states is not None and states[0] != states[1]
            lines.append(f"{number:4}. {label}" + (f" -> {states[1]}" if is_change else ""))
        return "\n".join(lines)


@dataclass(frozen=True)
class SearchResult:
    """What was visited and what was found; `is_complete` is False after an early stop."""

    states: int
    transitions: int
    accepted: int
    processor_seconds: float
    is_complete: bool
    counts: dict[str, int] = field(default_factory=dict)
    counterexamples: dict[str, Counterexample] = field(default_factory=dict)

    @property
    def is_clean(self) -> bool:
        return self.is_complete and not self.counts


class _ReverseEdges:
    """The predecessors of each state, as linked lists in flat arrays: 12 bytes an edge."""

    _NONE = 0xFFFFFFFF

    def __init__(self) -> None:
        self._newest = array("I")
        self._source = array("I")
        self._older = array("I")

    def add_state(self) -> None:
        self._newest.append(self._NONE)

    def add(self, source: int, target: int) -> None:
        self._source.append(source)
        self._older.append(self._newest[target])
        self._newest[target] = len(self._source) - 1

    def sources(self, target: int) -> Iterable[int]:
        edge = self._newest[target]
        while edge != self._NONE:
            yield self._source[edge]
            edge = self._older[edge]


class _Search(Generic[State]):
    def __init__(
        self,
        model: Model[State],
        *,
        state_limit: int,
        stop_at_first_violation: bool,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self._model = model
        self._state_limit = state_limit
        self._stop_at_first_violation = stop_at_first_violation
        self._progress = progress
        self._states: list[State] = []
        self._number_of: dict[State, int] = {}
        self._parents = array("I")
        self._edges = _ReverseEdges()
        self._may_end = bytearray()
        self._transitions = 0
        self._accepted = 0
        self._counts: dict[str, int] = {}
        self._counterexamples: dict[str, Counterexample] = {}

    def run(self) -> SearchResult:
        started = time.process_time()
        is_complete = self._visit_all()
        if is_complete:
            self._find_stuck()
        return SearchResult(
            states=len(self._states),
            transitions=self._transitions,
            accepted=self._accepted,
            processor_seconds=time.process_time() - started,
            is_complete=is_complete,
            counts=self._counts,
            counterexamples=self._counterexamples,
        )

    def _visit_all(self) -> bool:
        self._add(self._model.initial(), 0)
        number = 0
        while number < len(self._states):
            self._visit(number)
            if self._stop_at_first_violation and self._counts:
                return False
            number += 1
            if self._progress and number % PROGRESS_INTERVAL_STATES == 0:
                self._progress(number, len(self._states))
        return True

    def _visit(self, number: int) -> None:
        for transition in self._model.successors(self._states[number]):
            self._transitions += 1
            if transition.violation:
                # What would have come after is unknown, so this state is not called stuck too.
                self._may_end[number] = True
                self._report(transition.violation, number, transition.label)
                continue
            target = self._number_of.get(transition.state)
            if target is None:
                target = self._add(transition.state, number)
            if not transition.is_adversary:
                self._edges.add(number, target)

    def _add(self, state: State, parent: int) -> int:
        number = len(self._states)
        if number >= self._state_limit:
            raise StateLimitExceeded(
                f"more states than the limit: state_limit={self._state_limit}; "
                "raise the limit or search a smaller configuration"
            )
        is_accepted = self._model.is_accepted(state)
        self._states.append(state)
        self._number_of[state] = number
        self._parents.append(parent)
        self._edges.add_state()
        self._may_end.append(is_accepted)
        self._accepted += is_accepted
        return number

    def _find_stuck(self) -> None:
        can_end = bytearray(self._may_end)
        pending = [number for number, accepted in enumerate(can_end) if accepted]
        while pending:
            for source in self._edges.sources(pending.pop()):
                if not can_end[source]:
                    can_end[source] = True
                    pending.append(source)
        stuck = can_end.count(0)
        if stuck:
            self._report(Violation(STUCK, "no end can be reached from here"), can_end.find(0), None)
            self._counts[STUCK] = stuck

    def _report(self, violation: Violation, number: int, last_label: object | None) -> None:
        kind = violation.kind
        self._counts[kind] = self._counts.get(kind, 0) + 1
        if kind not in self._counterexamples:
            path = self._path_to(number)
            labels = [self._label(before, after) for before, after in pairwise(path)]
            if last_label is not None:
                labels.append(str(last_label))
            descriptions = tuple(self._model.describe(self._states[step]) for step in path)
            self._counterexamples[kind] = Counterexample(
                kind,
                violation.message,
                tuple(labels),
                descriptions,
            )

    def _path_to(self, number: int) -> list[int]:
        path = [number]
        while number:
            number = self._parents[number]
            path.append(number)
        return path[::-1]

    def _label(self, before: int, after: int) -> str:
        # Labels are found again when they are wanted: keeping them would double the memory.
        wanted = self._states[after]
        for transition in self._model.successors(self._states[before]):
            if transition.violation is None and transition.state == wanted:
                return str(transition.label)
        raise RuntimeError("the model's successors must be the same every time it is asked")


def explore(
    model: Model[State],
    *,
    state_limit: int,
    stop_at_first_violation: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> SearchResult:
    """Visit every reachable state of `model`.

    `progress` is called now and then with the number of states visited and known.
    With `stop_at_first_violation` the search ends early and does not look for stuck states.
    Raises `StateLimitExceeded` rather than answer from a part of the states.
    """
    search = _Search(
        model,
        state_limit=state_limit,
        stop_at_first_violation=stop_at_first_violation,
        progress=progress,
    )
    with _collector_paused():
        return search.run()


@contextmanager
def _collector_paused() -> Iterator[None]:
    # States hold no cycles, and the collector would walk millions of them again and again.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
