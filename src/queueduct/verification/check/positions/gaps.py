"""The holes of one bucket: positions of a queue where an operation must have been, and none is known.

Each comes with its deadline, and with the soonest return of what shows that the queue was past it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from queueduct.verification.check.operations import NEVER, START, Longs
from queueduct.verification.check.positions.boundaries import Shape
from queueduct.verification.check.positions.bucket import Scanned
from queueduct.verification.check.positions.extremes import Troughs
from queueduct.verification.check.positions.sides import MOST_HOLES, First, Hole

__all__ = ["firsts_of", "holes_of"]


def holes_of(bucket: Scanned) -> list[Hole]:
    shape, positions = bucket.shape, np.arange(bucket.low, bucket.high)
    found = put_holes(bucket, positions)
    if shape.overwrites:
        return found + overwritten_holes(bucket, positions) + kept_holes(bucket, positions)
    found += get_holes(bucket, ~bucket.gets.is_there & (positions < shape.gets_needed), positions)
    return found if shape.capacity is None else found + crowded_holes(bucket, positions - shape.capacity)


def put_deadlines(bucket: Scanned) -> Longs:
    found = soonest(bucket.put_troughs.onwards, bucket.get_troughs.onwards, bucket.empty_troughs.after)
    if bucket.shape.capacity is None:
        return found
    followers = soonest(bucket.room_troughs.onwards, bucket.shifted_weak_troughs.after)
    through = np.where(bucket.fulls.is_there, followers, NEVER)
    return soonest(found, bucket.shifted_full_troughs.after, Troughs(through, NEVER).after)


def put_holes(bucket: Scanned, positions: Longs) -> list[Hole]:
    shape, deadlines = bucket.shape, put_deadlines(bucket)
    passed = bucket.empty_troughs.after
    if shape.capacity is not None:
        passed = np.where(positions < shape.filled, bucket.shifted_full_troughs.after, passed)
    behind = soonest(bucket.put_troughs.after, bucket.get_troughs.after)
    passed = np.where(positions < max(shape.put_end, shape.get_end), behind, passed)
    is_hole = ~bucket.puts.is_there & (positions < shape.puts_needed)
    found = []
    for place in np.flatnonzero(is_hole)[:MOST_HOLES]:
        witness = bucket.gets.witness_at(int(place))
        found.append(Hole.of("put", positions[place], deadlines[place], passed[place], witness))
    return found


def get_holes(bucket: Scanned, is_hole: NDArray[np.bool_], positions: Longs) -> list[Hole]:
    through = np.where(bucket.empties.is_there, bucket.followers_of_empties(), NEVER)
    answers = soonest(bucket.empty_troughs.after, bucket.full_troughs.after, Troughs(through, NEVER).after)
    deadlines = soonest(bucket.get_troughs.onwards, answers)
    passed = np.where(positions < bucket.shape.full_end, bucket.full_troughs.after, NEVER)
    passed = np.where(positions < bucket.shape.empty_end, bucket.empty_troughs.after, passed)
    passed = np.where(positions < bucket.shape.get_end, bucket.get_troughs.after, passed)
    return [
        Hole.of("get", positions[place], deadlines[place], passed[place], bucket.puts.witness_at(int(place)))
        for place in np.flatnonzero(is_hole)[:MOST_HOLES]
    ]


def crowded_holes(bucket: Scanned, positions: Longs) -> list[Hole]:
    """Seen C positions later, at the put that the get made room for."""
    shape, used_again = bucket.shape, bucket.put_troughs.onwards
    is_hole = ~bucket.room.is_there & (positions >= 0) & (positions < shape.gets_needed)
    passed = np.where(positions >= max(shape.get_end, shape.empty_end, shape.full_end), used_again, NEVER)
    return [
        Hole.of("get", positions[place], used_again[place], passed[place])
        for place in np.flatnonzero(is_hole)[:MOST_HOLES]
    ]


def overwritten_holes(bucket: Scanned, positions: Longs) -> list[Hole]:
    """Items that were passed over, and perhaps not overwritten. Seen at the position of the put that would have."""
    shape = bucket.shape
    assert shape.capacity is not None
    lost = positions - shape.capacity
    is_hole = ~bucket.room.is_there & (lost >= 0) & (lost < shape.gets_needed) & (positions < shape.puts_needed)
    filled = np.maximum(bucket.put_peaks.through, bucket.empty_peaks.through)
    by = soonest(bucket.room_troughs.after, bucket.shifted_weak_troughs.after)
    cannot_be = (filled > by) | (bucket.last_empty.through > lost)
    is_hole &= cannot_be | is_killed_between(by, put_deadlines(bucket), shape)
    by = np.where(cannot_be, START, by)
    empty = soonest(bucket.shifted_empty_troughs.after, bucket.shifted_weak_troughs.after)
    deadlines = soonest(bucket.put_troughs.onwards, bucket.room_troughs.onwards, empty)
    deadlines = soonest(deadlines, bucket.shifted_full_troughs.after)
    passed = np.where(lost < shape.get_end, bucket.room_troughs.after, empty)
    return [
        Hole.of("get", lost[place], deadlines[place], passed[place])._replace(overwritten_by=int(by[place]))
        for place in np.flatnonzero(is_hole)[:MOST_HOLES]
    ]


def is_killed_between(after: Longs, until: Longs, shape: Shape) -> NDArray[np.bool_]:
    """Was a put that was killed invoked in that time? Then it may have come too late to overwrite the item there.

    A put at an earlier position may be meant, but its deadline is not later than the one here.
    """
    killed = np.append(np.array(shape.killed_puts, np.int64), NEVER)
    following = killed[np.searchsorted(killed[:-1], after, side="right")]
    found: NDArray[np.bool_] = (following != NEVER) & (following <= until)
    return found


def kept_holes(bucket: Scanned, positions: Longs) -> list[Hole]:
    """Seen at their own position: what an empty answer says that nothing overwrote, and the last C positions.

    Only a killed put can have overwritten one of those.
    """
    shape = bucket.shape
    assert shape.capacity is not None
    is_recent = positions + shape.capacity >= shape.puts_needed
    next_empty = Troughs(np.where(bucket.empties.is_there, positions, NEVER), NEVER).after
    is_hole = ~bucket.gets.is_there & (positions < shape.gets_needed)
    is_hole &= is_recent | (next_empty - shape.capacity <= positions)
    can_be = is_recent & (positions >= shape.last_empty)
    by = np.where(can_be, soonest(bucket.get_troughs.after, bucket.empty_troughs.after), START)
    found = get_holes(bucket, is_hole, positions)
    return [hole._replace(overwritten_by=int(by[hole.position - bucket.low])) for hole in found]


def firsts_of(bucket: Scanned) -> list[First]:
    found = []
    if bucket.empties.is_there.any():
        place = int(np.argmax(bucket.empties.is_there))
        found.append(First("empty", bucket.low + place, int(bucket.followers_of_empties()[place])))
    if bucket.shape.capacity is not None and bucket.fulls.is_there.any():
        place = int(np.argmax(bucket.fulls.is_there))
        deadline = min(bucket.room_troughs.onwards[place], bucket.shifted_weak_troughs.after[place])
        found.append(First("full", bucket.low + place, int(deadline)))
    return found


def soonest(first: Longs, *more: Longs) -> Longs:
    """At each position."""
    for times in more:
        first = np.minimum(first, times)
    return first
