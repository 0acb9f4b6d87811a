"""The data of the report: the rate of operations, how long they took, how full the queue was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from queueduct.verification.check.operations import START, Longs
from queueduct.verification.check.part import OUTCOMES, Part
from queueduct.verification.check.table import Table
from queueduct.verification.check.verdict import Verdict, Violation
from queueduct.verification.check.witnesses import Row

__all__ = ["Figures", "Scene", "figures_of"]

BINS = 240
QUANTILES = (0.5, 0.9, 0.99, 0.999, 1.0)
SCENES, ROWS_IN_SCENE = 4, 40


@dataclass(frozen=True)
class Scene:
    """A violation, and what else went on at that time."""

    violation: Violation
    rows: list[Row]
    begin_ns: int
    end_ns: int


@dataclass(frozen=True)
class Figures:
    bin_ns: int
    ended: dict[str, Longs]
    """Operations that returned in each bin, by "put ok", "get empty", …"""
    latencies: dict[str, list[int]]
    """Nanoseconds at each of the quantiles."""
    scenes: list[Scene]

    @property
    def occupancy(self) -> Longs:
        """Items in the queue at the end of each bin; of a log with several readers, gets count for all of them."""
        nothing = np.zeros(BINS, np.int64)
        return np.cumsum(self.ended.get("put ok", nothing)) - np.cumsum(self.ended.get("get ok", nothing))


def figures_of(table: Table, verdict: Verdict) -> Figures:
    extents = table.each(extent_of)
    start, end = min((begin for begin, _ in extents), default=0), max((end for _, end in extents), default=0)
    length = max(1, -(-(end - start + 1) // BINS))
    ended: dict[str, Longs] = {}
    took: dict[str, Took] = {}
    for name, bins, part in table.each(partial(counted, start=start, length=length)):
        ended[name] = ended.get(name, np.zeros(BINS, np.int64)) + bins
        took[name] = part + took[name] if name in took else part
    latencies = {name: each.quantiles() for name, each in took.items()}
    scenes = [scene_of(table, violation) for violation in first_of_each_rule(verdict.violations)]
    return Figures(length, ended, latencies, scenes)


def first_of_each_rule(violations: Sequence[Violation]) -> list[Violation]:
    seen: dict[str, Violation] = {}
    for violation in violations:
        if any(witness.get("invoke_ns") is not None for witness in violation.witnesses):
            seen.setdefault(violation.rule, violation)
    return list(seen.values())[:SCENES]


def extent_of(part: Part) -> list[tuple[int, int]]:
    """Returns the times of the first invocation and the last return."""
    invoke, ret = part.invoke_ns, np.where(part.has("return_ns"), part.return_ns, START)
    return [(int(invoke.min()), int(max(ret.max(), invoke.max())))] if len(part) else []


def counted(part: Part, start: int, length: int) -> Iterator[tuple[str, Longs, Took]]:
    """Returns for each outcome how many operations returned in each bin, and how long they took."""
    took = part.return_ns - part.invoke_ns
    for number, name in enumerate(OUTCOMES):
        chosen = (part.outcome == number) & part.has("return_ns")
        if chosen.any():
            bins = np.bincount((part.return_ns[chosen] - start) // length, minlength=BINS)[:BINS].astype(np.int64)
            yield name, bins, Took.of(took[chosen])


class Took(NamedTuple):
    """A histogram of durations, rounded down to eleven binary digits."""

    times: Longs
    numbers: Longs
    longest: int

    @classmethod
    def of(cls, times: Longs) -> Took:
        shift = np.maximum(np.frexp(times.astype(np.float64))[1] - 11, 0)
        return cls(*np.unique((times >> shift) << shift, return_counts=True), int(times.max()))

    def __add__(self, other: Took) -> Took:  # type: ignore[override]
        times, indices = np.unique(np.append(self.times, other.times), return_inverse=True)
        numbers = np.bincount(indices, np.append(self.numbers, other.numbers)).astype(np.int64)
        return Took(times, numbers, max(self.longest, other.longest))

    def quantiles(self) -> list[int]:
        until = np.cumsum(self.numbers)
        wanted = [int(quantile * (int(until[-1]) - 1)) for quantile in QUANTILES]
        found = self.times[np.searchsorted(until, wanted, side="right")].tolist()
        return [*found[:-1], self.longest]


def scene_of(table: Table, violation: Violation) -> Scene:
    """Returns the operations that overlap the time of the witnesses, as far as there is room."""
    known = [witness for witness in violation.witnesses if witness.get("invoke_ns") is not None]
    begin = min(int(witness["invoke_ns"]) for witness in known)
    end = max(int(witness.get("return_ns") or witness["invoke_ns"]) for witness in known)
    margin = max(1, (end - begin) // 4)
    rows = table.each(partial(overlapping, begin=begin - margin, end=end + margin))[: ROWS_IN_SCENE * 10]
    rows.sort(key=lambda row: int(row["invoke_ns"]))
    return Scene(violation, rows[:ROWS_IN_SCENE], begin - margin, end + margin)


def overlapping(part: Part, begin: int, end: int) -> list[Row]:
    return part.listed((part.invoke_ns <= end) & (part.return_ns >= begin), ROWS_IN_SCENE * 10)
