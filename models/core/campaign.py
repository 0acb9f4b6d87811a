"""Which configurations of a model are searched, and what each must show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, TypeVar

from models.core.configuration import Configuration
from models.core.search import STUCK, Model, SearchResult, explore

Size = TypeVar("Size", bound=Configuration)


@dataclass(frozen=True)
class Case(Generic[Size]):
    """One search. `expected` is the kind of failure that must be found.

    None stands for the natural verdict: a sound variant is clean, a broken one fails somehow.
    """

    configuration: Size
    expected: str | None = None

    def __str__(self) -> str:
        return str(self.configuration)

    @property
    def stops_early(self) -> bool:
        # A violation is enough to convict; stuck states show only in a complete search.
        return self.expected not in (None, STUCK)

    def is_passed(self, result: SearchResult) -> bool:
        if self.configuration.is_sound:
            return result.is_clean
        if self.expected is None:
            return bool(result.counts)
        return self.expected in result.counts


@dataclass(frozen=True)
class CaseReport(Generic[Size]):
    case: Case[Size]
    result: SearchResult

    @property
    def is_passed(self) -> bool:
        return self.case.is_passed(self.result)

    def as_json(self) -> dict[str, object]:
        result = self.result
        return {
            **asdict(self.case.configuration),
            "expected": self.case.expected,
            "passed": self.is_passed,
            "states": result.states,
            "transitions": result.transitions,
            "accepted": result.accepted,
            "complete": result.is_complete,
            "processor_seconds": round(result.processor_seconds, 2),
            "found": result.counts,
            "traces": {kind: found.labels for kind, found in result.counterexamples.items()},
        }

    def __str__(self) -> str:
        result = self.result
        found = ", ".join(f"{count} {kind}" for kind, count in result.counts.items())
        return (
            f"{self.case}: "
            f"{result.states:,} states, {result.transitions:,} transitions, "
            f"{result.processor_seconds:.1f} s: {found or 'clean'}"
            f"{'' if result.is_complete else ' (stopped at the first)'}"
        )


@dataclass(frozen=True)
class Campaign(Generic[Size]):
    """The searches of one model; `broken` holds the smallest world that shows each mistake."""

    model: Callable[[Size], Model[Any]]
    configuration: type[Size]
    sound: tuple[Case[Size], ...]
    broken: tuple[Case[Size], ...]
    sound_long: tuple[Case[Size], ...] = field(default=())

    @property
    def short(self) -> tuple[Case[Size], ...]:
        return self.sound + self.broken

    @property
    def long(self) -> tuple[Case[Size], ...]:
        return self.short + self.sound_long

    def run(
        self,
        case: Case[Size],
        *,
        state_limit: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> CaseReport[Size]:
        """Search one configuration; raises `StateLimitExceeded` if it is too big."""
        result = explore(
            self.model(case.configuration),
            state_limit=state_limit,
            stop_at_first_violation=case.stops_early,
            progress=progress,
        )
        return CaseReport(case, result)
