"""The gaps of one bucket: positions of a queue where an operation must have been, and none is known.

Each has its deadline, and the soonest return of an operation that shows that the queue was past it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from queueduct.verification.check.operations import NEVER, START, Longs
from queueduct.verification.check.positions.boundaries import Extent
from queueduct.verification.check.positions.bucket import MOST_GAPS, First, Gap, QueueBucket
from queueduct.verification.check.positions.extremes import SuffixMin

__all__ = ["firsts_of", "gaps_of"]


def gaps_of(bucket: QueueBucket) -> list[Gap]:
    extent, positions = bucket.extent, np.arange(bucket.low, bucket.high)
    found = put_gaps(bucket, positions)
    if extent.overwrites:
        return found + overwritten_gaps(bucket, positions) + kept_gaps(bucket, positions)
    found += get_gaps(bucket, ~bucket.gets.is_there & (positions < extent.gets_needed), positions)
    return found if extent.capacity is None else found + crowded_gaps(bucket, positions - extent.capacity)


def put_deadlines(bucket: QueueBucket) -> Longs:
    found = soonest(bucket.put_returns.onwards, bucket.get_returns.onwards, bucket.empty_returns.after)
    if bucket.extent.capacity is None:
        return found
    followers = soonest(bucket.room_returns.onwards, bucket.shifted_weak_returns.after)
    through = np.where(bucket.fulls.is_there, followers, NEVER)
    return soonest(found, bucket.shifted_full_returns.after, SuffixMin(through, NEVER).after)


def put_gaps(bucket: QueueBucket, positions: Longs) -> list[Gap]:
    extent, deadlines = bucket.extent, put_deadlines(bucket)
    passed = bucket.empty_returns.after
    if extent.capacity is not None:
        passed = np.where(positions < extent.filled, bucket.shifted_full_returns.after, passed)
    behind = soonest(bucket.put_returns.after, bucket.get_returns.after)
    passed = np.where(positions < max(extent.put_end, extent.get_end), behind, passed)
    is_gap = ~bucket.puts.is_there & (positions < extent.puts_needed)
    found = []
    for index in np.flatnonzero(is_gap)[:MOST_GAPS]:
        witness = bucket.gets.witness_at(int(index))
        found.append(Gap.of("put", positions[index], deadlines[index], passed[index], witness))
    return found


def get_gaps(bucket: QueueBucket, is_gap: NDArray[np.bool_], positions: Longs) -> list[Gap]:
    through = np.where(bucket.empties.is_there, bucket.followers_of_empties(), NEVER)
    answers = soonest(bucket.empty_returns.after, bucket.full_returns.after, SuffixMin(through, NEVER).after)
    deadlines = soonest(bucket.get_returns.onwards, answers)
    passed = np.where(positions < bucket.extent.full_end, bucket.full_returns.after, NEVER)
    passed = np.where(positions < bucket.extent.empty_end, bucket.empty_returns.after, passed)
    passed = np.where(positions < bucket.extent.get_end, bucket.get_returns.after, passed)
    return [
        Gap.of("get", positions[index], deadlines[index], passed[index], bucket.puts.witness_at(int(index)))
        for index in np.flatnonzero(is_gap)[:MOST_GAPS]
    ]


def crowded_gaps(bucket: QueueBucket, positions: Longs) -> list[Gap]:
    """Returns gaps of gets, seen C positions later, at the put that the get made room for."""
    extent, used_again = bucket.extent, bucket.put_returns.onwards
    is_gap = ~bucket.room.is_there & (positions >= 0) & (positions < extent.gets_needed)
    passed = np.where(positions >= max(extent.get_end, extent.empty_end, extent.full_end), used_again, NEVER)
    return [
        Gap.of("get", positions[index], used_again[index], passed[index])
        for index in np.flatnonzero(is_gap)[:MOST_GAPS]
    ]


def overwritten_gaps(bucket: QueueBucket, positions: Longs) -> list[Gap]:
    """Returns items that no get took, and perhaps no put overwrote. Seen at the position of the overwriting put."""
    extent = bucket.extent
    assert extent.capacity is not None
    lost = positions - extent.capacity
    is_gap = ~bucket.room.is_there & (lost >= 0) & (lost < extent.gets_needed) & (positions < extent.puts_needed)
    filled = np.maximum(bucket.put_invokes.through, bucket.empty_invokes.through)
    by = soonest(bucket.room_returns.after, bucket.shifted_weak_returns.after)
    cannot_be = (filled > by) | (bucket.last_empty.through > lost)
    is_gap &= cannot_be | is_killed_between(by, put_deadlines(bucket), extent)
    by = np.where(cannot_be, START, by)
    empty = soonest(bucket.shifted_empty_returns.after, bucket.shifted_weak_returns.after)
    deadlines = soonest(bucket.put_returns.onwards, bucket.room_returns.onwards, empty)
    deadlines = soonest(deadlines, bucket.shifted_full_returns.after)
    passed = np.where(lost < extent.get_end, bucket.room_returns.after, empty)
    return [
        Gap.of("get", lost[index], deadlines[index], passed[index])._replace(overwritten_by=int(by[index]))
        for index in np.flatnonzero(is_gap)[:MOST_GAPS]
    ]


def is_killed_between(after: Longs, until: Longs, extent: Extent) -> NDArray[np.bool_]:
    """Returns true if a killed put was invoked in that time: then it may have come too late to overwrite the item.

    It may belong to an earlier position, but the deadline there is not later than the one here.
    """
    killed = np.append(np.array(extent.killed_puts, np.int64), NEVER)
    following = killed[np.searchsorted(killed[:-1], after, side="right")]
    found: NDArray[np.bool_] = (following != NEVER) & (following <= until)
    return found


def kept_gaps(bucket: QueueBucket, positions: Longs) -> list[Gap]:
    """Returns gaps seen at their own position: items before an empty answer, and the last C positions.

    Only a killed put can have overwritten one of those.
    """
    extent = bucket.extent
    assert extent.capacity is not None
    is_recent = positions + extent.capacity >= extent.puts_needed
    next_empty = SuffixMin(np.where(bucket.empties.is_there, positions, NEVER), NEVER).after
    is_gap = ~bucket.gets.is_there & (positions < extent.gets_needed)
    is_gap &= is_recent | (next_empty - extent.capacity <= positions)
    can_be = is_recent & (positions >= extent.last_empty)
    by = np.where(can_be, soonest(bucket.get_returns.after, bucket.empty_returns.after), START)
    found = get_gaps(bucket, is_gap, positions)
    return [gap._replace(overwritten_by=int(by[gap.position - bucket.low])) for gap in found]


def firsts_of(bucket: QueueBucket) -> list[First]:
    found = []
    if bucket.empties.is_there.any():
        index = int(np.argmax(bucket.empties.is_there))
        found.append(First("empty", bucket.low + index, int(bucket.followers_of_empties()[index])))
    if bucket.extent.capacity is not None and bucket.fulls.is_there.any():
        index = int(np.argmax(bucket.fulls.is_there))
        deadline = min(bucket.room_returns.onwards[index], bucket.shifted_weak_returns.after[index])
        found.append(First("full", bucket.low + index, int(deadline)))
    return found


def soonest(first: Longs, *more: Longs) -> Longs:
    """Returns the deadline at each position."""
    for times in more:
        first = np.minimum(first, times)
    return first
