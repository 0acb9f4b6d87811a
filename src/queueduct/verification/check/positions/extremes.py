"""Prefix maxima and suffix minima over positions, with the values of other buckets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from queueduct.verification.check.operations import NEVER, START, Longs

__all__ = ["PrefixMax", "SuffixMin", "first_of", "latest_of", "soonest_of"]


class PrefixMax:
    """The latest time up to each position."""

    def __init__(self, times: Longs, boundary: int) -> None:
        through = np.empty(len(times) + 1, np.int64)
        through[0] = boundary
        through[1:] = times
        np.maximum.accumulate(through, out=through)
        self.through = through[1:]
        """At each position, over all up to it."""
        self.before = through[:-1]
        """At each position, over all before it."""


class SuffixMin:
    """The soonest time from each position on."""

    def __init__(self, times: Longs, boundary: int) -> None:
        onwards = np.empty(len(times) + 1, np.int64)
        onwards[-1] = boundary
        onwards[:-1] = times
        onwards[::-1] = np.minimum.accumulate(onwards[::-1])
        self.onwards = onwards[:-1]
        """At each position, over all from it on."""
        self.after = onwards[1:]
        """At each position, over all after it."""


def first_of(keys: Longs, span: int) -> tuple[Longs, Longs]:
    """Returns at each position its first row, or -1; and the rows that are not the first of their position."""
    at = np.full(span, -1, np.int64)
    rows = np.arange(len(keys))
    at[keys[::-1]] = rows[::-1]
    return at, np.flatnonzero(at[keys] != rows)


def latest_of(keys: Longs, times: Longs, span: int) -> Longs:
    """Returns at each position the row with the greatest time, or -1."""
    return last_of_group(keys, np.lexsort((times, keys)), span)


def soonest_of(keys: Longs, times: Longs, span: int) -> Longs:
    """Returns at each position the row with the least time, or -1."""
    return last_of_group(keys, np.lexsort((-times, keys)), span)


def last_of_group(keys: Longs, order: NDArray[Any], span: int) -> Longs:
    at = np.full(span, -1, np.int64)
    ordered = keys[order]
    is_last = np.ones(len(ordered), bool)
    is_last[:-1] = ordered[:-1] != ordered[1:]
    at[ordered[is_last]] = order[is_last]
    return at


def at_or(times: Longs, at: Longs, otherwise: int) -> Longs:
    """Returns the times of the rows at each position."""
    if not len(times):
        return np.full(len(at), otherwise, np.int64)
    return np.where(at >= 0, times[at], otherwise)


def invokes(times: Longs, at: Longs) -> Longs:
    return at_or(times, at, START)


def returns(times: Longs, at: Longs) -> Longs:
    return at_or(times, at, NEVER)
