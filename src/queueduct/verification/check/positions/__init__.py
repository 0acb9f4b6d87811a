"""The ticket check: conditions on the operations at each position, one bucket of positions at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from queueduct.verification.check.operations import FULL, GET, PUT, START, WEAK_FULL, Finding, Longs, Rows
from queueduct.verification.check.part import Part
from queueduct.verification.check.positions import log, queue
from queueduct.verification.check.positions.boundaries import SHIFTED, Boundary, Extent, Summary
from queueduct.verification.check.positions.bucket import First, Gap, Judgement
from queueduct.verification.check.positions.extremes import latest_of, soonest_of
from queueduct.verification.check.table import Table, packed
from queueduct.verification.check.unique_values import Range, ranges_of

__all__ = ["Judged", "judge_bucket", "judge_positions"]


class Judged(NamedTuple):
    """Buckets of positions."""

    findings: list[Finding]
    gaps: list[Gap]
    firsts: list[First]
    ranges: list[Range]
    """Of the values that were put."""


def judge_positions(
    table: Table, is_log: bool, extent: Extent, boundaries: dict[int, Boundary], summaries: Sequence[Summary]
) -> Judged:
    """Every bucket that has a boundary."""
    sizes = dict.fromkeys(boundaries, 0)
    for each in summaries:
        for bucket in {each.bucket, each.shifted} & sizes.keys():
            sizes[bucket] += each.rows
    tasks = packed(sizes, 2 * extent.width)
    split = partial(to_buckets, extent=extent, tasks=tasks, is_crowded=is_crowded(summaries, extent.width))
    carried = table.carried(split, max(tasks.values(), default=-1) + 1)
    found = Judged([], [], [], [])
    for judged in carried.each(partial(judge_buckets, is_log=is_log, extent=extent, boundaries=boundaries)):
        found.findings.extend(judged.findings)
        found.gaps.extend(judged.gaps)
        found.firsts.extend(judged.firsts)
        found.ranges.extend(judged.ranges)
    return found


def is_crowded(summaries: Sequence[Summary], width: int) -> bool:
    """Has a bucket more answers than positions? Then a participant asked in vain, all the time."""
    answers: dict[int, int] = {}
    for each in summaries:
        if each.code not in (PUT, GET):
            answers[each.bucket] = answers.get(each.bucket, 0) + each.rows
    return any(rows > width for rows in answers.values())


def to_buckets(
    part: Part, extent: Extent, tasks: dict[int, int], is_crowded: bool
) -> Iterator[tuple[int, tuple[int, Rows]]]:
    """The rows that each bucket needs: its own, and those that are shifted into it."""
    rows = part.rows
    chosen = (rows.code <= WEAK_FULL) & (rows.ticket != START)
    if extent.capacity is None:
        chosen &= ~np.isin(rows.code, (FULL, WEAK_FULL))
    rows = rows.where(chosen)
    if is_crowded:
        rows = without_middle_answers(rows)
    buckets = rows.ticket // extent.width
    if extent.capacity is not None and len(tasks) > 1:
        shifted = (rows.ticket + extent.capacity) // extent.width
        again = np.flatnonzero(np.isin(rows.code, SHIFTED) & (shifted != buckets) & (shifted <= extent.buckets[-1]))
        buckets = np.concatenate([buckets, shifted[again]])
        rows = Rows.joined([rows, rows.where(again)])
    for bucket, mine in rows.sliced(buckets):
        yield tasks[bucket], (bucket, mine)


def without_middle_answers(rows: Rows) -> Rows:
    """Of all answers at a position only the one that was invoked last and the one that returned first can be wrong."""
    is_answer = ~np.isin(rows.code, (PUT, GET))
    answers = rows.where(is_answer)
    _, keys = np.unique(np.stack([answers.code, answers.ticket, answers.reader]), axis=1, return_inverse=True)
    keys = keys.reshape(-1).astype(np.int64)
    span = int(keys.max(initial=-1)) + 1
    extremes: Longs = np.union1d(latest_of(keys, answers.invoke, span), soonest_of(keys, answers.ret, span))
    return Rows.joined([rows.where(~is_answer), answers.where(extremes)])


def judge_buckets(
    carried: tuple[int, list[tuple[int, Rows]]], is_log: bool, extent: Extent, boundaries: dict[int, Boundary]
) -> Iterator[Judged]:
    parts: dict[int, list[Rows]] = {}
    for bucket, rows in carried[1]:
        parts.setdefault(bucket, []).append(rows)
    for bucket in sorted(parts):
        whole = Rows.joined(parts.pop(bucket))
        findings, gaps, firsts = judge_bucket(whole, is_log, bucket, boundaries[bucket], extent)
        yield Judged(findings.rows(), gaps, firsts, ranges_of(whole.value[whole.code == PUT]))


def judge_bucket(rows: Rows, is_log: bool, bucket: int, boundary: Boundary, extent: Extent) -> Judgement:
    """What is wrong at the bucket's positions, given what the boundary says of the others."""
    judge = log.judge if is_log else queue.judge
    return judge(rows, bucket, boundary, extent)
