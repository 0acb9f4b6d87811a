"""Full answers without a ticket, in one bucket of time.

At a time t a queue holds at most the items with put_invoke ≤ t ≤ get_return. A full answer is wrong if these were fewer
than C at every time between its invocation and its return. Fewer than C items prove the answer wrong; C or more do not
prove it right. The count only falls at a get's return, so it is enough to test those times and the answer's own return.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from queueduct.verification.check.operations import START, Finding, Findings, Longs, sought
from queueduct.verification.check.times.order import At, Moments

__all__ = ["FullJudgement", "false_full", "judge_full_answers"]

NEVER_FULL = "full was answered while there were never so many items"


class FullJudgement(NamedTuple):
    findings: Findings
    last_full: int
    """The last moment in the bucket at which an item left a queue that may have been full; START if there is none."""
    open_answers: list[tuple[int, int]]
    """Invocation and return of answers that began before the bucket, and that nothing in it excuses."""


def judge_full_answers(moments: Moments, low: int, before: int, capacity: int) -> FullJudgement:
    """Judges the bucket that begins at ``low`` with ``before`` items."""
    held, gone = np.sort(moments.at(At.HELD).time), np.sort(moments.at(At.GONE).time)
    answers = moments.at(At.FULL)

    def number_at(times: Longs) -> Longs:
        left = np.searchsorted(gone, times, side="left")
        return before + np.searchsorted(held, times, side="right") - left

    full = np.maximum.accumulate(np.append(START, np.where(number_at(gone) >= capacity, gone, START)))
    last = full[np.searchsorted(gone, answers.time, side="left")]
    is_bad = (number_at(answers.time) < capacity) & (last < answers.other)
    is_open = is_bad & (last == START) & (answers.other < low)
    findings = Findings()
    bad = np.flatnonzero(is_bad & ~is_open)
    for row in bad[: findings.room_for("full", NEVER_FULL, len(bad))]:
        findings.listed.append(false_full(int(answers.other[row]), int(answers.time[row])))
    spanning = [(int(answers.other[row]), int(answers.time[row])) for row in np.flatnonzero(is_open)]
    return FullJudgement(findings, int(full[-1]), spanning)


def false_full(invoke: int, ret: int) -> Finding:
    return Finding("full", NEVER_FULL, sought("full", "invoke_ns", invoke) | {"return_ns": ret}, None)
