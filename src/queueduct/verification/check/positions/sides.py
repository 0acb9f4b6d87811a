"""What a bucket of positions is judged by, and what comes out of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from queueduct.verification.check.operations import NEVER, START, Finding, Findings, Longs, Rows, sought
from queueduct.verification.check.positions.extremes import invokes, latest_of, place, returns, soonest_of

__all__ = [
    "MOST_HOLES",
    "Answers",
    "Contrary",
    "First",
    "Found",
    "Hole",
    "Judgement",
    "Side",
    "at_positions",
    "compare_values",
    "invoked",
    "report",
    "returned",
]

MOST_HOLES = 100_000  # that a bucket reports; so many are not the work of kills
MOST_MISMATCHES = 10_000  # that a bucket reports one by one, so that each gets its name


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
    passed: int = NEVER
    """The soonest return of what shows that it must have been there; NEVER if another bucket knows."""

    @classmethod
    def of(
        cls,
        side: str,
        position: Any,
        deadline: Any,
        passed: Any,
        witness: dict[str, Any] | None = None,
        reader: int = -1,
    ) -> Hole:
        value = witness["value"] if witness else None
        return cls(side, int(position), int(deadline), value, witness, reader, passed=int(passed))


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

    def witness_at(self, place: int) -> dict[str, Any] | None:
        return self.rows.witness(int(self.at[place])) if self.is_there[place] else None


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


class Contrary(NamedTuple):
    """Who contradicts, at each position: known by a time, and looked up at the end, wherever it is."""

    what: str
    """put, get, empty, full, or as ``sought`` says."""
    which: str
    """The column of the record that has the time."""
    times: Longs
    since: int | None = None
    """It stands at or behind so many positions from here."""
    until: int | None = None
    """It stands at or before so many positions from here."""
    reader: int = -1

    def at(self, place: int, position: int) -> dict[str, Any]:
        since = None if self.since is None else position + self.since
        until = None if self.until is None else position + self.until
        return sought(self.what, self.which, self.times[place], since=since, until=until, reader=self.reader)


def invoked(what: str, times: Longs, until: int, reader: int = -1) -> Contrary:
    """By the time of its invocation, up to that position, counted from here."""
    return Contrary(what, "invoke_ns", times, until=until, reader=reader)


def returned(what: str, times: Longs, since: int, reader: int = -1) -> Contrary:
    """By the time of its return, from that position on, counted from here."""
    return Contrary(what, "return_ns", times, since=since, reader=reader)


Bad = tuple[Rows, Longs, Longs, int]
"""Rows, which of them are bad, at which places, and the position of the first place."""


def at_positions(bad: NDArray[np.bool_], rows: Rows, at: Longs, low: int) -> Bad:
    """The row at each bad position."""
    places = np.flatnonzero(bad)
    return rows, at[places], places, low


def report(findings: Findings, name: tuple[str, str], bad: Bad, other: Contrary) -> None:
    """One finding for each bad row: the row, and who contradicts it there. The name is rule and sentence."""
    rows, chosen, places, low = bad
    for number in range(findings.room_for(*name, len(chosen))):
        place = int(places[number])
        subject = rows.witness(int(chosen[number]))
        findings.listed.append(Finding(*name, subject, other.at(place, low + place)))


def compare_values(puts: Side, gets: Side, findings: Findings) -> None:
    """Where a position has both, they must be of one item. What it is instead is found out at the end."""
    both = np.flatnonzero(puts.is_there & gets.is_there)
    differ = both[puts.rows.value[puts.at[both]] != gets.rows.value[gets.at[both]]]
    if len(puts.doubled) and len(differ):
        twins = {(int(puts.rows.ticket[row]), int(puts.rows.value[row])) for row in puts.doubled}
        rows = gets.at[differ]
        got_ = zip(gets.rows.ticket[rows].tolist(), gets.rows.value[rows].tolist(), strict=True)
        differ = differ[[each not in twins for each in got_]]
    for place_ in differ[:MOST_MISMATCHES]:
        got, put = gets.rows.witness(int(gets.at[place_])), puts.rows.witness(int(puts.at[place_]))
        findings.listed.append(Finding("mismatch", "", got, put))
    if len(differ) > MOST_MISMATCHES:
        findings.listed.append(Finding("mismatch", "", {}, None, len(differ) - MOST_MISMATCHES))
