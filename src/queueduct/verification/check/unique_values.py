"""Was every value put once? Each goes to the task of its hash, where few are, and those are sorted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from queueduct.verification.check.operations import Longs

__all__ = ["hash_of", "repeated", "values_by_hash"]


def hash_of(values: Longs, hashes: int) -> Longs:
    """From 0 on, whatever pattern the values have."""
    spread = values.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return ((spread >> np.uint64(32)) % np.uint64(hashes)).astype(np.int64)


def values_by_hash(values: Longs, hashes: int) -> Iterator[tuple[int, Longs]]:
    """No value more than twice, however often it is there."""
    ordered = np.sort(values)
    ordered = ordered[np.append(np.ones(min(2, len(values)), bool), ordered[2:] != ordered[:-2])]
    hashed = hash_of(ordered, hashes)
    for each in np.unique(hashed).tolist():
        yield each, ordered[hashed == each]


def repeated(values: Longs) -> list[int]:
    """The least that is there twice, if one is."""
    ordered = np.sort(values)
    found: list[int] = ordered[1:][ordered[1:] == ordered[:-1]][:1].tolist()
    return found
