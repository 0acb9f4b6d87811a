"""The order check: a queue without tickets, from the times of its puts and gets alone, in one bucket of time.

With e, d the put and the get of a value, [ie, re] and [id, rd] their times, id = rd = never if it was never got:

    order   a, b with re(a) < ie(b) and rd(b) < id(a): b overtook a
    empty   an empty answer whose whole time lies inside the union of the open intervals (re, id)

Order: from the right, the soonest rd of all puts that are invoked later. Empty: from the left, the last moment that no
interval covers; an answer is wrong if that moment is before its invocation. When an interval begins behind the end of
all before it, such a moment is its beginning. An answer that began in an earlier bucket is settled at the end.
Capacity (a sound bound, not a proof): more than C intervals (re, id) that have one moment in common.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from queueduct.verification.check.operations import NEVER, START, Finding, Findings, Longs, sought
from queueduct.verification.check.positions.extremes import Peaks, Troughs

__all__ = ["Answer", "Moments", "OrderCarry", "OrderJudgement", "false_empty", "judge_order"]

NEVER_EMPTY = "empty was answered while the queue was never empty"


class Moments(NamedTuple):
    """Rows of a bucket. A value comes at its ie with its rd, and at its re with its id; an empty answer at its end."""

    is_put: Any
    """At ie: ``other`` is rd."""
    is_queued: Any
    """At re: ``other`` is id."""
    is_taken: Any
    """At id, of those with re < id: one less in the queue."""
    is_empty: Any
    """At the return of an empty answer: ``other`` is its invocation."""
    time: Longs
    other: Longs
    value: Longs


@dataclass(frozen=True)
class OrderCarry:
    """From the other buckets."""

    soonest_got: int = NEVER
    """Least rd of all puts that were invoked after this bucket."""
    soonest_value: int = 0
    """Whose it is."""
    latest_taken: int = START
    """Greatest id of all intervals that began before this bucket."""
    latest_value: int = 0
    """Whose it is."""
    inside: int = 0
    """Intervals that began before this bucket, less those that ended before it."""
    last_empty: int = START
    """The latest invocation of an empty answer, anywhere."""
    reader: int = -1
    """Whose gets these are, in a log."""
    held: int = 0
    """Items that had begun to come before this bucket, less those that were gone before it."""


class Answer(NamedTuple):
    """An empty answer that began before its bucket, and that nothing in the bucket excuses."""

    invoke: int
    ret: int
    value: int
    """Of an item that was in the queue when it returned."""


class OrderJudgement(NamedTuple):
    findings: Findings
    last_break: int
    """The last moment in the bucket that no interval covers, as far as they begin; START if there is none."""
    open_answers: list[Answer]


def judge_order(moments: Moments, low: int, carry: OrderCarry, capacity: int | None) -> OrderJudgement:
    """What is wrong in the bucket of time that begins at ``low``."""
    findings = Findings()
    judge_overtaking(moments, carry, findings)
    last_break, answers = judge_answers(moments, low, carry, findings)
    if capacity is not None:
        judge_crowding(moments, carry, capacity, findings)
    return OrderJudgement(findings, last_break, answers)


def judge_overtaking(moments: Moments, carry: OrderCarry, findings: Findings) -> None:
    put = np.flatnonzero(moments.is_put)
    put = put[np.argsort(moments.time[put], kind="stable")]
    troughs = Troughs(moments.other[put], carry.soonest_got)
    is_new = moments.other[put] < troughs.after
    values = np.append(last_new(is_new[::-1], moments.value[put][::-1], carry.soonest_value)[::-1], carry.soonest_value)
    times = np.append(troughs.onwards, carry.soonest_got)
    queued = np.flatnonzero(moments.is_queued)
    behind = np.searchsorted(moments.time[put], moments.time[queued], side="right")
    is_overtaken = times[behind] < moments.other[queued]
    overtaken, behind = queued[is_overtaken], behind[is_overtaken]

    def report(rule: str, why: str, bad: Longs, by: Longs) -> None:
        for row, place in list(zip(bad, by, strict=True))[: findings.room_for(rule, why, len(bad))]:
            other = sought("get", "return_ns", times[place], reader=carry.reader) | {"value": int(values[place])}
            findings.listed.append(Finding(rule, why, item(moments.value[row]), other))

    report("order", "an item was put after this one and got before it", overtaken, behind)
    never = moments.other[overtaken] == NEVER
    why = "an item was never got, though one that was put after it was"
    report("lost", why, overtaken[never], behind[never])
    left = queued[(moments.other[queued] == NEVER) & (moments.time[queued] < carry.last_empty)]
    why = "an item was never got, though the queue was empty afterwards"
    for row in left[: findings.room_for("lost", why, len(left))]:
        other = sought("empty", "invoke_ns", carry.last_empty, reader=carry.reader)
        findings.listed.append(Finding("lost", why, item(moments.value[row]), other))


def last_new(is_new: Any, values: Longs, before: int) -> Longs:
    """At each place the value of the last new one that is not behind it."""
    places = np.maximum.accumulate(np.where(is_new, np.arange(len(values)), -1))
    return np.where(places >= 0, values[places], before)


def false_empty(answer: Answer, reader: int) -> Finding:
    subject = sought("empty", "invoke_ns", answer.invoke, reader=reader) | {"return_ns": answer.ret}
    return Finding("empty", NEVER_EMPTY, subject, item(answer.value))


def item(value: Any) -> dict[str, Any]:
    return {"op": "put", "value": int(value)}


def judge_answers(moments: Moments, low: int, carry: OrderCarry, findings: Findings) -> tuple[int, list[Answer]]:
    interval = np.flatnonzero(moments.is_queued & (moments.time < moments.other))
    interval = interval[np.argsort(moments.time[interval], kind="stable")]
    begins = moments.time[interval]
    peaks = Peaks(moments.other[interval], carry.latest_taken)
    breaks = np.where(begins >= peaks.before, begins, START)
    starts = np.append(START, np.maximum.accumulate(breaks)) if len(breaks) else np.array([START], np.int64)
    ends = np.append(carry.latest_taken, peaks.through)
    is_new = moments.other[interval] > peaks.before
    values = np.append(carry.latest_value, last_new(is_new, moments.value[interval], carry.latest_value))
    answers = np.flatnonzero(moments.is_empty)
    began_before = np.searchsorted(begins, moments.time[answers], side="left")
    is_covered = ends[began_before] > moments.time[answers]
    uncovered = starts[began_before]
    invoke = moments.other[answers]
    is_bad = is_covered & (uncovered < invoke)
    is_open = is_bad & (uncovered == START) & (invoke < low)
    found = [
        Answer(int(moments.other[row]), int(moments.time[row]), int(values[place]))
        for row, place in zip(answers[is_bad], began_before[is_bad], strict=True)
    ]
    is_open = is_open[is_bad]
    closed = [answer for answer, open_ in zip(found, is_open, strict=True) if not open_]
    for answer in closed[: findings.room_for("empty", NEVER_EMPTY, len(closed))]:
        findings.listed.append(false_empty(answer, carry.reader))
    return int(starts[-1]), [answer for answer, open_ in zip(found, is_open, strict=True) if open_]


def judge_crowding(moments: Moments, carry: OrderCarry, capacity: int, findings: Findings) -> None:
    begins = np.flatnonzero(moments.is_queued & (moments.time < moments.other))
    begins = begins[np.argsort(moments.time[begins], kind="stable")]
    ends = np.sort(moments.time[moments.is_taken])
    inside = np.arange(1, len(begins) + 1) + carry.inside
    inside -= np.searchsorted(ends, moments.time[begins], side="right")
    is_last = np.ones(len(begins), bool)
    is_last[:-1] = moments.time[begins][:-1] != moments.time[begins][1:]
    crowded = begins[is_last & (inside > capacity)]
    why = "more items were in the queue than it holds"
    for row in crowded[: findings.room_for("capacity", why, len(crowded))]:
        is_beside = (moments.time[begins] <= moments.time[row]) & (moments.other[begins] > moments.time[row])
        beside = moments.value[begins[is_beside & (begins != row)]]
        other = item(beside[0] if len(beside) else carry.latest_value)
        findings.listed.append(Finding("capacity", why, item(moments.value[row]), other))
