"""Was every value put once? Each bucket tells in which ranges its values are; only where two meet, they are compared.

Whoever numbers its items one after the other, as most do, puts those of a bucket into one range that no other bucket
has. Values in no such order, as of a hash, meet everywhere, and are all compared.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from queueduct.verification.check.operations import Longs

__all__ = ["Range", "meetings", "ranges_of", "repeated"]

MOST_RANGES = 256

Range = tuple[int, int]
"""The first and the last value in it."""


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
