"""A bucket of positions, with its prefix maxima and suffix minima: what its conditions are made of."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from queueduct.verification.check.operations import NEVER, START, Code, Finding, Findings, Longs, Rows, sought
from queueduct.verification.check.positions.boundaries import Boundary, Extent, bounds, own
from queueduct.verification.check.positions.extremes import (
    PrefixMax,
    SuffixMin,
    invokes,
    latest_of,
    place,
    returns,
    soonest_of,
)

__all__ = [
    "MOST_GAPS",
    "Answers",
    "Contrary",
    "First",
    "Gap",
    "Judgement",
    "QueueBucket",
    "Side",
    "at_positions",
    "compare_values",
    "invoked",
    "report",
    "returned",
]

MOST_GAPS = 100_000  # that a bucket reports; so many are not the work of kills
MOST_MISMATCHES = 10_000  # that a bucket reports one by one, so that each gets its name


class Gap(NamedTuple):
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
    ) -> Gap:
        value = witness["value"] if witness else None
        return cls(side, int(position), int(deadline), value, witness, reader, passed=int(passed))


class First(NamedTuple):
    """The first answer of a bucket, through which something must precede something else: a deadline for gaps."""

    answer: str
    """empty or full."""
    position: int
    deadline: int
    reader: int = -1


class Judgement(NamedTuple):
    """Of one bucket, or of many."""

    findings: list[Finding]
    gaps: list[Gap]
    firsts: list[First]
    put_twice: tuple[int, ...] = ()
    """Values that were."""


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


class QueueBucket:
    def __init__(self, rows: Rows, bucket: int, boundary: Boundary, extent: Extent) -> None:
        self.low, self.high = bounds(bucket, extent)
        self.span = span = self.high - self.low
        self.extent = extent
        low, high = self.low, self.high
        self.puts = Side(*own(rows, Code.PUT, low, high), span)
        self.gets = Side(*own(rows, Code.GET, low, high), span)
        self.empties = Answers(*own(rows, Code.EMPTY, low, high), span, *own(rows, Code.WEAK_EMPTY, low, high))
        fulls = Answers(*own(rows, Code.FULL, low, high), span, *own(rows, Code.WEAK_FULL, low, high))
        self.put_prefix_max = PrefixMax(self.puts.invoke, boundary.latest(Code.PUT))
        self.get_prefix_max = PrefixMax(self.gets.invoke, boundary.latest(Code.GET))
        self.empty_prefix_max = PrefixMax(self.empties.invoke, boundary.latest(Code.EMPTY))
        self.full_prefix_max = PrefixMax(fulls.invoke, boundary.latest(Code.FULL))
        self.put_suffix_min = SuffixMin(self.puts.ret, boundary.soonest(Code.PUT))
        self.get_suffix_min = SuffixMin(self.gets.ret, boundary.soonest(Code.GET))
        self.empty_suffix_min = SuffixMin(self.empties.any_ret, boundary.soonest(*Code.EMPTIES))
        self.full_suffix_min = SuffixMin(fulls.any_ret, boundary.soonest(*Code.FULLS))
        if extent.capacity is not None:
            self.shift(rows, boundary, extent.capacity)

    def shift(self, rows: Rows, boundary: Boundary, capacity: int) -> None:
        """Gets and full answers where they make room: C positions later."""
        low, high = self.low - capacity, self.high - capacity
        self.room = Side(*own(rows, Code.GET, low, high), self.span)
        self.fulls = Answers(*own(rows, Code.FULL, low, high), self.span, *own(rows, Code.WEAK_FULL, low, high))
        self.room_prefix_max = PrefixMax(self.room.invoke, boundary.latest(Code.GET, shifted=True))
        self.shifted_full_prefix_max = PrefixMax(self.fulls.invoke, boundary.latest(Code.FULL, shifted=True))
        self.room_suffix_min = SuffixMin(self.room.ret, boundary.soonest(Code.GET, shifted=True))
        self.shifted_full_suffix_min = SuffixMin(self.fulls.any_ret, boundary.soonest(*Code.FULLS, shifted=True))
        weak, empty = own(rows, Code.WEAK_EMPTY, low, high), own(rows, Code.EMPTY, low, high)
        self.shifted_weak_suffix_min = self.soonest(*weak, boundary.soonest(Code.WEAK_EMPTY, shifted=True))
        self.shifted_empty_suffix_min = self.soonest(*empty, boundary.soonest(Code.EMPTY, shifted=True))
        positions = np.where(self.empties.is_there, np.arange(self.low, self.high), -1)
        self.last_empty = PrefixMax(positions, boundary.last_empty)

    def soonest(self, rows: Rows, keys: Longs, beyond: int) -> SuffixMin:
        return SuffixMin(returns(rows.ret, soonest_of(keys, rows.ret, self.span)), beyond)

    def followers_of_empties(self) -> Longs:
        """At a position: the soonest return of what must follow a get before an empty answer there."""
        if self.extent.capacity is None:
            return self.put_suffix_min.onwards
        return np.minimum(self.put_suffix_min.onwards, self.shifted_full_suffix_min.after)
