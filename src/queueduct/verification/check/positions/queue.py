"""The ticket check: a queue that hands out positions, in one bucket of them.

Operations must precede each other, because of their tickets, like this (e put, d get, z empty, f full, C the capacity):

    e(k) → e(k+1)    d(k) → d(k+1)    e(k) → d(k)    d(k) → e(k+C)
    e(k-1), d(k-1) → z(k) → e(k)      e(k+C-1), d(k-1) → f(k) → d(k)

A history is in this order iff no operation returned before one was invoked that must precede it, directly or through
others. The latest invocation of all that must precede is a prefix maximum. Two ways lead through an answer: d → z → e
and e → f → d; they are judged at the answer, with the soonest return of all that must follow, a suffix minimum.

A position without a put or a get is a *gap*. Whether a killed operation explains it is settled when all are known: it
does if it was invoked before the soonest return of what must follow, the gap's deadline.
An overwriting queue may lose d(j), if e(j+C) comes before every d behind j: as if it had been full with head j+1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from queueduct.verification.check.operations import TWO_PUTS, Findings, Longs, Rows
from queueduct.verification.check.positions.boundaries import Boundary, Extent
from queueduct.verification.check.positions.bucket import (
    Answers,
    Contrary,
    Judgement,
    QueueBucket,
    at_positions,
    compare_values,
    invoked,
    report,
    returned,
)
from queueduct.verification.check.positions.gaps import firsts_of, gaps_of

__all__ = ["judge"]


def judge(rows: Rows, bucket: int, boundary: Boundary, extent: Extent) -> Judgement:
    """What is wrong at the bucket's positions, given what the boundary says of the others."""
    return Bucket(rows, bucket, boundary, extent).judgement()


class Bucket(QueueBucket):
    def __init__(self, rows: Rows, bucket: int, boundary: Boundary, extent: Extent) -> None:
        super().__init__(rows, bucket, boundary, extent)
        self.findings = Findings()

    def judgement(self) -> Judgement:
        self.judge_identities()
        self.judge_puts()
        self.judge_gets()
        self.judge_empties()
        if self.extent.capacity is not None:
            self.judge_capacity(self.extent.capacity)
            self.judge_fulls(self.extent.capacity)
        return Judgement(self.findings.rows(), gaps_of(self), firsts_of(self))

    def report(self, rule: str, why: str, bad: NDArray[np.bool_], side: tuple[Rows, Longs], other: Contrary) -> None:
        report(self.findings, (rule, why), at_positions(bad, *side, self.low), other)

    def report_answers(self, rule: str, why: str, answers: Answers, other: Contrary) -> None:
        """Those, weak or not, that returned before somebody was invoked who must precede them."""
        bad = answers.is_there & (answers.ret < other.times)
        self.report(rule, why, bad, (answers.rows, answers.soonest), other)
        self.report_weak(rule, why, answers, answers.weak.ret < other.times[answers.weak_keys], other)

    def report_weak(self, rule: str, why: str, answers: Answers, bad: NDArray[np.bool_], other: Contrary) -> None:
        rows = np.flatnonzero(bad)
        report(self.findings, (rule, why), (answers.weak, rows, answers.weak_keys[rows], self.low), other)

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
        compare_values(puts, gets, self.findings)

    def judge_puts(self) -> None:
        puts, latest_invoke = self.puts, self.put_prefix_max.through
        self.report(
            "order",
            "a put returned before the put of an earlier position was invoked",
            puts.is_there & (puts.ret < latest_invoke),
            (puts.rows, puts.at),
            invoked("put", latest_invoke, 0),
        )

    def judge_gets(self) -> None:
        gets = self.gets
        for rule, why, other in (
            ("fresh", "an item was got before its put was invoked", invoked("put", self.puts.invoke, 0)),
            (
                "order",
                "a get returned before the get of an earlier position was invoked",
                invoked("get", self.get_prefix_max.through, 0),
            ),
            (
                "order",
                "a get returned before the put of an earlier position was invoked",
                invoked("put", self.put_prefix_max.before, -1),
            ),
            (
                "empty",
                "a get returned before an empty answer at an earlier position",
                invoked("empty", self.empty_prefix_max.through, 0),
            ),
            (
                "full",
                "a get returned before a full answer that still held its item",
                invoked("full", self.full_prefix_max.through, 0),
            ),
        ):
            self.report(rule, why, gets.is_there & (gets.ret < other.times), (gets.rows, gets.at), other)

    def judge_empties(self) -> None:
        empties, latest = self.empties, (self.empties.rows, self.empties.latest)
        behind = returned("put", self.put_suffix_min.onwards, 0)
        why = "empty was answered after a put had returned that stands at or behind its position"
        self.report("empty", why, empties.is_there & (empties.invoke > behind.times), latest, behind)
        why = "a get before an empty answer's position was invoked after the return of a put behind it"
        self.report("empty", why, empties.is_there & (self.get_prefix_max.before > behind.times), latest, behind)
        if self.extent.capacity is not None:
            full = returned("full", self.shifted_full_suffix_min.after, 1 - self.extent.capacity)
            why = "a get before an empty answer's position was invoked after the return of a full answer behind it"
            self.report("empty", why, empties.is_there & (self.get_prefix_max.before > full.times), latest, full)
        for why, other in (
            (
                "empty was answered before the put of an earlier position was invoked",
                invoked("put", self.put_prefix_max.before, -1),
            ),
            (
                "empty was answered before the get of an earlier position was invoked",
                invoked("get", self.get_prefix_max.before, -1),
            ),
            (
                "empty was answered before an empty answer at an earlier position",
                invoked("empty", self.empty_prefix_max.before, -1),
            ),
            (
                "empty was answered before a full answer at an earlier position",
                invoked("full", self.full_prefix_max.before, -1),
            ),
        ):
            self.report_answers("empty", why, empties, other)
        why = "empty was answered after the put at its position had returned"
        own_put = returned("put", self.puts.ret, 0)
        bad = empties.weak.invoke > own_put.times[empties.weak_keys]
        self.report_weak("empty", why, empties, bad, own_put)

    def judge_capacity(self, capacity: int) -> None:
        puts = self.puts
        for rule, why, other in (
            (
                "capacity",
                "a put returned before the get that made room for it was invoked",
                invoked("get", self.room_prefix_max.through, -capacity),
            ),
            (
                "full",
                "a put returned before a full answer that left no room for it",
                invoked("full", self.shifted_full_prefix_max.through, -capacity),
            ),
        ):
            self.report(rule, why, puts.is_there & (puts.ret < other.times), (puts.rows, puts.at), other)

    def judge_fulls(self, capacity: int) -> None:
        """At the position behind the last item that the queue held then."""
        fulls, latest = self.fulls, (self.fulls.rows, self.fulls.latest)
        for why, other in (
            (
                "full was answered before a put that filled the queue was invoked",
                invoked("put", self.put_prefix_max.before, -1),
            ),
            (
                "full was answered before an empty answer at an earlier position",
                invoked("empty", self.empty_prefix_max.before, -1),
            ),
            (
                "full was answered before the get of an earlier position was invoked",
                invoked("get", self.room_prefix_max.before, -1 - capacity),
            ),
            (
                "full was answered before a full answer at an earlier position",
                invoked("full", self.shifted_full_prefix_max.before, -1 - capacity),
            ),
        ):
            self.report_answers("full", why, fulls, other)
        filled = np.maximum(self.put_prefix_max.before, self.empty_prefix_max.before)
        for why, other in (
            (
                "a put that filled the queue was invoked after a get had returned that followed a full answer",
                returned("get", self.room_suffix_min.onwards, -capacity),
            ),
            (
                "a put that filled the queue was invoked after a weak empty answer behind a full one had returned",
                returned("empty", self.shifted_weak_suffix_min.after, 1 - capacity),
            ),
        ):
            self.report("full", why, fulls.is_there & (filled > other.times), latest, other)
        self.judge_exclusion(capacity)
        why = "full was answered after the get at its head had returned"
        own_get = returned("get", self.room.ret, -capacity)
        bad = fulls.weak.invoke > own_get.times[fulls.weak_keys]
        self.report_weak("full", why, fulls, bad, own_get)

    def judge_exclusion(self, capacity: int) -> None:
        """Full at h excludes empty at h+1 … h+C-1."""
        heads = np.arange(self.low, self.high) - capacity
        other = Contrary("empty", "ticket", self.last_empty.before)
        why = "full and empty were answered at positions that exclude each other"
        bad = self.fulls.is_there & (self.last_empty.before > heads)
        self.report("full", why, bad, (self.fulls.rows, self.fulls.latest), other)
