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

from queueduct.verification.check.operations import Longs, Rows
from queueduct.verification.check.positions.boundaries import Boundary, Extent
from queueduct.verification.check.positions.bucket import Contrary, Judgement, QueueBucket, invoked, returned
from queueduct.verification.check.positions.gaps import firsts_of, gaps_of

__all__ = ["judge"]


def judge(rows: Rows, bucket: int, boundary: Boundary, extent: Extent) -> Judgement:
    """Returns the findings at the bucket's positions, given the boundary of the others."""
    return Conditions(rows, bucket, boundary, extent).judgement()


class Conditions(QueueBucket):
    def judgement(self) -> Judgement:
        self.judge_puts()
        self.judge_identities(self.gets, "an item was got twice", "two gets have one position")
        self.judge_gets()
        self.judge_empties()
        if self.extent.capacity is not None:
            self.judge_capacity(self.extent.capacity)
            self.judge_fulls(self.extent.capacity)
        return Judgement(self.findings.rows(), gaps_of(self), firsts_of(self))

    def judge_gets(self) -> None:
        put, get = self.put_invokes.before, self.get_invokes.through
        empty, full = self.empty_invokes.through, self.full_invokes.through
        for rule, why, other in (
            ("fresh", "an item was got before its put was invoked", invoked("put", self.puts.invoke, 0)),
            ("order", "a get returned before the get of an earlier position was invoked", invoked("get", get, 0)),
            ("order", "a get returned before the put of an earlier position was invoked", invoked("put", put, -1)),
            ("empty", "a get returned before an empty answer at an earlier position", invoked("empty", empty, 0)),
            ("full", "a get returned before a full answer that still held its item", invoked("full", full, 0)),
        ):
            self.too_soon(rule, why, self.gets, other)

    def judge_empties(self) -> None:
        empties = self.empties
        put, get, empty, full = self.put_invokes, self.get_invokes, self.empty_invokes, self.full_invokes

        def excluded(why: str, times: Longs, other: Contrary) -> None:
            is_bad = empties.is_there & (times > other.times)
            self.report_at("empty", why, is_bad, empties.rows, empties.latest, other)

        behind = returned("put", self.put_returns.onwards, 0)
        why = "empty was answered after a put had returned that stands at or behind its position"
        excluded(why, empties.invoke, behind)
        why = "a get before an empty answer's position was invoked after the return of a put behind it"
        excluded(why, get.before, behind)
        if self.extent.capacity is not None:
            why = "a get before an empty answer's position was invoked after the return of a full answer behind it"
            excluded(why, get.before, returned("full", self.shifted_full_returns.after, 1 - self.extent.capacity))
        for why, other in (
            ("empty was answered before the put of an earlier position was invoked", invoked("put", put.before, -1)),
            ("empty was answered before the get of an earlier position was invoked", invoked("get", get.before, -1)),
            ("empty was answered before an empty answer at an earlier position", invoked("empty", empty.before, -1)),
            ("empty was answered before a full answer at an earlier position", invoked("full", full.before, -1)),
        ):
            self.answered_too_soon("empty", why, empties, other)
        why = "empty was answered after the put at its position had returned"
        self.weak_too_late("empty", why, empties, returned("put", self.puts.ret, 0))

    def judge_capacity(self, capacity: int) -> None:
        room = invoked("get", self.room_invokes.through, -capacity)
        self.too_soon("capacity", "a put returned before the get that made room for it was invoked", self.puts, room)
        full = invoked("full", self.shifted_full_invokes.through, -capacity)
        self.too_soon("full", "a put returned before a full answer that left no room for it", self.puts, full)

    def judge_fulls(self, capacity: int) -> None:
        """Judged at the position after the last item that the queue held then."""
        fulls, put, empty = self.fulls, self.put_invokes, self.empty_invokes
        room = invoked("get", self.room_invokes.before, -1 - capacity)
        full = invoked("full", self.shifted_full_invokes.before, -1 - capacity)
        for why, other in (
            ("full was answered before a put that filled the queue was invoked", invoked("put", put.before, -1)),
            ("full was answered before an empty answer at an earlier position", invoked("empty", empty.before, -1)),
            ("full was answered before the get of an earlier position was invoked", room),
            ("full was answered before a full answer at an earlier position", full),
        ):
            self.answered_too_soon("full", why, fulls, other)
        got = returned("get", self.room_returns.onwards, -capacity)
        weak = returned("empty", self.shifted_weak_returns.after, 1 - capacity)
        for why, other in (
            ("a put that filled the queue was invoked after a get had returned that followed a full answer", got),
            ("a put that filled the queue was invoked after a weak empty answer behind a full one had returned", weak),
        ):
            is_bad = fulls.is_there & (np.maximum(put.before, empty.before) > other.times)
            self.report_at("full", why, is_bad, fulls.rows, fulls.latest, other)
        self.judge_exclusion(capacity)
        why = "full was answered after the get at its head had returned"
        self.weak_too_late("full", why, fulls, returned("get", self.room.ret, -capacity))

    def judge_exclusion(self, capacity: int) -> None:
        """Full at h excludes empty at h+1 … h+C-1."""
        heads = np.arange(self.low, self.high) - capacity
        other = Contrary("empty", "ticket", self.last_empty.before)
        why = "full and empty were answered at positions that exclude each other"
        is_bad = self.fulls.is_there & (self.last_empty.before > heads)
        self.report_at("full", why, is_bad, self.fulls.rows, self.fulls.latest, other)
