"""The ticket check: conditions on the operations at each position, one bucket of positions at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from queueduct.verification.check.operations import START, Code, Longs, Rows, grouped, numbered
from queueduct.verification.check.part import Part
from queueduct.verification.check.positions import log, queue
from queueduct.verification.check.positions.boundaries import SHIFTED, Boundary, Extent, Summary
from queueduct.verification.check.positions.bucket import Judgement
from queueduct.verification.check.positions.extremes import latest_of, soonest_of
from queueduct.verification.check.table import Table, packed
from queueduct.verification.check.unique_values import repeated, values_by_hash

__all__ = ["judge_bucket", "judge_positions"]

VALUES_A_TASK = 1 << 22


def judge_positions(
    table: Table, is_log: bool, extent: Extent, boundaries: dict[int, Boundary], summaries: Sequence[Summary]
) -> Judgement:
    """Judges every bucket that has a boundary. Finds values that were put twice in the same pass."""
    sizes = dict.fromkeys(boundaries, 0)
    for each in summaries:
        for bucket in {each.bucket, each.shifted} & sizes.keys():
            sizes[bucket] += each.rows
    tasks = packed(sizes, 2 * extent.width)
    first = max(tasks.values(), default=-1) + 1
    hashes = max(1, sum(each.rows for each in summaries) // VALUES_A_TASK)
    split = partial(to_tasks, extent=extent, tasks=tasks, hashes=hashes, is_crowded=is_crowded(summaries, extent.width))
    carried = table.carried(split, first + hashes)
    judged = carried.each(partial(judge_task, is_log=is_log, extent=extent, boundaries=boundaries))
    return Judgement(
        [finding for each in judged for finding in each.findings],
        [gap for each in judged for gap in each.gaps],
        [answer for each in judged for answer in each.firsts],
        tuple(value for each in judged for value in each.put_twice),
    )


def is_crowded(summaries: Sequence[Summary], width: int) -> bool:
    """Returns true if a bucket has more answers than positions, as when a participant polls all the time."""
    answers: dict[int, int] = {}
    for each in summaries:
        if each.code not in (Code.PUT, Code.GET):
            answers[each.bucket] = answers.get(each.bucket, 0) + each.rows
    return any(rows > width for rows in answers.values())


def to_tasks(
    part: Part, extent: Extent, tasks: dict[int, int], hashes: int, is_crowded: bool
) -> Iterator[tuple[int, tuple[int, Rows] | Longs]]:
    """Carries to each bucket its own rows and those that are shifted into it, and values to the task of their hash."""
    rows = part.rows
    for hashed, values in values_by_hash(rows.value[np.isin(rows.code, Code.PUTS)], hashes):
        yield max(tasks.values(), default=-1) + 1 + hashed, values
    chosen = (rows.code <= Code.WEAK_FULL) & (rows.ticket != START)
    if extent.capacity is None:
        chosen &= ~np.isin(rows.code, Code.FULLS)
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
    """Keeps of all answers at a position the last invoked and the first returned: only these can be wrong."""
    is_answer = ~np.isin(rows.code, (Code.PUT, Code.GET))
    answers = rows.where(is_answer)
    if not len(answers):
        return rows
    order, begins = grouped(numbered(answers.code, answers.ticket, answers.reader))
    keys = np.empty(len(order), np.int64)
    keys[order] = np.repeat(np.arange(len(begins)), np.diff(np.append(begins, len(order))))
    span = len(begins)
    extremes: Longs = np.union1d(latest_of(keys, answers.invoke, span), soonest_of(keys, answers.ret, span))
    return Rows.joined([rows.where(~is_answer), answers.where(extremes)])


def judge_task(
    carried: tuple[int, list[Any]], is_log: bool, extent: Extent, boundaries: dict[int, Boundary]
) -> Iterator[Judgement]:
    """Judges the rows of one task: values of one hash, or the rows of some buckets."""
    _, parts = carried
    if parts and isinstance(parts[0], np.ndarray):
        yield Judgement([], [], [], tuple(repeated(np.concatenate(parts))))
        return
    by_bucket: dict[int, list[Rows]] = {}
    for bucket, rows in parts:
        by_bucket.setdefault(bucket, []).append(rows)
    for bucket in sorted(by_bucket):
        yield judge_bucket(Rows.joined(by_bucket.pop(bucket)), is_log, bucket, boundaries[bucket], extent)


def judge_bucket(rows: Rows, is_log: bool, bucket: int, boundary: Boundary, extent: Extent) -> Judgement:
    """Returns the findings at the bucket's positions, given the boundary of the others."""
    judge = log.judge if is_log else queue.judge
    return judge(rows, bucket, boundary, extent)
