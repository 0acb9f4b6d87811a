"""The order check: a queue without tickets, from the times of its puts and gets alone, in one bucket of time.

With each item's four times, of which those of the get are NEVER if it was never got:

    order   a, b with put_return(a) < put_invoke(b) and get_return(b) < get_invoke(a): b overtook a
    empty   an empty answer whose whole time lies inside the union of the open intervals (put_return, get_invoke)

Order: from the right, the soonest get_return of all puts that are invoked later. Empty: from the left, the last moment
that no interval covers; an answer is wrong if that moment is before its invocation. When an interval begins behind the
end of all before it, such a moment is its beginning. An answer that began in an earlier bucket is settled at the end.
Capacity (a sound bound, not a proof): more than C such intervals that have one moment in common.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from queueduct.verification.check.operations import NEVER, START, Columns, Finding, Findings, Longs, sought
from queueduct.verification.check.positions.extremes import PrefixMax, SuffixMin

__all__ = ["Answer", "At", "Moments", "OrderJudgement", "TimeBoundary", "false_empty", "judge_order"]

NEVER_EMPTY = "empty was answered while the queue was never empty"


class At:
    """What happens at a moment, and what its ``other`` time is:

    PUT      a put is invoked; when its item's get returns
    QUEUED   a put returns; when its item's get is invoked
    TAKEN    a get is invoked, of an item whose put had returned: one less in the queue
    EMPTY    an empty answer returns; when it was invoked
    HELD     a put is invoked, of any item; GONE a get returns: how many items there may be at most
    FULL     a full answer returns; when it was invoked
    """

    PUT, QUEUED, TAKEN, EMPTY, HELD, GONE, FULL = range(7)
    SORTS = 7


@dataclass(frozen=True)
class Moments(Columns):
    """Moments, in any order."""

    sort: NDArray[np.int8]
    time: Longs
    other: Longs
    value: Longs

    @classmethod
    def of(cls, sort: int, time: Longs, other: Longs, value: Longs) -> Moments:
        return cls(np.full(len(time), sort, np.int8), time, other, value)

    def at(self, sort: int) -> Moments:
        return self.where(self.sort == sort)

    def in_time(self) -> Moments:
        return self.where(np.argsort(self.time, kind="stable"))


@dataclass(frozen=True)
class TimeBoundary:
    """What a bucket needs from the others."""

    soonest_got: int = NEVER
    """The least get_return of all puts that were invoked after this bucket."""
    soonest_value: int = 0
    """The value of that item."""
    latest_taken: int = START
    """The greatest get_invoke of all intervals that began before this bucket."""
    latest_value: int = 0
    """The value of that item."""
    inside: int = 0
    """Intervals that began before this bucket, less those that ended before it."""
    last_empty: int = START
    """The latest invocation of an empty answer in any bucket."""
    reader: int = -1
    """In a log: the reader of these gets."""
    held: int = 0
    """Items whose puts were invoked before this bucket, less those whose gets returned before it."""


class Answer(NamedTuple):
    """An empty answer that began before its bucket, and that nothing in the bucket excuses."""

    invoke: int
    ret: int
    value: int
    """The value of an item that was in the queue when it returned."""


class OrderJudgement(NamedTuple):
    findings: Findings
    last_break: int
    """The last moment in the bucket that no interval covers, as far as they begin; START if there is none."""
    open_answers: list[Answer]


def judge_order(moments: Moments, low: int, boundary: TimeBoundary, capacity: int | None) -> OrderJudgement:
    """Returns the findings in the bucket of time that begins at ``low``."""
    findings = Findings()
    judge_overtaking(moments, boundary, findings)
    last_break, answers = judge_answers(moments, low, boundary, findings)
    if capacity is not None:
        judge_crowding(moments, boundary, capacity, findings)
    return OrderJudgement(findings, last_break, answers)


def judge_overtaking(moments: Moments, boundary: TimeBoundary, findings: Findings) -> None:
    puts, queued = moments.at(At.PUT).in_time(), moments.at(At.QUEUED)
    got = SuffixMin(puts.other, boundary.soonest_got)
    is_new = puts.other < got.after
    values = last_new(is_new[::-1], puts.value[::-1], boundary.soonest_value)[::-1]
    values, times = np.append(values, boundary.soonest_value), np.append(got.onwards, boundary.soonest_got)
    behind = np.searchsorted(puts.time, queued.time, side="right")
    is_overtaken = times[behind] < queued.other
    overtaken, behind = queued.where(is_overtaken), behind[is_overtaken]

    def report(rule: str, why: str, bad: Moments, by: Longs) -> None:
        for row in range(findings.room_for(rule, why, len(bad))):
            other = sought("get", "return_ns", times[by[row]], reader=boundary.reader)
            other["value"] = int(values[by[row]])
            findings.listed.append(Finding(rule, why, item(bad.value[row]), other))

    report("order", "an item was put after this one and got before it", overtaken, behind)
    never = overtaken.other == NEVER
    why = "an item was never got, though one that was put after it was"
    report("lost", why, overtaken.where(never), behind[never])
    left = queued.value[(queued.other == NEVER) & (queued.time < boundary.last_empty)]
    why = "an item was never got, though the queue was empty afterwards"
    for value in left[: findings.room_for("lost", why, len(left))]:
        other = sought("empty", "invoke_ns", boundary.last_empty, reader=boundary.reader)
        findings.listed.append(Finding("lost", why, item(value), other))


def last_new(is_new: Any, values: Longs, before: int) -> Longs:
    """Returns at each index the value of the last new one up to it."""
    indices = np.maximum.accumulate(np.where(is_new, np.arange(len(values)), -1))
    return np.where(indices >= 0, values[indices], before)


def false_empty(answer: Answer, reader: int) -> Finding:
    subject = sought("empty", "invoke_ns", answer.invoke, reader=reader) | {"return_ns": answer.ret}
    return Finding("empty", NEVER_EMPTY, subject, item(answer.value))


def item(value: Any) -> dict[str, Any]:
    return {"op": "put", "value": int(value)}


def judge_answers(moments: Moments, low: int, boundary: TimeBoundary, findings: Findings) -> tuple[int, list[Answer]]:
    intervals, answers = intervals_of(moments), moments.at(At.EMPTY)
    taken = PrefixMax(intervals.other, boundary.latest_taken)
    breaks = np.where(intervals.time >= taken.before, intervals.time, START)
    starts = np.maximum.accumulate(np.append(START, breaks))
    ends = np.append(boundary.latest_taken, taken.through)
    is_new = intervals.other > taken.before
    values = np.append(boundary.latest_value, last_new(is_new, intervals.value, boundary.latest_value))
    began_before = np.searchsorted(intervals.time, answers.time, side="left")
    uncovered = starts[began_before]
    is_bad = (ends[began_before] > answers.time) & (uncovered < answers.other)
    is_open = is_bad & (uncovered == START) & (answers.other < low)

    def told(chosen: Longs) -> list[Answer]:
        columns = (answers.other[chosen], answers.time[chosen], values[began_before[chosen]])
        return [Answer(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]

    closed = np.flatnonzero(is_bad & ~is_open)
    for answer in told(closed[: findings.room_for("empty", NEVER_EMPTY, len(closed))]):
        findings.listed.append(false_empty(answer, boundary.reader))
    return int(starts[-1]), told(np.flatnonzero(is_open))


def intervals_of(moments: Moments) -> Moments:
    """Returns intervals, ordered by start: from an item's put_return to its get_invoke."""
    queued = moments.at(At.QUEUED)
    return queued.where(queued.time < queued.other).in_time()


def judge_crowding(moments: Moments, boundary: TimeBoundary, capacity: int, findings: Findings) -> None:
    begun = intervals_of(moments)
    ends = np.sort(moments.at(At.TAKEN).time)
    inside = np.arange(1, len(begun) + 1) + boundary.inside - np.searchsorted(ends, begun.time, side="right")
    is_last = np.append(begun.time[:-1] != begun.time[1:], True)[: len(begun)]
    crowded = np.flatnonzero(is_last & (inside > capacity))
    why = "more items were in the queue than it holds"
    for row in crowded[: findings.room_for("capacity", why, len(crowded))]:
        is_beside = (begun.time <= begun.time[row]) & (begun.other > begun.time[row])
        is_beside[row] = False
        other = item(begun.value[np.argmax(is_beside)] if is_beside.any() else boundary.latest_value)
        findings.listed.append(Finding("capacity", why, item(begun.value[row]), other))
