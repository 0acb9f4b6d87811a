"""The ticket check of a log that every reader reads, in one bucket of positions.

Operations must precede each other, because of their tickets, like this (e put; r get and z empty, of one reader each):

    e(k) → e(k+1)    e(k) → r(k) → r(k+1)    e(k-1), r(k-1) → z(k) → e(k)

The same prefix maxima as for a queue, with one for each reader. What a reader did before its empty answer precedes,
through the put behind that answer, everything of everybody behind it: judged at the answer, with the soonest return
behind it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from queueduct.verification.check.operations import NEVER, TWO_PUTS, Code, Findings, Longs, Rows
from queueduct.verification.check.positions.boundaries import Boundary, Extent, bounds, own
from queueduct.verification.check.positions.bucket import (
    MOST_GAPS,
    Answers,
    Contrary,
    First,
    Gap,
    Judgement,
    Side,
    at_positions,
    compare_values,
    invoked,
    report,
    returned,
)
from queueduct.verification.check.positions.extremes import PrefixMax, SuffixMin

__all__ = ["judge"]


def judge(rows: Rows, bucket: int, boundary: Boundary, extent: Extent) -> Judgement:
    """What is wrong at the bucket's positions, given what the boundary says of the others."""
    return Bucket(rows, bucket, boundary, extent).judgement()


class Reader:
    """What one reader did in a bucket."""

    def __init__(self, number: int, rows: Rows, low: int, high: int, boundary: Boundary) -> None:
        span = high - low
        mine = rows.where(rows.reader == number)
        self.number = number
        self.gets = Side(*own(mine, Code.GET, low, high), span)
        self.empties = Answers(*own(mine, Code.EMPTY, low, high), span, *own(mine, Code.WEAK_EMPTY, low, high))
        self.prefix_max = PrefixMax(self.gets.invoke, boundary.latest(Code.GET, reader=number))
        self.suffix_min = SuffixMin(self.gets.ret, boundary.soonest(Code.GET, reader=number))
        self.empty_suffix_min = SuffixMin(self.empties.any_ret, boundary.soonest(*Code.EMPTIES, reader=number))


class Bucket:
    def __init__(self, rows: Rows, bucket: int, boundary: Boundary, extent: Extent) -> None:
        self.low, self.high = low, high = bounds(bucket, extent)
        self.span = high - low
        self.extent = extent
        self.findings = Findings()
        self.puts = Side(*own(rows, Code.PUT, low, high), self.span)
        self.put_prefix_max = PrefixMax(self.puts.invoke, boundary.latest(Code.PUT))
        self.put_suffix_min = SuffixMin(self.puts.ret, boundary.soonest(Code.PUT))
        self.readers = [Reader(number, rows, low, high, boundary) for number in extent.readers]
        behind = self.puts.ret
        answered = np.full(self.span, NEVER, np.int64)
        for reader in self.readers:
            behind = np.minimum(behind, reader.gets.ret)
            answered = np.minimum(answered, reader.empties.any_ret)
        self.items = SuffixMin(behind, boundary.soonest(Code.PUT, Code.GET))
        self.answers = SuffixMin(answered, boundary.soonest(*Code.EMPTIES))
        self.behind = np.minimum(self.items.onwards, self.answers.after)
        """At a position: the soonest return of all that must follow an empty answer there."""

    def judgement(self) -> Judgement:
        puts = self.puts
        for row in puts.doubled:
            twin = puts.rows.witness(int(puts.at[puts.rows.ticket[row] - self.low]))
            self.findings.add("ticket", TWO_PUTS, puts.rows.witness(int(row)), twin)
        self.report(
            "order",
            "a put returned before the put of an earlier position was invoked",
            puts.is_there & (puts.ret < self.put_prefix_max.through),
            (puts.rows, puts.at),
            invoked("put", self.put_prefix_max.through, 0),
        )
        for reader in self.readers:
            self.judge_identities(reader)
            self.judge_gets(reader)
            self.judge_empties(reader)
        return Judgement(self.findings.rows(), self.gaps(), self.firsts())

    def report(self, rule: str, why: str, bad: NDArray[np.bool_], side: tuple[Rows, Longs], other: Contrary) -> None:
        report(self.findings, (rule, why), at_positions(bad, *side, self.low), other)

    def judge_identities(self, reader: Reader) -> None:
        gets, puts = reader.gets, self.puts
        for row in gets.doubled:
            twin_row = int(gets.at[gets.rows.ticket[row] - self.low])
            is_repeated = gets.rows.value[row] == gets.rows.value[twin_row]
            rule, why = (
                ("repeat", "a reader got an item twice")
                if is_repeated
                else ("ticket", "two gets of a reader have one position")
            )
            self.findings.add(rule, why, gets.rows.witness(int(row)), gets.rows.witness(twin_row))
        compare_values(puts, gets, self.findings)

    def judge_gets(self, reader: Reader) -> None:
        gets = reader.gets
        for rule, why, other in (
            ("fresh", "an item was got before its put was invoked", invoked("put", self.puts.invoke, 0)),
            (
                "order",
                "a get returned before the get of an earlier position was invoked",
                invoked("get", reader.prefix_max.through, 0, reader.number),
            ),
            (
                "order",
                "a get returned before the put of an earlier position was invoked",
                invoked("put", self.put_prefix_max.before, -1),
            ),
        ):
            self.report(rule, why, gets.is_there & (gets.ret < other.times), (gets.rows, gets.at), other)

    def judge_empties(self, reader: Reader) -> None:
        empties, weak, keys = reader.empties, reader.empties.weak, reader.empties.weak_keys
        behind = returned("anything", self.behind, 0)
        for why, times in (
            ("empty was answered after something behind its position had returned", empties.invoke),
            (
                "a get before an empty answer was invoked after something behind it had returned",
                reader.prefix_max.before,
            ),
        ):
            bad = empties.is_there & (times > behind.times)
            self.report("empty", why, bad, (empties.rows, empties.latest), behind)
        for why, other in (
            (
                "empty was answered before the put of an earlier position was invoked",
                invoked("put", self.put_prefix_max.before, -1),
            ),
            (
                "empty was answered before the get of an earlier position was invoked",
                invoked("get", reader.prefix_max.before, -1, reader.number),
            ),
        ):
            bad = empties.is_there & (empties.ret < other.times)
            self.report("empty", why, bad, (empties.rows, empties.soonest), other)
            rows = np.flatnonzero(weak.ret < other.times[keys])
            report(self.findings, ("empty", why), (weak, rows, keys[rows], self.low), other)
        own_put = returned("put", self.puts.ret, 0)
        rows = np.flatnonzero(weak.invoke > own_put.times[keys])
        why = "empty was answered after the put at its position had returned"
        report(self.findings, ("empty", why), (weak, rows, keys[rows], self.low), own_put)

    def gaps(self) -> list[Gap]:
        positions = np.arange(self.low, self.high)
        is_gap = ~self.puts.is_there & (positions < self.extent.puts_needed)
        is_given = positions < max(self.extent.put_end, self.extent.get_end)
        passed = np.where(is_given, self.items.after, self.answers.after)
        found = []
        for place_ in np.flatnonzero(is_gap)[:MOST_GAPS]:
            witness = self.read_at(int(place_))
            self.compare_readers(int(place_), witness)
            found.append(Gap.of("put", positions[place_], self.behind[place_], passed[place_], witness))
        for reader in self.readers:
            found += self.gaps_of(reader, positions)
        return found

    def read_at(self, place_: int) -> dict[str, Any] | None:
        """By whoever had it first."""
        first = min(self.readers, key=lambda reader: reader.gets.ret[place_], default=None)
        if first is None or first.gets.at[place_] < 0:
            return None
        return first.gets.rows.witness(int(first.gets.at[place_]))

    def compare_readers(self, place_: int, witness: dict[str, Any] | None) -> None:
        """Where no put is known, all who read the position must have got the same."""
        for reader in self.readers:
            row = int(reader.gets.at[place_])
            if witness and row >= 0 and reader.gets.rows.value[row] != witness["value"]:
                self.findings.add("ticket", "two readers got different items", reader.gets.rows.witness(row), witness)

    def gaps_of(self, reader: Reader, positions: Longs) -> list[Gap]:
        through = np.where(reader.empties.is_there, self.behind, NEVER)
        passed = np.minimum(reader.suffix_min.after, reader.empty_suffix_min.after)
        deadlines = np.minimum(passed, SuffixMin(through, NEVER).after)
        is_gap = ~reader.gets.is_there & (positions >= self.extent.reader_starts[reader.number])
        is_gap &= positions < self.extent.reader_ends[reader.number]
        found = []
        for place_ in np.flatnonzero(is_gap)[:MOST_GAPS]:
            witness = self.puts.witness_at(int(place_))
            position, deadline = positions[place_], deadlines[place_]
            found.append(Gap.of("get", position, deadline, passed[place_], witness, reader.number))
        return found

    def firsts(self) -> list[First]:
        found = []
        for reader in self.readers:
            if reader.empties.is_there.any():
                place_ = int(np.argmax(reader.empties.is_there))
                found.append(First("empty", self.low + place_, int(self.behind[place_]), reader.number))
        return found
