"""A bucket of positions, with the prefix maxima and suffix minima of its conditions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from queueduct.verification.check.operations import NEVER, START, TWO_PUTS, Code, Finding, Findings, Longs, Rows, sought
from queueduct.verification.check.positions.boundaries import Boundary, Extent, bounds, own
from queueduct.verification.check.positions.extremes import (
    PrefixMax,
    SuffixMin,
    first_of,
    invokes,
    latest_of,
    returns,
    soonest_of,
)

__all__ = ["MOST_GAPS", "Bucket", "Contrary", "First", "Gap", "Judgement", "QueueBucket", "invoked", "returned"]

Flags = NDArray[np.bool_]

MOST_GAPS = 100_000  # that a bucket reports; so many are not the work of kills
MOST_MISMATCHES = 10_000  # that a bucket reports one by one, so that each gets its name


class Gap(NamedTuple):
    """A position without an operation that must have been there."""

    side: str
    """"put" or "get"."""
    position: int
    deadline: int
    """An operation that fills the gap was invoked by then."""
    value: int | None
    """The value of the other operation at that position, if there is one."""
    witness: dict[str, Any] | None
    """That other operation."""
    reader: int = -1
    overwritten_by: int = START
    """In the last C positions of an overwriting queue: a killed put that overwrote it was invoked by then."""
    passed: int = NEVER
    """The soonest return of an operation that shows the gap; NEVER if that is in another bucket."""

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
    """The first answer of a bucket. Operations before it must precede those after it: a deadline for gaps."""

    answer: str
    """"empty" or "full"."""
    position: int
    deadline: int
    reader: int = -1


class Judgement(NamedTuple):
    """The judgement on one bucket, or on many."""

    findings: list[Finding]
    gaps: list[Gap]
    firsts: list[First]
    put_twice: tuple[int, ...] = ()
    """Values that were."""


class Side:
    """The puts, or the gets, of a bucket: at most one a position."""

    def __init__(self, rows: Rows, keys: Longs, span: int) -> None:
        self.rows = rows
        self.at, self.doubled = first_of(keys, span)
        self.is_there = self.at >= 0
        self.invoke = invokes(rows.invoke, self.at)
        self.ret = returns(rows.ret, self.at)

    def twins(self, low: int) -> Iterator[tuple[int, int]]:
        """Yields each row whose position an earlier row has, too, and that earlier row."""
        for row in self.doubled.tolist():
            yield row, int(self.at[self.rows.ticket[row] - low])

    def witness_at(self, index: int) -> dict[str, Any] | None:
        return self.rows.witness(int(self.at[index])) if self.is_there[index] else None


class Answers:
    """The empty, or the full, answers of a bucket: any number at a position, weak ones apart."""

    def __init__(self, rows: Rows, keys: Longs, span: int, weak: Rows, weak_keys: Longs) -> None:
        self.rows, self.weak, self.weak_keys = rows, weak, weak_keys
        self.latest = latest_of(keys, rows.invoke, span)
        self.soonest = soonest_of(keys, rows.ret, span)
        self.is_there = self.latest >= 0
        self.invoke = invokes(rows.invoke, self.latest)
        self.ret = returns(rows.ret, self.soonest)
        self.weak_ret = returns(weak.ret, soonest_of(weak_keys, weak.ret, span))
        self.any_ret = np.minimum(self.ret, self.weak_ret)


class Contrary(NamedTuple):
    """The contradicting operation at each position, known by a time. It is looked up at the end."""

    what: str
    """"put", "get", "empty", "full", or as in ``sought``."""
    which: str
    """The column of the record that has the time."""
    times: Longs
    since: int | None = None
    """Its position is at least this many after the current one."""
    until: int | None = None
    """Its position is at most this many after the current one."""
    reader: int = -1

    def at(self, index: int, position: int) -> dict[str, Any]:
        since = None if self.since is None else position + self.since
        until = None if self.until is None else position + self.until
        return sought(self.what, self.which, self.times[index], since=since, until=until, reader=self.reader)


def invoked(what: str, times: Longs, until: int, reader: int = -1) -> Contrary:
    """Known by the time of its invocation, up to position ``until`` from the current one."""
    return Contrary(what, "invoke_ns", times, until=until, reader=reader)


def returned(what: str, times: Longs, since: int, reader: int = -1) -> Contrary:
    """Known by the time of its return, from position ``since`` from the current one on."""
    return Contrary(what, "return_ns", times, since=since, reader=reader)


class Bucket:
    """The common part of a queue's and a log's bucket: a put at each position, and how violations are reported."""

    def __init__(self, rows: Rows, bucket: int, boundary: Boundary, extent: Extent) -> None:
        self.low, self.high = bounds(bucket, extent)
        self.span = self.high - self.low
        self.extent = extent
        self.findings = Findings()
        self.puts = self.side(rows, Code.PUT)
        self.put_invokes = PrefixMax(self.puts.invoke, boundary.latest(Code.PUT))
        self.put_returns = SuffixMin(self.puts.ret, boundary.soonest(Code.PUT))

    def side(self, rows: Rows, code: int, shift: int = 0) -> Side:
        return Side(*own(rows, code, self.low - shift, self.high - shift), self.span)

    def answers_of(self, rows: Rows, code: int, weak: int, shift: int = 0) -> Answers:
        low, high = self.low - shift, self.high - shift
        return Answers(*own(rows, code, low, high), self.span, *own(rows, weak, low, high))

    def report(self, rule: str, why: str, rows: Rows, chosen: Longs, indices: Longs, other: Contrary) -> None:
        """Adds a finding for each chosen row: the row, and the operation that contradicts it at its index."""
        for number in range(self.findings.room_for(rule, why, len(chosen))):
            index, subject = int(indices[number]), rows.witness(int(chosen[number]))
            self.findings.listed.append(Finding(rule, why, subject, other.at(index, self.low + index)))

    def report_at(self, rule: str, why: str, is_bad: Flags, rows: Rows, at: Longs, other: Contrary) -> None:
        """Reports the row at each bad position."""
        indices = np.flatnonzero(is_bad)
        self.report(rule, why, rows, at[indices], indices, other)

    def report_weak(self, rule: str, why: str, is_bad: Flags, answers: Answers, other: Contrary) -> None:
        rows = np.flatnonzero(is_bad)
        self.report(rule, why, answers.weak, rows, answers.weak_keys[rows], other)

    def too_soon(self, rule: str, why: str, side: Side, other: Contrary) -> None:
        """Reports operations that returned before an operation was invoked that must precede them."""
        self.report_at(rule, why, side.is_there & (side.ret < other.times), side.rows, side.at, other)

    def answered_too_soon(self, rule: str, why: str, answers: Answers, other: Contrary) -> None:
        """The same for answers, weak or not."""
        is_bad = answers.is_there & (answers.ret < other.times)
        self.report_at(rule, why, is_bad, answers.rows, answers.soonest, other)
        self.report_weak(rule, why, answers.weak.ret < other.times[answers.weak_keys], answers, other)

    def weak_too_late(self, rule: str, why: str, answers: Answers, other: Contrary) -> None:
        """Reports weak answers that were invoked after the operation at their position had returned."""
        self.report_weak(rule, why, answers.weak.invoke > other.times[answers.weak_keys], answers, other)

    def judge_puts(self) -> None:
        puts = self.puts
        for row, twin in puts.twins(self.low):
            self.findings.add("ticket", TWO_PUTS, puts.rows.witness(row), puts.rows.witness(twin))
        why = "a put returned before the put of an earlier position was invoked"
        self.too_soon("order", why, puts, invoked("put", self.put_invokes.through, 0))

    def judge_identities(self, gets: Side, got_twice: str, one_position: str) -> None:
        """Reports positions with two gets, or a get of another value. Which rule that breaks is decided at the end."""
        puts, findings = self.puts, self.findings
        for row, twin in gets.twins(self.low):
            is_repeated = gets.rows.value[row] == gets.rows.value[twin]
            rule, why = ("repeat", got_twice) if is_repeated else ("ticket", one_position)
            findings.add(rule, why, gets.rows.witness(row), gets.rows.witness(twin))
        both = np.flatnonzero(puts.is_there & gets.is_there)
        differ = both[puts.rows.value[puts.at[both]] != gets.rows.value[gets.at[both]]]
        if len(puts.doubled) and len(differ):
            put = {(int(puts.rows.ticket[row]), int(puts.rows.value[row])) for row in puts.doubled}
            rows = gets.at[differ]
            got = zip(gets.rows.ticket[rows].tolist(), gets.rows.value[rows].tolist(), strict=True)
            differ = differ[[each not in put for each in got]]
        for at in differ[:MOST_MISMATCHES]:
            findings.listed.append(Finding("mismatch", "", gets.witness_at(at) or {}, puts.witness_at(at)))
        if len(differ) > MOST_MISMATCHES:
            findings.listed.append(Finding("mismatch", "", {}, None, len(differ) - MOST_MISMATCHES))


class QueueBucket(Bucket):
    def __init__(self, rows: Rows, bucket: int, boundary: Boundary, extent: Extent) -> None:
        super().__init__(rows, bucket, boundary, extent)
        self.gets = self.side(rows, Code.GET)
        self.empties = self.answers_of(rows, *Code.EMPTIES)
        fulls = self.answers_of(rows, *Code.FULLS)
        self.get_invokes = PrefixMax(self.gets.invoke, boundary.latest(Code.GET))
        self.empty_invokes = PrefixMax(self.empties.invoke, boundary.latest(Code.EMPTY))
        self.full_invokes = PrefixMax(fulls.invoke, boundary.latest(Code.FULL))
        self.get_returns = SuffixMin(self.gets.ret, boundary.soonest(Code.GET))
        self.empty_returns = SuffixMin(self.empties.any_ret, boundary.soonest(*Code.EMPTIES))
        self.full_returns = SuffixMin(fulls.any_ret, boundary.soonest(*Code.FULLS))
        if extent.capacity is not None:
            self.shift(rows, boundary, extent.capacity)

    def shift(self, rows: Rows, boundary: Boundary, capacity: int) -> None:
        """Gets and full answers at the positions that they make room for, C later."""
        self.room = self.side(rows, Code.GET, capacity)
        self.fulls = self.answers_of(rows, *Code.FULLS, capacity)
        empties = self.answers_of(rows, *Code.EMPTIES, capacity)
        self.room_invokes = PrefixMax(self.room.invoke, boundary.latest(Code.GET, shifted=True))
        self.room_returns = SuffixMin(self.room.ret, boundary.soonest(Code.GET, shifted=True))
        self.shifted_full_invokes = PrefixMax(self.fulls.invoke, boundary.latest(Code.FULL, shifted=True))
        self.shifted_full_returns = SuffixMin(self.fulls.any_ret, boundary.soonest(*Code.FULLS, shifted=True))
        self.shifted_weak_returns = SuffixMin(empties.weak_ret, boundary.soonest(Code.WEAK_EMPTY, shifted=True))
        self.shifted_empty_returns = SuffixMin(empties.ret, boundary.soonest(Code.EMPTY, shifted=True))
        positions = np.where(self.empties.is_there, np.arange(self.low, self.high), -1)
        self.last_empty = PrefixMax(positions, boundary.last_empty)

    def followers_of_empties(self) -> Longs:
        """At each position the soonest return of operations that must follow a get before an empty answer there."""
        if self.extent.capacity is None:
            return self.put_returns.onwards
        return np.minimum(self.put_returns.onwards, self.shifted_full_returns.after)
