"""The ticket check: a queue that hands out positions, in one bucket of them.

Operations must precede each other, because of their tickets, like this (e put, d get, z empty, f full, C the capacity):

    e(k) → e(k+1)    d(k) → d(k+1)    e(k) → d(k)    d(k) → e(k+C)
    e(k-1), d(k-1) → z(k) → e(k)      e(k+C-1), d(k-1) → f(k) → d(k)

A history is in this order iff no operation returned before one was invoked that must precede it, directly or through
others. The latest invocation of all that must precede is a prefix maximum. Two ways lead through an answer: d → z → e
and e → f → d; they are judged at the answer, with the soonest return of all that must follow, a suffix minimum.

A position without a put or a get is a *hole*. Whether a killed operation explains it is settled when all are known: it
does if it was invoked before the soonest return of what must follow, the hole's deadline.
An overwriting queue may lose d(j), if e(j+C) comes before every d behind j: as if it had been full with head j+1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.spark.pipelines.checking.carries import Carry, Shape, bounds, own
from penstock.spark.pipelines.checking.rows import (
    EMPTY,
    FULL,
    GET,
    NEVER,
    PUT,
    START,
    TWO_PUTS,
    WEAK_EMPTY,
    WEAK_FULL,
    Finding,
    Findings,
    Longs,
    Rows,
    sought,
)
from penstock.spark.pipelines.checking.scans import Peaks, Troughs, returns, soonest_of
from penstock.spark.pipelines.checking.sides import MOST_HOLES, Answers, First, Hole, Judgement, Side

__all__ = ["judge"]


def judge(rows: Rows, bucket: int, carry: Carry, shape: Shape) -> Judgement:
    """What is wrong at the bucket's positions, given what the carry says of the others."""
    return Bucket(rows, bucket, carry, shape).judgement()


class Bucket:
    def __init__(self, rows: Rows, bucket: int, carry: Carry, shape: Shape) -> None:
        self.low, self.high = bounds(bucket, shape)
        self.span = span = self.high - self.low
        self.shape, self.carry = shape, carry
        self.findings = Findings()
        low, high = self.low, self.high
        self.puts = Side(*own(rows, PUT, low, high), span)
        self.gets = Side(*own(rows, GET, low, high), span)
        self.empties = Answers(*own(rows, EMPTY, low, high), span, *own(rows, WEAK_EMPTY, low, high))
        fulls = Answers(*own(rows, FULL, low, high), span, *own(rows, WEAK_FULL, low, high))
        self.put_peaks = Peaks(self.puts.invoke, carry.put_invoke)
        self.get_peaks = Peaks(self.gets.invoke, carry.get_invoke)
        self.empty_peaks = Peaks(self.empties.invoke, carry.empty_invoke)
        self.full_peaks = Peaks(fulls.invoke, carry.full_invoke)
        self.put_troughs = Troughs(self.puts.ret, carry.put_return)
        self.get_troughs = Troughs(self.gets.ret, carry.get_return)
        self.empty_troughs = Troughs(self.empties.any_ret, carry.empty_return)
        self.full_troughs = Troughs(fulls.any_ret, carry.full_return)
        if shape.capacity is not None:
            self.shift(rows, shape.capacity)

    def shift(self, rows: Rows, capacity: int) -> None:
        """Gets and full answers where they make room: C positions later."""
        low, high = self.low - capacity, self.high - capacity
        self.room = Side(*own(rows, GET, low, high), self.span)
        self.fulls = Answers(*own(rows, FULL, low, high), self.span, *own(rows, WEAK_FULL, low, high))
        self.room_peaks = Peaks(self.room.invoke, self.carry.shifted_get_invoke)
        self.shifted_full_peaks = Peaks(self.fulls.invoke, self.carry.shifted_full_invoke)
        self.room_troughs = Troughs(self.room.ret, self.carry.shifted_get_return)
        self.shifted_full_troughs = Troughs(self.fulls.any_ret, self.carry.shifted_full_return)
        self.shifted_weak_troughs = self.soonest(*own(rows, WEAK_EMPTY, low, high), self.carry.shifted_weak_return)
        self.shifted_empty_troughs = self.soonest(*own(rows, EMPTY, low, high), self.carry.shifted_empty_return)
        positions = np.where(self.empties.is_there, np.arange(self.low, self.high), -1)
        self.last_empty = Peaks(positions, self.carry.last_empty)

    def soonest(self, rows: Rows, keys: Longs, carry: int) -> Troughs:
        return Troughs(returns(rows.ret, soonest_of(keys, rows.ret, self.span)), carry)

    def judgement(self) -> Judgement:
        self.judge_identities()
        self.judge_puts()
        self.judge_gets()
        self.judge_empties()
        if self.shape.capacity is not None:
            self.judge_capacity()
            self.judge_fulls()
        return Judgement(self.findings, self.holes(), self.firsts())

    def report(
        self, rule: str, why: str, bad: NDArray[np.bool_], side: tuple[Rows, Longs], other: tuple[str, str, Longs]
    ) -> None:
        """One finding for each bad position: the row there, and whoever has the time there."""
        rows, at = side
        op, which, times = other
        places = np.flatnonzero(bad)
        for position in places[: self.findings.room_for(rule, why, len(places))]:
            contradiction = sought(op, which, times[position])
            self.findings.listed.append(Finding(rule, why, rows.witness(int(at[position])), contradiction))

    def judge_identities(self) -> None:
        """Each position has one put and one get, of the same value."""
        puts, gets = self.puts, self.gets
        for row in puts.doubled:
            twin = puts.rows.witness(int(puts.at[puts.rows.ticket[row] - self.low]))
            self.findings.add("ticket", TWO_PUTS, puts.rows.witness(int(row)), twin)
        for row in gets.doubled:
            twin_row = int(gets.at[gets.rows.ticket[row] - self.low])
            is_repeated = gets.rows.value[row] == gets.rows.value[twin_row]
            rule, why = ("repeat", "an item was got twice") if is_repeated else ("ticket", "two gets have one position")
            self.findings.add(rule, why, gets.rows.witness(int(row)), gets.rows.witness(twin_row))
        both = np.flatnonzero(puts.is_there & gets.is_there)
        differ = both[puts.rows.value[puts.at[both]] != gets.rows.value[gets.at[both]]]
        for position in differ[: self.findings.room_for("mismatch", "", len(differ))]:
            self.findings.listed.append(
                Finding(
                    "mismatch",
                    "",
                    gets.rows.witness(int(gets.at[position])),
                    puts.rows.witness(int(puts.at[position])),
                )
            )

    def judge_puts(self) -> None:
        puts, peaks = self.puts, self.put_peaks.through
        self.report(
            "order",
            "a put returned before the put of an earlier position was invoked",
            puts.is_there & (puts.ret < peaks),
            (puts.rows, puts.at),
            ("put", "invoke_ns", peaks),
        )

    def judge_gets(self) -> None:
        gets, puts = self.gets, self.puts
        side = (gets.rows, gets.at)
        is_fresh = gets.is_there & (gets.ret < puts.invoke)
        self.report(
            "fresh", "an item was got before its put was invoked", is_fresh, side, ("put", "invoke_ns", puts.invoke)
        )
        for rule, why, times, op in (
            (
                "order",
                "a get returned before the get of an earlier position was invoked",
                self.get_peaks.through,
                "get",
            ),
            ("order", "a get returned before the put of an earlier position was invoked", self.put_peaks.before, "put"),
            ("empty", "a get returned before an empty answer at an earlier position", self.empty_peaks.through, "get"),
            ("full", "a get returned before a full answer that still held its item", self.full_peaks.through, "put"),
        ):
            self.report(rule, why, gets.is_there & (gets.ret < times), side, (op, "invoke_ns", times))

    def judge_empties(self) -> None:
        empties, troughs = self.empties, self.put_troughs.onwards
        self.report(
            "empty",
            "empty was answered after a put had returned that stands at or behind its position",
            empties.is_there & (empties.invoke > troughs),
            (empties.rows, empties.latest),
            ("put", "return_ns", troughs),
        )
        self.report(
            "empty",
            "a get before an empty answer's position was invoked after the return of a put behind it",
            empties.is_there & (self.get_peaks.before > troughs),
            (empties.rows, empties.latest),
            ("put", "return_ns", troughs),
        )
        if self.shape.capacity is not None:
            self.report(
                "empty",
                "a get before an empty answer's position was invoked after the return of a full answer behind it",
                empties.is_there & (self.get_peaks.before > self.shifted_full_troughs.after),
                (empties.rows, empties.latest),
                ("put", "return_ns", self.shifted_full_troughs.after),
            )
        for why, times, op in (
            ("empty was answered before the put of an earlier position was invoked", self.put_peaks.before, "put"),
            ("empty was answered before the get of an earlier position was invoked", self.get_peaks.before, "get"),
            ("empty was answered before an empty answer at an earlier position", self.empty_peaks.before, "get"),
            ("empty was answered before a full answer at an earlier position", self.full_peaks.before, "put"),
        ):
            bad = empties.is_there & (empties.ret < times)
            self.report("empty", why, bad, (empties.rows, empties.soonest), (op, "invoke_ns", times))
            weak = np.flatnonzero(empties.weak.ret < times[empties.weak_keys])
            for row in weak[: self.findings.room_for("empty", why, len(weak))]:
                other = sought(op, "invoke_ns", times[empties.weak_keys[row]])
                self.findings.listed.append(Finding("empty", why, empties.weak.witness(int(row)), other))
        why = "empty was answered after the put at its position had returned"
        own_put = self.puts.ret[empties.weak_keys]
        weak = np.flatnonzero(empties.weak.invoke > own_put)
        for row in weak[: self.findings.room_for("empty", why, len(weak))]:
            other = sought("put", "return_ns", own_put[row])
            self.findings.listed.append(Finding("empty", why, empties.weak.witness(int(row)), other))

    def judge_capacity(self) -> None:
        puts = self.puts
        for rule, why, times, op in (
            ("capacity", "a put returned before the get that made room for it was invoked", self.room_peaks, "get"),
            ("full", "a put returned before a full answer that left no room for it", self.shifted_full_peaks, "put"),
        ):
            bad = puts.is_there & (puts.ret < times.through)
            self.report(rule, why, bad, (puts.rows, puts.at), (op, "invoke_ns", times.through))

    def judge_fulls(self) -> None:
        fulls = self.fulls
        for why, times, op in (
            ("full was answered before a put that filled the queue was invoked", self.put_peaks.before, "put"),
            ("full was answered before an empty answer at an earlier position", self.empty_peaks.before, "get"),
            ("full was answered before the get of an earlier position was invoked", self.room_peaks.before, "get"),
            ("full was answered before a full answer at an earlier position", self.shifted_full_peaks.before, "put"),
        ):
            bad = fulls.is_there & (fulls.ret < times)
            self.report("full", why, bad, (fulls.rows, fulls.soonest), (op, "invoke_ns", times))
            weak = np.flatnonzero(fulls.weak.ret < times[fulls.weak_keys])
            for row in weak[: self.findings.room_for("full", why, len(weak))]:
                other = sought(op, "invoke_ns", times[fulls.weak_keys[row]])
                self.findings.listed.append(Finding("full", why, fulls.weak.witness(int(row)), other))
        filled = np.maximum(self.put_peaks.before, self.empty_peaks.before)
        self.report(
            "full",
            "a put that filled the queue was invoked after a get had returned that followed a full answer",
            fulls.is_there & (filled > self.room_troughs.onwards),
            (fulls.rows, fulls.latest),
            ("get", "return_ns", self.room_troughs.onwards),
        )
        self.report(
            "full",
            "a put that filled the queue was invoked after a weak empty answer behind a full one had returned",
            fulls.is_there & (filled > self.shifted_weak_troughs.after),
            (fulls.rows, fulls.latest),
            ("get", "return_ns", self.shifted_weak_troughs.after),
        )
        assert self.shape.capacity is not None
        heads = np.arange(self.low, self.high) - self.shape.capacity
        places = np.flatnonzero(fulls.is_there & (self.last_empty.before > heads))
        why = "full and empty were answered at positions that exclude each other"
        for position in places[: self.findings.room_for("full", why, len(places))]:
            subject = fulls.rows.witness(int(fulls.latest[position]))
            other = {"op": "get", "ticket": int(self.last_empty.before[position]), "outcome": "empty"}
            self.findings.listed.append(Finding("full", why, subject, other))
        why = "full was answered after the get at its head had returned"
        own_get = self.room.ret[fulls.weak_keys]
        weak = np.flatnonzero(fulls.weak.invoke > own_get)
        for row in weak[: self.findings.room_for("full", why, len(weak))]:
            other = sought("get", "return_ns", own_get[row])
            self.findings.listed.append(Finding("full", why, fulls.weak.witness(int(row)), other))

    def holes(self) -> list[Hole]:
        positions = np.arange(self.low, self.high)
        found = self.put_holes(positions)
        if self.shape.overwrites:
            return found + self.overwritten_holes(positions)
        found += self.get_holes(~self.gets.is_there & (positions < self.shape.gets_needed))
        if self.shape.capacity is not None:
            made_room_for = positions - self.shape.capacity
            is_hole = ~self.room.is_there & (made_room_for >= 0) & (made_room_for < self.shape.gets_needed)
            for place_ in np.flatnonzero(is_hole)[:MOST_HOLES]:
                deadline = int(self.put_troughs.onwards[place_])
                found.append(Hole("get", int(made_room_for[place_]), deadline, None, None))
        return found

    def put_holes(self, positions: Longs) -> list[Hole]:
        deadlines = np.minimum(self.put_troughs.onwards, self.get_troughs.onwards)
        deadlines = np.minimum(deadlines, self.empty_troughs.after)
        if self.shape.capacity is not None:
            deadlines = np.minimum(deadlines, self.shifted_full_troughs.after)
            followers = np.minimum(self.room_troughs.onwards, self.shifted_weak_troughs.after)
            through = np.where(self.fulls.is_there, followers, NEVER)
            deadlines = np.minimum(deadlines, Troughs(through, NEVER).after)
        is_hole = ~self.puts.is_there & (positions < self.shape.puts_needed)
        found = []
        for position in np.flatnonzero(is_hole)[:MOST_HOLES]:
            row = int(self.gets.at[position])
            witness = self.gets.rows.witness(row) if row >= 0 else None
            value = witness["value"] if witness else None
            found.append(Hole("put", int(positions[position]), int(deadlines[position]), value, witness))
        return found

    def get_holes(self, is_hole: NDArray[np.bool_]) -> list[Hole]:
        deadlines = np.minimum(self.get_troughs.onwards, self.empty_troughs.after)
        deadlines = np.minimum(deadlines, self.full_troughs.after)
        through = np.where(self.empties.is_there, self.followers_of_empties(), NEVER)
        deadlines = np.minimum(deadlines, Troughs(through, NEVER).after)
        return [self.get_hole(int(place_), int(deadlines[place_])) for place_ in np.flatnonzero(is_hole)[:MOST_HOLES]]

    def get_hole(self, place_: int, deadline: int) -> Hole:
        row = int(self.puts.at[place_])
        witness = self.puts.rows.witness(row) if row >= 0 else None
        return Hole("get", place_ + self.low, deadline, witness["value"] if witness else None, witness)

    def overwritten_holes(self, positions: Longs) -> list[Hole]:
        """Items that were passed over and not overwritten. Seen at the position of the put that would have."""
        assert self.shape.capacity is not None
        lost = positions - self.shape.capacity
        is_hole = ~self.room.is_there & (lost >= 0) & (lost < self.shape.gets_needed)
        is_hole &= positions < self.shape.puts_needed
        filled = np.maximum(self.put_peaks.through, self.empty_peaks.through)
        cannot_be = filled > np.minimum(self.room_troughs.after, self.shifted_weak_troughs.after)
        cannot_be |= self.last_empty.through > lost
        deadlines = np.minimum(self.put_troughs.onwards, self.room_troughs.onwards)
        for answers in (self.shifted_empty_troughs, self.shifted_weak_troughs, self.shifted_full_troughs):
            deadlines = np.minimum(deadlines, answers.after)
        found = [
            Hole("get", int(lost[place_]), int(deadlines[place_]), None, None)
            for place_ in np.flatnonzero(is_hole & cannot_be)[:MOST_HOLES]
        ]
        return found + self.kept_holes(positions)

    def kept_holes(self, positions: Longs) -> list[Hole]:
        """Seen at their own position: what an empty answer says that nothing overwrote, and the last C positions.

        Only a killed put can have overwritten one of those.
        """
        assert self.shape.capacity is not None
        is_recent = positions + self.shape.capacity >= self.shape.puts_needed
        next_empty = Troughs(np.where(self.empties.is_there, positions, NEVER), NEVER).after
        is_hole = ~self.gets.is_there & (positions < self.shape.gets_needed)
        is_hole &= is_recent | (next_empty - self.shape.capacity <= positions)
        can_be = is_recent & (positions >= self.shape.last_empty)
        by = np.where(can_be, np.minimum(self.get_troughs.after, self.empty_troughs.after), START)
        return [hole._replace(overwritten_by=int(by[hole.position - self.low])) for hole in self.get_holes(is_hole)]

    def followers_of_empties(self) -> Longs:
        """At a position: the soonest return of what must follow a get before an empty answer there."""
        if self.shape.capacity is None:
            return self.put_troughs.onwards
        return np.minimum(self.put_troughs.onwards, self.shifted_full_troughs.after)

    def firsts(self) -> list[First]:
        found = []
        if self.empties.is_there.any():
            place_ = int(np.argmax(self.empties.is_there))
            found.append(First("empty", self.low + place_, int(self.followers_of_empties()[place_])))
        if self.shape.capacity is not None and self.fulls.is_there.any():
            place_ = int(np.argmax(self.fulls.is_there))
            deadline = min(self.room_troughs.onwards[place_], self.shifted_weak_troughs.after[place_])
            found.append(First("full", self.low + place_, int(deadline)))
        return found
