"""Which configurations are searched, and what each must show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

from models.bounded_ledger.model import LedgerModel
from models.bounded_ledger.rules import LEDGER_SCAN_EACH, SOUND, Configuration
from models.bounded_ledger.world import CHANGED, DOUBLED, LOST, TORN
from models.search import STUCK, SearchResult, explore


@dataclass(frozen=True)
class Case:
    """One search. `expected` is the kind of failure that must be found.

    None stands for the natural verdict: a sound variant is clean, a broken one fails somehow.
    """

    configuration: Configuration
    expected: str | None = None

    @property
    def stops_early(self) -> bool:
        # A violation is enough to convict; stuck states show only in a complete search.
        return self.expected not in (None, STUCK)

    def is_passed(self, result: SearchResult) -> bool:
        if self.configuration.variant in SOUND:
            return result.is_clean
        if self.expected is None:
            return bool(result.counts)
        return self.expected in result.counts


@dataclass(frozen=True)
class CaseReport:
    case: Case
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
            f"{'ok    ' if self.is_passed else 'FAILED'} {self.case.configuration}: "
            f"{result.states:,} states, {result.transitions:,} transitions, "
            f"{result.processor_seconds:.1f} s: {found or 'clean'}"
            f"{'' if result.is_complete else ' (stopped at the first)'}"
        )


def run_case(
    case: Case,
    *,
    state_limit: int,
    progress: Callable[[int, int], None] | None = None,
) -> CaseReport:
    """Search one configuration; raises `StateLimitExceeded` if it is too big."""
    result = explore(
        LedgerModel(case.configuration),
        state_limit=state_limit,
        stop_at_first_violation=case.stops_early,
        progress=progress,
    )
    return CaseReport(case, result)


# The smallest world that shows each mistake.
BROKEN: tuple[Case, ...] = (
    Case(Configuration(variant="plain"), STUCK),
    Case(Configuration(variant="intent-after-claim"), STUCK),
    Case(Configuration(variant="clear-before-publish"), STUCK),
    Case(Configuration(variant="clear-before-release", consumers=2), STUCK),
    Case(Configuration(variant="head-first-publish", item_slots=(2,), kills=0), CHANGED),
    Case(Configuration(variant="head-last-release", item_slots=(2,), items=2, consumers=2), TORN),
    Case(Configuration(variant="deliver-before-release", consumers=2), DOUBLED),
    Case(Configuration(variant="no-live-check", producers=2), CHANGED),
    Case(Configuration(variant="scan-before-positions", producers=2), CHANGED),
    Case(Configuration(variant="no-position-check"), STUCK),
    Case(Configuration(variant="free-under-head", item_slots=(2,), items=2, consumers=2), TORN),
    Case(Configuration(variant="adopter-plain-claim", consumers=3), CHANGED),
    Case(
        Configuration(variant="adopter-plain-release", item_slots=(2,), items=2, consumers=2),
        CHANGED,
    ),
    Case(
        Configuration(variant="scan-each-plain-release", item_slots=(2,), items=2, consumers=2),
        CHANGED,
    ),
    Case(Configuration(variant="tombstone-without-compare", producers=2), LOST),
    Case(Configuration(variant="reuse-unrecovered", rejoins=1), STUCK),
    Case(Configuration(variant="reuse-adopted", consumers=2, kills=2, rejoins=1), STUCK),
    Case(Configuration(variant="adopt-without-intent", consumers=2, kills=2, rejoins=1), STUCK),
)

# What a crash can meet: each side alone and contended, several laps, items of several slots,
# recoverers that are killed too, and dead lines that are taken over.
SOUND_SHORT: tuple[Case, ...] = (
    Case(Configuration(items=3, consumers=1, kills=0)),
    Case(Configuration(items=3, consumers=2)),
    Case(Configuration(producers=2, kills=2)),
    Case(Configuration(producers=2, items=2)),
    Case(Configuration(items=3, item_slots=(1, 2), consumers=2, kills=2)),
    Case(Configuration(items=2, item_slots=(2,), consumers=2, kills=2)),
    Case(Configuration(capacity=3, items=2, item_slots=(3,), consumers=2)),
    Case(Configuration(producers=2, item_slots=(2,), kills=2)),
    Case(Configuration(rejoins=1, kills=2)),
    Case(Configuration(rejoins=1, producers=2)),
    Case(Configuration(variant=LEDGER_SCAN_EACH, producers=2, kills=2)),
    Case(Configuration(variant=LEDGER_SCAN_EACH, items=2, item_slots=(2,), consumers=2)),
    Case(Configuration(variant=LEDGER_SCAN_EACH, rejoins=1, kills=2)),
)
SOUND_LONG: tuple[Case, ...] = (
    Case(Configuration(items=3, consumers=2, kills=2)),
    Case(Configuration(capacity=4, items=3, item_slots=(2, 1, 3), consumers=2, kills=2)),
    Case(Configuration(producers=2, items=2, item_slots=(2,), kills=2)),
    Case(Configuration(capacity=4, producers=2, items=2, item_slots=(3, 2), kills=2)),
    Case(Configuration(producers=3, kills=3)),
    Case(Configuration(producers=2, consumers=2, kills=2)),
    Case(Configuration(producers=2, item_slots=(2,), consumers=2, kills=2)),
    Case(Configuration(capacity=4, producers=2, item_slots=(2,), consumers=2, kills=2)),
    Case(Configuration(item_slots=(2,), consumers=3, kills=3)),
    Case(Configuration(items=2, item_slots=(2,), consumers=3, kills=2)),
    Case(Configuration(rejoins=1, producers=2, kills=2)),
    Case(Configuration(rejoins=1, producers=2, item_slots=(2,))),
    Case(Configuration(rejoins=1, item_slots=(2,), consumers=2, kills=3)),
    Case(Configuration(rejoins=1, items=2, item_slots=(2,), consumers=2, kills=2)),
    Case(Configuration(rejoins=1, producers=2, consumers=2)),
    Case(Configuration(variant=LEDGER_SCAN_EACH, producers=2, consumers=2, kills=2)),
    Case(Configuration(variant=LEDGER_SCAN_EACH, item_slots=(2,), consumers=3, kills=2)),
    Case(Configuration(variant=LEDGER_SCAN_EACH, rejoins=1, consumers=2, kills=2)),
)

SHORT = SOUND_SHORT + BROKEN
LONG = SHORT + SOUND_LONG
