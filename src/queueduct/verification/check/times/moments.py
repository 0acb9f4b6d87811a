"""The moments that the order check is about, and their buckets.

Buckets of time are made of small bins of equal length, as many together as hold about so many rows: a burst makes short
buckets. Where they begin is counted, not sampled, so that every pass sees the same ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from queueduct.verification.check.operations import NEVER, START, Code, Longs, grouped
from queueduct.verification.check.times.order import At, Moments, TimeBoundary
from queueduct.verification.check.times.pairs import Paired, Pairs

__all__ = ["Bin", "Bins", "Timeline", "bins_of", "boundaries_of", "moments_of", "to_buckets", "unseen_of"]


@dataclass(frozen=True)
class Timeline:
    """What decides which pairs the order check uses."""

    kind: str
    capacity: int | None
    with_full: bool
    """True if a full answer must be judged by the number of items."""
    starts: dict[int, int] = field(default_factory=dict)
    """In a log: by when each reader had certainly subscribed."""
    unseen: dict[int, tuple[Longs, Longs]] = field(default_factory=dict)
    """For each reader the items that killed gets may have taken: values, in order, and the gets' invocations."""

    def in_order(self, piece: Paired) -> Pairs:
        """The pairs that the order is about.

        Redelivered items leave it. A killed put whose item was never got may never have happened. What an overwriting
        queue did not deliver was overwritten. A reader need not see what was put before it subscribed.
        A killed get may have taken an item that is in no other get: the first such get the item that was put first.
        """
        pairs = piece.pairs
        kept = pairs.where((pairs.puts == 1) & (pairs.again == 0) & ~(pairs.is_left & (pairs.killed_puts > 0)))
        if self.kind == "overwriting":
            return kept.where(~kept.is_left)
        if self.kind == "events":
            kept = kept.where(~kept.is_left | (kept.put_invoke > self.starts[piece.reader]))
        if piece.reader in self.unseen:
            values, invokes = self.unseen[piece.reader]
            indices = np.minimum(np.searchsorted(values, kept.value), len(values) - 1)
            is_unseen = values[indices] == kept.value
            kept.get_invoke[is_unseen] = invokes[indices[is_unseen]]
        return kept


def unseen_of(piece: Paired, timeline: Timeline, most: dict[int, int]) -> Iterator[tuple[int, Longs, Longs]]:
    """Returns for each reader the first items without a get: when their puts returned, and their values."""
    kept = timeline.in_order(piece)
    left = kept.where(kept.is_left)
    order = np.lexsort((left.value, left.put_return))[: most.get(piece.reader, 0)]
    yield piece.reader, left.put_return[order], left.value[order]


def moments_of(piece: Paired, timeline: Timeline) -> Iterator[tuple[int, Moments]]:
    """Returns the moments of each pair and each answer."""
    kept = timeline.in_order(piece)
    queued = kept.where(kept.put_return < NEVER)
    empties = piece.answers.where(piece.answers.code == Code.EMPTY)
    parts = [
        Moments.of(At.PUT, kept.put_invoke, kept.get_return, kept.value),
        Moments.of(At.QUEUED, queued.put_return, queued.get_invoke, queued.value),
        Moments.of(At.EMPTY, empties.ret, empties.invoke, empties.value),
    ]
    if timeline.capacity is not None:
        taken = queued.where((queued.put_return < queued.get_invoke) & (queued.get_invoke < NEVER))
        parts.append(Moments.of(At.TAKEN, taken.get_invoke, taken.get_invoke, taken.value))
    if timeline.with_full:
        held = piece.pairs.where(piece.pairs.puts > 0)
        # A redelivered item has no known removal time, so it counts as present until the end.
        gone = held.where((held.get_return < NEVER) & (held.again == 0))
        fulls = piece.answers.where(piece.answers.code == Code.FULL)
        parts += [
            Moments.of(At.HELD, held.put_invoke, held.put_invoke, held.value),
            Moments.of(At.GONE, gone.get_return, gone.get_return, gone.value),
            Moments.of(At.FULL, fulls.ret, fulls.invoke, fulls.value),
        ]
    yield piece.reader, Moments.joined(parts)


class Bins(NamedTuple):
    """Bins of equal length, from the first invocation on."""

    first: int
    length: int

    def of(self, time: Longs) -> Longs:
        return (time - self.first) // self.length


class Bin(NamedTuple):
    """The moments of one sort in one bin of time, of one reader."""

    reader: int
    bin: int
    sort: int
    rows: int
    soonest: tuple[int, int]
    """The least ``other``, and its value."""
    latest: tuple[int, int]
    """The greatest ``other`` of an interval that is not empty, and its value."""
    intervals: int
    """Of those at AT_QUEUED, how many are got later."""


def bins_of(piece: tuple[int, Moments], bins: Bins) -> Iterator[Bin]:
    reader, moments = piece
    if not len(moments):
        return
    keys = bins.of(moments.time) * At.SORTS + moments.sort
    order, begins = grouped(keys)
    keys, moments = keys[order], moments.where(order)
    rows = np.diff(np.append(begins, len(keys)))
    is_later = moments.time < moments.other
    soonest = np.minimum.reduceat(moments.other, begins)
    latest = np.maximum.reduceat(np.where(is_later, moments.other, START), begins)
    is_soonest = moments.other == np.repeat(soonest, rows)
    is_latest = is_later & (moments.other == np.repeat(latest, rows))
    columns = (
        keys[begins],
        rows,
        soonest,
        np.minimum.reduceat(np.where(is_soonest, moments.value, NEVER), begins),
        latest,
        np.maximum.reduceat(np.where(is_latest, moments.value, START), begins),
        np.add.reduceat(is_later.astype(np.int64), begins),
    )
    for key, number, *extremes, intervals in zip(*(column.tolist() for column in columns), strict=True):
        bin_, sort = divmod(key, At.SORTS)
        yield Bin(reader, bin_, sort, number, (extremes[0], extremes[1]), (extremes[2], extremes[3]), intervals)


def boundaries_of(
    bins: Sequence[Bin], buckets: dict[int, int], last_empty: dict[int, int]
) -> dict[tuple[int, int], TimeBoundary]:
    """Returns the boundary of each reader and bucket."""
    found: dict[tuple[int, int], TimeBoundary] = {}
    number = max(buckets.values(), default=0) + 1
    for reader in last_empty:
        got, taken = [(NEVER, 0)] * (number + 1), [(START, 0)] * (number + 1)
        inside, held = [0] * (number + 1), [0] * (number + 1)
        for each in bins:
            if each.reader != reader:
                continue
            bucket = buckets[each.bin]
            if each.sort == At.PUT:
                got[bucket] = min(got[bucket], each.soonest)
            elif each.sort == At.QUEUED:
                taken[bucket + 1] = max(taken[bucket + 1], each.latest)
                inside[bucket + 1] += each.intervals
            elif each.sort == At.TAKEN:
                inside[bucket + 1] -= each.rows
            elif each.sort in (At.HELD, At.GONE):
                held[bucket + 1] += each.rows if each.sort == At.HELD else -each.rows
        got = list(accumulate(reversed(got), min))[::-1]
        taken, inside, held = list(accumulate(taken, max)), list(accumulate(inside)), list(accumulate(held))
        for bucket in range(number):
            found[reader, bucket] = TimeBoundary(
                *got[bucket + 1],
                *taken[bucket],
                inside=inside[bucket],
                last_empty=last_empty[reader],
                reader=reader,
                held=held[bucket],
            )
    return found


def to_buckets(
    piece: tuple[int, Moments], bins: Bins, buckets: dict[int, int]
) -> Iterator[tuple[int, tuple[int, Moments]]]:
    reader, moments = piece
    known = np.array(sorted(buckets))
    bucket_of = np.array([buckets[number] for number in known.tolist()])
    keys = bucket_of[np.searchsorted(known, bins.of(moments.time))]
    for bucket, mine in moments.sliced(keys):
        yield bucket, (reader, mine)
