"""Was every value put once? Each bucket tells in which ranges its values are; only where two meet, they are compared.

A producer that numbers its items one after the other puts those of a bucket into one range that no other bucket has.
Values in no such order, as of a hash, meet everywhere, and are all compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from queueduct.verification.check.operations import KILLED_PUT, PUT, Longs
from queueduct.verification.check.part import Part
from queueduct.verification.check.table import Table

__all__ = ["Range", "hash_of", "meetings", "ranges_of", "repeated", "value_put_twice"]

MOST_RANGES = 256
MOST_MEETINGS = 100
VALUES_A_TASK = 1 << 22

Range = tuple[int, int]
"""The first and the last value in it."""


def value_put_twice(table: Table, ranges: Sequence[Range], killed: Sequence[int], operations: int) -> int | None:
    """The least that is. ``ranges`` have the values of the puts, and ``killed`` are those of puts that were killed."""
    found = meetings([*ranges, *((value, value) for value in killed)])
    if not found:
        return None
    tasks = -(-operations // VALUES_A_TASK)
    within = np.array(found if len(found) <= MOST_MEETINGS else [(found[0][0], max(last for _, last in found))])
    spread = table.carried(partial(values_in, within=within, tasks=tasks), tasks)
    return min(spread.each(repeated_in), default=None)


def values_in(part: Part, within: Longs, tasks: int) -> Iterator[tuple[int, Longs]]:
    """Each to the task of its hash, and no value more than twice."""
    values = part.rows.value[np.isin(part.rows.code, (PUT, KILLED_PUT))]
    is_within = np.zeros(len(values), bool)
    for first, last in within.tolist():
        is_within |= (first <= values) & (values <= last)
    values = np.sort(values[is_within])
    values = values[np.append(np.ones(min(2, len(values)), bool), values[2:] != values[:-2])]
    hashed = hash_of(values, tasks)
    for task in np.unique(hashed).tolist():
        yield task, values[hashed == task]


def hash_of(values: Longs, tasks: int) -> Longs:
    """The task of each value, whatever pattern they have."""
    spread = values.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return ((spread >> np.uint64(32)) % np.uint64(tasks)).astype(np.int64)


def repeated_in(carried: tuple[int, list[Longs]]) -> list[int]:
    found = repeated(np.concatenate(carried[1])) if carried[1] else None
    return [] if found is None else [found]


def repeated(values: Longs) -> int | None:
    """One that is there twice, the least of them."""
    ordered = np.sort(values)
    twins = np.flatnonzero(ordered[1:] == ordered[:-1])
    return int(ordered[twins[0]]) if len(twins) else None


def ranges_of(values: Longs) -> list[Range]:
    """Few ranges that have all of them, between the widest gaps; one for itself if a value is there twice."""
    if not len(values):
        return []
    ordered = np.sort(values)
    gaps = ordered[1:].view(np.uint64) - ordered[:-1].view(np.uint64)  # of the least and the greatest number too
    cuts = np.flatnonzero(gaps > 1)
    if len(cuts) >= MOST_RANGES:
        cuts = np.sort(cuts[np.argpartition(gaps[cuts], -MOST_RANGES + 1)[-MOST_RANGES + 1 :]])
    firsts, lasts = ordered[np.append(0, cuts + 1)], ordered[np.append(cuts, len(ordered) - 1)]
    found = list(zip(firsts.tolist(), lasts.tolist(), strict=True))
    twin = repeated(ordered)
    return found if twin is None else [*found, (twin, twin)]


def meetings(ranges: Sequence[Range]) -> list[Range]:
    """A value that is in two ranges is in one of these."""
    found: list[Range] = []
    peak: int | None = None
    for first, last in sorted(ranges):
        if peak is not None and first <= peak:
            found.append((first, min(last, peak)))
        peak = last if peak is None else max(peak, last)
    return found
