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

from penstock.spark.pipelines.checking.carries import Carry, Shape, bounds, own
from penstock.spark.pipelines.checking.rows import (
    EMPTY,
    GET,
    NEVER,
    PUT,
    START,
    TWO_PUTS,
    WEAK_EMPTY,
    Finding,
    Findings,
    Longs,
    Rows,
    sought,
)
from penstock.spark.pipelines.checking.scans import Peaks, Troughs
from penstock.spark.pipelines.checking.sides import MOST_HOLES, Answers, First, Hole, Judgement, Side

__all__ = ["judge"]


def judge(rows: Rows, bucket: int, carry: Carry, shape: Shape) -> Judgement:
    """What is wrong at the bucket's positions, given what the carry says of the others."""
    return Bucket(rows, bucket, carry, shape).judgement()


class Reader:
    """What one reader did in a bucket."""

    def __init__(self, number: int, rows: Rows, low: int, high: int, carry: Carry) -> None:
        span = high - low
        mine = rows.where(rows.reader == number)
        self.number = number
        self.gets = Side(*own(mine, GET, low, high), span)
        self.empties = Answers(*own(mine, EMPTY, low, high), span, *own(mine, WEAK_EMPTY, low, high))
        self.peaks = Peaks(self.gets.invoke, carry.reader_invoke.get(number, START))
        self.troughs = Troughs(self.gets.ret, carry.reader_return.get(number, NEVER))
        self.empty_troughs = Troughs(self.empties.any_ret, carry.reader_empty_return.get(number, NEVER))


class Bucket:
    def __init__(self, rows: Rows, bucket: int, carry: Carry, shape: Shape) -> None:
        self.low, self.high = low, high = bounds(bucket, shape)
        self.span = high - low
        self.shape = shape
        self.findings = Findings()
        self.puts = Side(*own(rows, PUT, low, high), self.span)
        self.put_peaks = Peaks(self.puts.invoke, carry.put_invoke)
        self.put_troughs = Troughs(self.puts.ret, carry.put_return)
        self.readers = [Reader(number, rows, low, high, carry) for number in shape.readers]
        behind = self.puts.ret
        answered = np.full(self.span, NEVER, np.int64)
        for reader in self.readers:
            behind = np.minimum(behind, reader.gets.ret)
            answered = np.minimum(answered, reader.empties.any_ret)
        items = Troughs(behind, min(carry.put_return, carry.get_return))
        self.behind = np.minimum(items.onwards, Troughs(answered, carry.empty_return).after)
        """At a position: the soonest return of all that must follow an empty answer there."""

    def judgement(self) -> Judgement:
        puts = self.puts
        for row in puts.doubled:
            twin = puts.rows.witness(int(puts.at[puts.rows.ticket[row] - self.low]))
            self.findings.add("ticket", TWO_PUTS, puts.rows.witness(int(row)), twin)
        self.report(
            "order",
            "a put returned before the put of an earlier position was invoked",
            puts.is_there & (puts.ret < self.put_peaks.through),
            (puts.rows, puts.at),
            ("put", "invoke_ns", self.put_peaks.through),
        )
        for reader in self.readers:
            self.judge_identities(reader)
            self.judge_gets(reader)
            self.judge_empties(reader)
        return Judgement(self.findings, self.holes(), self.firsts())

    def report(
        self, rule: str, why: str, bad: NDArray[np.bool_], side: tuple[Rows, Longs], other: tuple[str, str, Longs]
    ) -> None:
        rows, at = side
        op, which, times = other
        places = np.flatnonzero(bad)
        for position in places[: self.findings.room_for(rule, why, len(places))]:
            contradiction: dict[str, Any] = sought(op, which, times[position])
            self.findings.listed.append(Finding(rule, why, rows.witness(int(at[position])), contradiction))

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
        both = np.flatnonzero(puts.is_there & gets.is_there)
        differ = both[puts.rows.value[puts.at[both]] != gets.rows.value[gets.at[both]]]
        for position in differ[: self.findings.room_for("mismatch", "", len(differ))]:
            got, put = gets.rows.witness(int(gets.at[position])), puts.rows.witness(int(puts.at[position]))
            self.findings.listed.append(Finding("mismatch", "", got, put))

    def judge_gets(self, reader: Reader) -> None:
        gets, side = reader.gets, (reader.gets.rows, reader.gets.at)
        for rule, why, times, op in (
            ("fresh", "an item was got before its put was invoked", self.puts.invoke, "put"),
            ("order", "a get returned before the get of an earlier position was invoked", reader.peaks.through, "get"),
            ("order", "a get returned before the put of an earlier position was invoked", self.put_peaks.before, "put"),
        ):
            self.report(rule, why, gets.is_there & (gets.ret < times), side, (op, "invoke_ns", times))

    def judge_empties(self, reader: Reader) -> None:
        empties, weak = reader.empties, reader.empties.weak
        latest = (empties.rows, empties.latest)
        for why, times in (
            ("empty was answered after something behind its position had returned", empties.invoke),
            (
                "a get before an empty answer was invoked after something behind it had returned",
                reader.peaks.before,
            ),
        ):
            bad = empties.is_there & (times > self.behind)
            self.report("empty", why, bad, latest, ("", "return_ns", self.behind))
        for why, times, op in (
            ("empty was answered before the put of an earlier position was invoked", self.put_peaks.before, "put"),
            ("empty was answered before the get of an earlier position was invoked", reader.peaks.before, "get"),
        ):
            bad = empties.is_there & (empties.ret < times)
            self.report("empty", why, bad, (empties.rows, empties.soonest), (op, "invoke_ns", times))
            for row in np.flatnonzero(weak.ret < times[empties.weak_keys]):
                other = sought(op, "invoke_ns", times[empties.weak_keys[row]])
                self.findings.add("empty", why, weak.witness(int(row)), other)
        own_put = self.puts.ret[empties.weak_keys]
        for row in np.flatnonzero(weak.invoke > own_put):
            why = "empty was answered after the put at its position had returned"
            self.findings.add("empty", why, weak.witness(int(row)), sought("put", "return_ns", own_put[row]))

    def holes(self) -> list[Hole]:
        positions = np.arange(self.low, self.high)
        is_hole = ~self.puts.is_there & (positions < self.shape.puts_needed)
        found = []
        for place_ in np.flatnonzero(is_hole)[:MOST_HOLES]:
            witness = self.read_at(int(place_))
            self.compare_readers(int(place_), witness)
            value = witness["value"] if witness else None
            found.append(Hole("put", int(positions[place_]), int(self.behind[place_]), value, witness))
        for reader in self.readers:
            found += self.holes_of(reader, positions)
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

    def holes_of(self, reader: Reader, positions: Longs) -> list[Hole]:
        through = np.where(reader.empties.is_there, self.behind, NEVER)
        deadlines = np.minimum(reader.troughs.onwards, reader.empty_troughs.after)
        deadlines = np.minimum(deadlines, Troughs(through, NEVER).after)
        is_hole = ~reader.gets.is_there & (positions >= self.shape.reader_starts[reader.number])
        is_hole &= positions < self.shape.reader_ends[reader.number]
        found = []
        for place_ in np.flatnonzero(is_hole)[:MOST_HOLES]:
            row = int(self.puts.at[place_])
            witness = self.puts.rows.witness(row) if row >= 0 else None
            value = witness["value"] if witness else None
            found.append(Hole("get", int(positions[place_]), int(deadlines[place_]), value, witness, reader.number))
        return found

    def firsts(self) -> list[First]:
        found = []
        for reader in self.readers:
            if reader.empties.is_there.any():
                place_ = int(np.argmax(reader.empties.is_there))
                found.append(First("empty", self.low + place_, int(self.behind[place_]), reader.number))
        return found
