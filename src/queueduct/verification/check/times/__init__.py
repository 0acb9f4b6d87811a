"""The order check: puts and gets are paired by their values, then judged one bucket of time at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from queueduct.verification.check.counts import Counts
from queueduct.verification.check.operations import NEVER, START, Code, Finding, Longs
from queueduct.verification.check.part import Part
from queueduct.verification.check.table import Pieces, Table, packed
from queueduct.verification.check.times.full_answers import FullJudgement, false_full, judge_full_answers
from queueduct.verification.check.times.moments import (
    Bin,
    Bins,
    Timeline,
    bins_of,
    boundaries_of,
    moments_of,
    to_buckets,
    unseen_of,
)
from queueduct.verification.check.times.order import Moments, OrderJudgement, TimeBoundary, false_empty, judge_order
from queueduct.verification.check.times.pairs import Paired, bad_pairs, by_value, paired
from queueduct.verification.check.witnesses import not_unique
from queueduct.verification.history.format import LIMITED, History

__all__ = ["judge_times"]

BINS_A_BUCKET = 32
MOST_BINS = 1 << 14


def judge_times(
    table: Table, history: History, counts: Counts, width: int, progress: Callable[[str], None]
) -> list[Finding]:
    progress("pairing puts and gets by their values")
    readers = tuple(sorted(counts.last_empty)) if history.kind == "events" else (-1,)
    tasks = 1 if counts.operations <= 2 * width else -(-counts.operations // width)
    with table.carried(partial(by_value, tasks=tasks), tasks).mapped(partial(paired, readers=readers)).kept() as pairs:
        bad = pairs.each(bad_pairs)
        doubled = [each.put_twice for each in bad if each.put_twice is not None]
        if doubled:
            raise not_unique(min(doubled), [])
        timeline = timeline_of(table, pairs, history, counts)
        moments = pairs.mapped(partial(moments_of, timeline=timeline))
        return [finding for each in bad for finding in each.findings.rows()] + judge_moments(
            moments, timeline, counts, readers, width, progress
        )


def timeline_of(table: Table, pairs: Pieces[Paired], history: History, counts: Counts) -> Timeline:
    capacity = history.capacity if history.kind in LIMITED or history.kind == "growing" else None
    with_full = capacity is not None and counts.of_code.get(Code.FULL, 0) > 0
    starts = dict(counts.first_answer)
    if history.kind == "events":
        for reader, time in pairs.each(first_read):
            starts[reader] = min(starts[reader], time)
    timeline = Timeline(history.kind, capacity, with_full, starts)
    if not counts.killed_with_nothing or history.kind == "overwriting":
        return timeline
    killed: dict[int, Longs] = {}
    for reader, invokes in table.each(killed_with_nothing):
        killed[reader] = np.sort(np.append(killed.get(reader, invokes[:0]), invokes))
    most = {reader: len(invokes) for reader, invokes in killed.items()}
    left = pairs.each(partial(unseen_of, timeline=timeline, most=most))
    for reader, invokes in killed.items():
        mine = [np.stack(columns) for each, *columns in left if each == reader]
        returns, values = np.concatenate(mine, axis=1) if mine else np.empty((2, 0), np.int64)
        first = np.lexsort((values, returns))[: len(invokes)]
        order = np.argsort(values[first])
        if len(first):
            timeline.unseen[reader] = (values[first][order], invokes[: len(first)][order])
    return timeline


def first_read(piece: Paired) -> list[tuple[int, int]]:
    """Returns when a put returned whose item the reader has got: it had subscribed by then."""
    return [(piece.reader, int(piece.pairs.put_return[~piece.pairs.is_left].min(initial=NEVER)))]


def killed_with_nothing(part: Part) -> Iterator[tuple[int, Longs]]:
    """Returns for each reader the invocations of killed gets of which nothing else is known."""
    rows = part.rows.where((part.rows.code == Code.KILLED_GET) & ~part.has_value)
    for reader, mine in rows.sliced(rows.reader):
        yield reader, mine.invoke


class Judged(NamedTuple):
    """Judges one bucket of time, of one reader."""

    reader: int
    bucket: int
    order: OrderJudgement
    full: FullJudgement | None


def judge_moments(
    moments: Pieces[tuple[int, Moments]],
    timeline: Timeline,
    counts: Counts,
    readers: Sequence[int],
    width: int,
    progress: Callable[[str], None],
) -> list[Finding]:
    total = 3 * counts.operations
    number = min(MOST_BINS, -(-total // width) * BINS_A_BUCKET) if total > 6 * width else 1
    bins = Bins(counts.first_invoke, max(1, -(-(counts.last_time - counts.first_invoke + 1) // number)))
    found: list[Bin] = []
    if number > 1:
        progress("the extremes of every bucket of time")
        found = moments.each(partial(bins_of, bins=bins))
    sizes = {each.bin: 0 for each in found} or {0: 0}
    for each in found:
        sizes[each.bin] += each.rows
    buckets = packed(sizes, width)
    progress("the conditions of every bucket of time")
    last_empty = {reader: counts.last_empty.get(reader, START) for reader in readers}
    lows: dict[int, int] = {}
    for bin_, bucket in buckets.items():
        lows[bucket] = min(lows.get(bucket, NEVER), bins.first + bin_ * bins.length)
    judge = partial(judge_bucket, boundaries=boundaries_of(found, buckets, last_empty), lows=lows, timeline=timeline)
    return settled(moments.carried(partial(to_buckets, bins=bins, buckets=buckets), len(lows)).each(judge))


def judge_bucket(
    carried: tuple[int, list[tuple[int, Moments]]],
    boundaries: dict[tuple[int, int], TimeBoundary],
    lows: dict[int, int],
    timeline: Timeline,
) -> Iterator[Judged]:
    bucket, parts = carried
    for reader in sorted({reader for reader, _ in parts}):
        moments = Moments.joined([each for whose, each in parts if whose == reader])
        boundary, low = boundaries[reader, bucket], lows[bucket]
        order = judge_order(moments, low, boundary, timeline.capacity)
        full = None
        if timeline.with_full and timeline.capacity is not None:
            full = judge_full_answers(moments, low, boundary.held, timeline.capacity)
        yield Judged(reader, bucket, order, full)


def settled(judged: Sequence[Judged]) -> list[Finding]:
    """Returns all findings. Decides on answers that began in an earlier bucket: did nothing cover a moment since?"""
    found: list[Finding] = []
    for each in judged:
        before = [other for other in judged if other.reader == each.reader and other.bucket < each.bucket]
        found += each.order.findings.rows()
        last_break = max((other.order.last_break for other in before), default=START)
        found += [false_empty(answer, each.reader) for answer in each.order.open_answers if last_break < answer.invoke]
        if each.full is not None:
            found += each.full.findings.rows()
            last_full = max((other.full.last_full for other in before if other.full is not None), default=START)
            found += [false_full(*answer) for answer in each.full.open_answers if last_full < answer[0]]
    return found
