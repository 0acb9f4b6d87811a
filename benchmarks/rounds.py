"""Measure a case: warm up everybody, then round by round, ours and the peers in turn.

A round has one run of each contender, so a slow minute of the machine hurts all of them alike,
and a ratio is taken within its round. A contender that fails leaves the case with its reason.
"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.case import FASTEST_PEER, Case, Contender, Goal, Plan
from benchmarks.isolation import OK, Outcome, Sample, isolated

UNFIT = "does not fit"
WARM_UP = "warm-up"

Announce = Callable[[Case, Contender, str], None]


@dataclass
class Entry:
    """What was measured of one contender."""

    contender: Contender
    status: str = OK
    why: str = ""
    amount: int = 0
    samples: list[Sample] = field(default_factory=list)

    @property
    def values(self) -> list[float]:
        return [sample.value for sample in self.samples]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def good(self) -> bool:
        return self.status == OK and bool(self.samples)

    def details(self) -> dict[str, float]:
        """Return the median over the rounds of everything else that was measured."""
        names = self.samples[0].details if self.samples else {}
        return {name: statistics.median(sample.details[name] for sample in self.samples) for name in names}

    def take(self, outcome: Outcome) -> None:
        if outcome.sample is not None:
            self.samples.append(outcome.sample)
        else:
            self.status, self.why = outcome.status, outcome.why


@dataclass(frozen=True)
class Verdict:
    """A goal and how far ours has come; a ratio of None means that it could not be taken."""

    goal: Goal
    text: str
    ratio: float | None
    least: float | None
    most: float | None

    @property
    def reached(self) -> bool | None:
        if self.ratio is None:
            return None
        if self.goal.kind == "at least":
            return self.ratio >= self.goal.wanted
        return self.ratio <= self.goal.wanted


@dataclass
class Measured:
    """A case with its entries and verdicts."""

    case: Case
    entries: list[Entry]
    verdicts: list[Verdict]

    @property
    def ours_failed(self) -> bool:
        """Say whether ours is missing or has lost, doubled or reordered an item."""
        return any(entry.contender.ours and entry.status not in (OK, "not built") for entry in self.entries)


class Rounds:
    """Measures case after case and remembers how much each contender can do in a run."""

    def __init__(self, plan: Plan, directory: Path, announce: Announce) -> None:
        self.plan = plan
        self.directory = directory
        self.announce = announce
        self.amounts: dict[tuple[str, str], int] = {}

    def measure(self, case: Case) -> Measured:
        entries = [self._enter(case, contender) for contender in case.contenders]
        for number in range(self.plan.rounds):
            for entry in entries:
                if entry.status == OK:
                    self.announce(case, entry.contender, f"round {number + 1}")
                    entry.take(self._run(entry.contender, entry.amount))
        verdicts = [judge(case, goal, entries) for goal in case.goals]
        return Measured(case, entries, verdicts)

    def steps(self, case: Case) -> int:
        """Return about how many runs the case will take, for the progress bar."""
        return sum(not contender.unfit for contender in case.contenders) * self.plan.rounds

    def _enter(self, case: Case, contender: Contender) -> Entry:
        if contender.unfit:
            return Entry(contender, UNFIT, contender.unfit)
        entry = Entry(contender)
        key = (case.name, contender.name)
        if key in self.amounts:
            entry.amount = self.amounts[key]
            return entry
        if not contender.most:
            entry.amount = contender.amount
            return entry
        self.announce(case, contender, WARM_UP)
        outcome = self._run(contender, contender.amount)
        if outcome.sample is None:
            entry.take(outcome)
            return entry
        entry.amount = contender.amount_for(self.plan.seconds, outcome.sample.seconds)
        if entry.amount > 4 * contender.amount:
            # so short a run was mostly its start: a longer one tells how fast it really is
            warm = self._run(replace(contender, amount=entry.amount), entry.amount)
            if warm.sample is not None:
                entry.amount = replace(contender, amount=entry.amount).amount_for(
                    self.plan.seconds, warm.sample.seconds
                )
        self.amounts[key] = entry.amount
        return entry

    def _run(self, contender: Contender, amount: int) -> Outcome:
        return isolated(
            contender.measure,
            contender.setting,
            amount,
            timeout=self.plan.timeout,
            directory=self.directory,
        )


def judge(case: Case, goal: Goal, entries: list[Entry]) -> Verdict:
    """Take the ratio within each round; its median decides, its spread is told."""
    judged = [e for e in entries if e.contender.ours and e.good and goal.mine in ("", e.contender.name)]
    ours = judged[0] if judged else None
    if not goal.against:
        values = ours.values if ours else []
        return _verdict(goal, goal.text("", case.unit), values)
    other = _opponent(case, goal, entries)
    against = other.contender.name if other else goal.against
    if goal.against == FASTEST_PEER and other:
        against = f"{FASTEST_PEER} ({against})"
    ratios: list[float] = []
    if ours and other:
        for mine, theirs in zip(ours.values, other.values, strict=False):
            better = mine / theirs if case.higher_is_better else theirs / mine
            ratios.append(better if goal.kind == "at least" else _cost(better))
    return _verdict(goal, goal.text(against, case.unit), ratios)


def _cost(better: float) -> float:
    return 1 / better if better else float("inf")


def _verdict(goal: Goal, text: str, ratios: list[float]) -> Verdict:
    if not ratios:
        return Verdict(goal, text, None, None, None)
    return Verdict(goal, text, statistics.median(ratios), min(ratios), max(ratios))


def _opponent(case: Case, goal: Goal, entries: list[Entry]) -> Entry | None:
    if goal.against != FASTEST_PEER:
        named = (e for e in entries if e.contender.name == goal.against and e.good)
        return next(named, None)
    peers = [e for e in entries if e.good and not e.contender.ours and not e.contender.reference]
    if not peers:
        return None
    best = max if case.higher_is_better else min
    return best(peers, key=lambda entry: entry.median)
