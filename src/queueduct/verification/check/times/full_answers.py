"""Full answers without a ticket, in one bucket of time.

At a moment t a queue holds at most those items that had begun to come by then and were not gone before: ie ≤ t ≤ rd.
A full answer is wrong if these were fewer than C at every moment of its time. So few prove that it is wrong; so many do
not prove that it is right. Items leave in such moments rd: the last moment of many is one of them, or the answer's end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from queueduct.verification.check.operations import START, Finding, Findings, Longs, sought

__all__ = ["Filling", "FillingJudgement", "false_full", "judge_filling"]

NEVER_FULL = "full was answered while there were never so many items"


class Filling(NamedTuple):
    """Moments of a bucket, in any order."""

    held: Longs
    """Each ie."""
    gone: Longs
    """Each rd."""
    invoke: Longs
    """Of the full answers that return in the bucket."""
    ret: Longs


class FillingJudgement(NamedTuple):
    findings: Findings
    last_full: int
    """The last moment in the bucket at which an item left a queue that may have been full; START if there is none."""
    open_answers: list[tuple[int, int]]
    """Invocation and return of those that began before the bucket, and that nothing in it excuses."""


def judge_filling(filling: Filling, low: int, before: int, capacity: int) -> FillingJudgement:
    """Of the bucket that begins at ``low``, when there are already so many as ``before``."""
    held, gone = np.sort(filling.held), np.sort(filling.gone)

    def number_at(times: Longs) -> Longs:
        left = np.searchsorted(gone, times, side="left")
        return before + np.searchsorted(held, times, side="right") - left

    full = np.maximum.accumulate(np.append(START, np.where(number_at(gone) >= capacity, gone, START)))
    last = full[np.searchsorted(gone, filling.ret, side="left")]
    is_bad = (number_at(filling.ret) < capacity) & (last < filling.invoke)
    is_open = is_bad & (last == START) & (filling.invoke < low)
    findings = Findings()
    bad = np.flatnonzero(is_bad & ~is_open)
    for row in bad[: findings.room_for("full", NEVER_FULL, len(bad))]:
        findings.listed.append(false_full(int(filling.invoke[row]), int(filling.ret[row])))
    spanning = [(int(filling.invoke[row]), int(filling.ret[row])) for row in np.flatnonzero(is_open)]
    return FillingJudgement(findings, int(full[-1]), spanning)


def false_full(invoke: int, ret: int) -> Finding:
    return Finding("full", NEVER_FULL, sought("full", "invoke_ns", invoke) | {"return_ns": ret}, None)
