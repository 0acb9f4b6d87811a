"""Whether every value was put once. Values go to the task of their hash, which sorts its few values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from queueduct.verification.check.operations import Longs

__all__ = ["hash_of", "repeated", "values_by_hash"]


def hash_of(values: Longs, hashes: int) -> Longs:
    """Returns hashes from 0 on, which are even for any pattern of values."""
    spread = values.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return ((spread >> np.uint64(32)) % np.uint64(hashes)).astype(np.int64)


def values_by_hash(values: Longs, hashes: int) -> Iterator[tuple[int, Longs]]:
    """Returns the values, each at most twice."""
    ordered = np.sort(values)
    ordered = ordered[np.append(np.ones(min(2, len(values)), bool), ordered[2:] != ordered[:-2])]
    hashed = hash_of(ordered, hashes)
    for each in np.unique(hashed).tolist():
        yield each, ordered[hashed == each]


def repeated(values: Longs) -> list[int]:
    """Returns the least value that is there twice, or None."""
    ordered = np.sort(values)
    found: list[int] = ordered[1:][ordered[1:] == ordered[:-1]][:1].tolist()
    return found
