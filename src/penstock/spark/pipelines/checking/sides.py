"""What a bucket of positions is judged by, and what comes out of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from penstock.spark.pipelines.checking.rows import START, Finding, Findings, Longs, Rows
from penstock.spark.pipelines.checking.scans import invokes, latest_of, place, returns, soonest_of

__all__ = ["MOST_HOLES", "Answers", "First", "Found", "Hole", "Judgement", "Side"]

MOST_HOLES = 100_000  # that a bucket reports; so many are not the work of kills


class Hole(NamedTuple):
    """A position without an operation that must have been there."""

    side: str
    """put or get."""
    position: int
    deadline: int
    """Whatever fills it was invoked by then."""
    value: int | None
    """Of the other operation at that position, if that one is there."""
    witness: dict[str, Any] | None
    """That other operation."""
    reader: int = -1
    overwritten_by: int = START
    """Of the last C positions of an overwriting queue: a killed put that overwrote it was invoked by then."""


class First(NamedTuple):
    """The first answer of a bucket, through which something must precede something else: a deadline for holes."""

    answer: str
    """empty or full."""
    position: int
    deadline: int
    reader: int = -1


Found = tuple[list[Finding], list[Hole], list[First]]
"""Of all buckets together."""


class Judgement(NamedTuple):
    findings: Findings
    holes: list[Hole]
    firsts: list[First]


class Side:
    """The puts, or the gets, of a bucket: at most one a position."""

    def __init__(self, rows: Rows, keys: Longs, span: int) -> None:
        self.rows = rows
        self.at, self.doubled = place(keys, span)
        self.is_there = self.at >= 0
        self.invoke = invokes(rows.invoke, self.at)
        self.ret = returns(rows.ret, self.at)


class Answers:
    """The empty, or the full, answers of a bucket, any number a position; weak ones may stand beside."""

    def __init__(self, rows: Rows, keys: Longs, span: int, weak: Rows, weak_keys: Longs) -> None:
        self.rows, self.weak, self.weak_keys = rows, weak, weak_keys
        self.latest = latest_of(keys, rows.invoke, span)
        self.soonest = soonest_of(keys, rows.ret, span)
        self.is_there = self.latest >= 0
        self.invoke = invokes(rows.invoke, self.latest)
        self.ret = returns(rows.ret, self.soonest)
        weakest = returns(weak.ret, soonest_of(weak_keys, weak.ret, span))
        self.any_ret = np.minimum(self.ret, weakest)
