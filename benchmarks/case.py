"""What a row of the results is made of: who takes part, how each is measured, what is the goal."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from benchmarks.isolation import Measure

FASTEST_PEER = "the fastest peer"


@dataclass(frozen=True)
class Contender:
    """One entry of a case: `measure(setting, amount, bench)` is called in isolation.

    The first amount is for the warm-up run; from its time the amount of the timed runs follows,
    within `most`. A fixed amount stays as it is.
    """

    name: str
    measure: Measure
    setting: object
    amount: int
    most: int = 0
    ours: bool = False
    reference: bool = False
    capacity: str = ""
    note: str = ""
    unfit: str = ""

    def amount_for(self, seconds_wanted: float, seconds_used: float) -> int:
        """Return how much to do for a run of the wanted length."""
        if not self.most:
            return self.amount
        wanted = int(self.amount * seconds_wanted / max(seconds_used, 1e-6))
        return min(max(wanted, min(self.amount, 500)), self.most)


@dataclass(frozen=True)
class Goal:
    """Ours against another entry of the same case, or (against nobody) as a bare value.

    At least: how many times better ours is. At most: how many times the other's cost ours is.
    `mine` names the entry that is judged where it is not the first of ours.
    """

    wanted: float
    against: str = FASTEST_PEER
    kind: Literal["at least", "at most"] = "at least"
    mine: str = ""

    def text(self, against: str, unit: str) -> str:
        sign = "≥" if self.kind == "at least" else "≤"
        text = f"{sign} {self.wanted:g}x {against}" if against else f"{sign} {self.wanted:g} {unit}"
        return f"{self.mine}: {text}" if self.mine else text


@dataclass(frozen=True)
class Case:
    """One line-up, measured together, round by round."""

    name: str
    title: str
    unit: str
    contenders: tuple[Contender, ...]
    goals: tuple[Goal, ...]
    placement: str = ""
    higher_is_better: bool = True
    remarks: tuple[str, ...] = field(default_factory=tuple)

    @property
    def key(self) -> str:
        return f"{self.name} {self.placement}".strip()


@dataclass(frozen=True)
class Plan:
    """How much to measure."""

    quick: bool = False
    peers: bool = True
    rounds: int = 5
    seconds: float = 0.25
    timeout: float = 20.0
    items: int | None = None

    def most(self, count: int) -> int:
        """Return the limit for calibrated amounts, or 0 when the amount was given by hand."""
        if self.items is not None:
            return 0
        return count // 2 if self.quick else count

    def first(self, count: int) -> int:
        """Return the amount of the warm-up run."""
        return count if self.items is None else self.items


def without_peers(contenders: Iterable[Contender], plan: Plan) -> tuple[Contender, ...]:
    """Drop the peers when only ours is wanted; references stay, as they are the machine's own."""
    return tuple(c for c in contenders if plan.peers or c.ours or c.reference)
