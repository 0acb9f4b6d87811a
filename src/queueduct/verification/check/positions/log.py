"""The ticket check of a log that every reader reads, in one bucket of positions.

Operations must precede each other, because of their tickets, like this (e put; r get and z empty, of one reader each):

    e(k) → e(k+1)    e(k) → r(k) → r(k+1)    e(k-1), r(k-1) → z(k) → e(k)

The same prefix maxima as for a queue, with one for each reader. What a reader did before its empty answer precedes the
put behind that answer, and so all operations behind it. That is judged at the answer, with the soonest return behind.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from queueduct.verification.check.operations import NEVER, Code, Longs, Rows
from queueduct.verification.check.positions.boundaries import Boundary, Extent
from queueduct.verification.check.positions.bucket import MOST_GAPS, Bucket, First, Gap, Judgement, invoked, returned
from queueduct.verification.check.positions.extremes import PrefixMax, SuffixMin

__all__ = ["judge"]


def judge(rows: Rows, bucket: int, boundary: Boundary, extent: Extent) -> Judgement:
    """Returns the findings at the bucket's positions, given the boundary of the others."""
    return Conditions(rows, bucket, boundary, extent).judgement()


class Reader:
    """The operations of one reader in a bucket."""

    def __init__(self, number: int, rows: Rows, bucket: Bucket, boundary: Boundary) -> None:
        mine = rows.where(rows.reader == number)
        self.number = number
        self.gets = bucket.side(mine, Code.GET)
        self.empties = bucket.answers_of(mine, *Code.EMPTIES)
        self.get_invokes = PrefixMax(self.gets.invoke, boundary.latest(Code.GET, reader=number))
        self.get_returns = SuffixMin(self.gets.ret, boundary.soonest(Code.GET, reader=number))
        self.empty_returns = SuffixMin(self.empties.any_ret, boundary.soonest(*Code.EMPTIES, reader=number))


class Conditions(Bucket):
    def __init__(self, rows: Rows, bucket: int, boundary: Boundary, extent: Extent) -> None:
        super().__init__(rows, bucket, boundary, extent)
        self.readers = [Reader(number, rows, self, boundary) for number in extent.readers]
        behind = self.puts.ret
        answered = np.full(self.span, NEVER, np.int64)
        for reader in self.readers:
            behind = np.minimum(behind, reader.gets.ret)
            answered = np.minimum(answered, reader.empties.any_ret)
        self.items = SuffixMin(behind, boundary.soonest(Code.PUT, Code.GET))
        self.answers = SuffixMin(answered, boundary.soonest(*Code.EMPTIES))
        self.behind = np.minimum(self.items.onwards, self.answers.after)
        """At each position the soonest return of the operations that must follow an empty answer there."""

    def judgement(self) -> Judgement:
        self.judge_puts()
        for reader in self.readers:
            got_twice, one_position = "a reader got an item twice", "two gets of a reader have one position"
            self.judge_identities(reader.gets, got_twice, one_position)
            self.judge_gets(reader)
            self.judge_empties(reader)
        return Judgement(self.findings.rows(), self.gaps(), self.firsts())

    def judge_gets(self, reader: Reader) -> None:
        earlier = invoked("get", reader.get_invokes.through, 0, reader.number)
        put = invoked("put", self.put_invokes.before, -1)
        for rule, why, other in (
            ("fresh", "an item was got before its put was invoked", invoked("put", self.puts.invoke, 0)),
            ("order", "a get returned before the get of an earlier position was invoked", earlier),
            ("order", "a get returned before the put of an earlier position was invoked", put),
        ):
            self.too_soon(rule, why, reader.gets, other)

    def judge_empties(self, reader: Reader) -> None:
        empties, before = reader.empties, reader.get_invokes.before
        behind = returned("anything", self.behind, 0)
        for why, times in (
            ("empty was answered after something behind its position had returned", empties.invoke),
            ("a get before an empty answer was invoked after something behind it had returned", before),
        ):
            is_bad = empties.is_there & (times > behind.times)
            self.report_at("empty", why, is_bad, empties.rows, empties.latest, behind)
        put, get = invoked("put", self.put_invokes.before, -1), invoked("get", before, -1, reader.number)
        for why, other in (
            ("empty was answered before the put of an earlier position was invoked", put),
            ("empty was answered before the get of an earlier position was invoked", get),
        ):
            self.answered_too_soon("empty", why, empties, other)
        why = "empty was answered after the put at its position had returned"
        self.weak_too_late("empty", why, empties, returned("put", self.puts.ret, 0))

    def gaps(self) -> list[Gap]:
        positions = np.arange(self.low, self.high)
        is_gap = ~self.puts.is_there & (positions < self.extent.puts_needed)
        is_given = positions < max(self.extent.put_end, self.extent.get_end)
        passed = np.where(is_given, self.items.after, self.answers.after)
        found = []
        for index in np.flatnonzero(is_gap)[:MOST_GAPS]:
            witness = self.read_at(int(index))
            self.compare_readers(int(index), witness)
            found.append(Gap.of("put", positions[index], self.behind[index], passed[index], witness))
        for reader in self.readers:
            found += self.gaps_of(reader, positions)
        return found

    def read_at(self, index: int) -> dict[str, Any] | None:
        """Returns the get of the reader that got the item first."""
        first = min(self.readers, key=lambda reader: reader.gets.ret[index], default=None)
        if first is None or first.gets.at[index] < 0:
            return None
        return first.gets.rows.witness(int(first.gets.at[index]))

    def compare_readers(self, index: int, witness: dict[str, Any] | None) -> None:
        """Checks, at a position without a known put, that all readers got the same item."""
        for reader in self.readers:
            row = int(reader.gets.at[index])
            if witness and row >= 0 and reader.gets.rows.value[row] != witness["value"]:
                self.findings.add("ticket", "two readers got different items", reader.gets.rows.witness(row), witness)

    def gaps_of(self, reader: Reader, positions: Longs) -> list[Gap]:
        through = np.where(reader.empties.is_there, self.behind, NEVER)
        passed = np.minimum(reader.get_returns.after, reader.empty_returns.after)
        deadlines = np.minimum(passed, SuffixMin(through, NEVER).after)
        is_gap = ~reader.gets.is_there & (positions >= self.extent.reader_starts[reader.number])
        is_gap &= positions < self.extent.reader_ends[reader.number]
        found = []
        for index in np.flatnonzero(is_gap)[:MOST_GAPS]:
            witness = self.puts.witness_at(int(index))
            position, deadline = positions[index], deadlines[index]
            found.append(Gap.of("get", position, deadline, passed[index], witness, reader.number))
        return found

    def firsts(self) -> list[First]:
        found = []
        for reader in self.readers:
            if reader.empties.is_there.any():
                index = int(np.argmax(reader.empties.is_there))
                found.append(First("empty", self.low + index, int(self.behind[index]), reader.number))
        return found
