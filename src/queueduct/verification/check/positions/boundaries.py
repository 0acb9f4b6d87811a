"""Boundaries: what each bucket of positions needs from all the others. The driver scans one small row a bucket.

A put, a get and an empty answer belong to the bucket of their ticket. Where the queue is bounded by C, a get and a full
answer matter a second time, C positions later: the get at k makes room for the put at k + C. There they are *shifted*,
and with them the empty answers that follow the get.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from queueduct.verification.check.operations import NEVER, START, Code, Longs, Rows

__all__ = ["Boundary", "Extent", "Summary", "boundaries_of", "bounds", "extent_of", "own"]


SHIFTED = (Code.GET, Code.FULL, Code.WEAK_FULL, Code.EMPTY, Code.WEAK_EMPTY)


class Summary(NamedTuple):
    """The rows of one code and reader in one bucket, or in one pair of own and shifted bucket."""

    bucket: int
    shifted: int
    code: int
    reader: int
    rows: int
    first: int
    last: int
    invoke: int
    """The latest invocation."""
    ret: int
    """The soonest return."""


@dataclass(frozen=True)
class Extent:
    """The extent of the whole history."""

    capacity: int | None
    """None if there is no limit."""
    width: int
    """The number of positions in a bucket."""
    overwrites: bool
    put_end: int = 0
    """One more than the last ticket of a put that returned."""
    last_put: int = START
    """The latest invocation of such a put."""
    get_end: int = 0
    empty_end: int = 0
    """The greatest ticket of an empty answer."""
    last_empty: int = 0
    """The same without weak answers."""
    full_end: int = 0
    """The greatest ticket of a full answer."""
    killed_puts: tuple[int, ...] = ()
    """In an overwriting queue: the invocations of killed puts, in order."""
    readers: tuple[int, ...] = ()
    reader_starts: dict[int, int] = field(default_factory=dict)
    reader_ends: dict[int, int] = field(default_factory=dict)

    @property
    def puts_needed(self) -> int:
        """Below this there must be a put at every position."""
        return max(self.put_end, self.get_end, self.empty_end, self.filled)

    @property
    def filled(self) -> int:
        """Below this there must be a put at every position, because of a full answer."""
        return self.full_end + self.capacity if self.capacity is not None and self.full_end >= 0 else 0

    @property
    def gets_needed(self) -> int:
        """Below this there must be a get at every position, unless it was overwritten."""
        if self.overwrites:
            return max(self.get_end, self.empty_end)
        crowded_out = self.put_end - self.capacity if self.capacity is not None else 0
        return max(self.get_end, self.empty_end, self.full_end, crowded_out)

    @property
    def buckets(self) -> range:
        """Position ``puts_needed`` belongs to them: an empty answer may stand there."""
        return range(self.puts_needed // self.width + 1)


Key = tuple[int, bool, int]
"""A code, whether it is shifted, and a reader, or -1 for all of them."""


@dataclass
class Boundary:
    """What a bucket needs from all others."""

    before: dict[Key, int]
    """The latest invocation before the bucket."""
    after: dict[Key, int] = field(default_factory=dict)
    """The soonest return after the bucket."""
    last_empty: int = -1
    """The last position before the bucket that has an empty answer."""

    def latest(self, code: int, *, shifted: bool = False, reader: int = -1) -> int:
        return self.before.get((code, shifted, reader), START)

    def soonest(self, *codes: int, shifted: bool = False, reader: int = -1) -> int:
        return min(self.after.get((code, shifted, reader), NEVER) for code in codes)


def extent_of(
    summaries: Sequence[Summary],
    capacity: int | None,
    width: int,
    overwrites: bool,
    killed_reads: Iterable[tuple[int, int]] = (),
    killed_puts: Iterable[int] = (),
) -> Extent:
    """``killed_reads`` has the reader and the ticket of each killed get; they tell where a reader was.

    ``killed_puts`` has the invocations of killed puts, in order.
    """

    def last(*codes: int) -> int:
        return max((each.last for each in summaries if each.code in codes), default=-1)

    reads = [each for each in summaries if each.reader >= 0]
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    for each in reads:
        end = each.last + 1 if each.code == Code.GET else each.last
        starts[each.reader] = min(starts.get(each.reader, each.first), each.first)
        ends[each.reader] = max(ends.get(each.reader, end), end)
    for reader, ticket in killed_reads:
        starts[reader] = min(starts.get(reader, ticket), ticket)
        ends.setdefault(reader, ticket)
    return Extent(
        capacity=capacity,
        width=width,
        overwrites=overwrites,
        put_end=last(Code.PUT) + 1,
        last_put=max((each.invoke for each in summaries if each.code == Code.PUT), default=START),
        get_end=last(Code.GET) + 1,
        empty_end=max(0, last(Code.EMPTY, Code.WEAK_EMPTY)),
        last_empty=last(Code.EMPTY),
        full_end=last(Code.FULL, Code.WEAK_FULL) if capacity is not None else -1,
        killed_puts=tuple(killed_puts) if overwrites else (),
        readers=tuple(sorted(starts)),
        reader_starts=starts,
        reader_ends=ends,
    )


def boundaries_of(summaries: Sequence[Summary], buckets: Sequence[int]) -> dict[int, Boundary]:
    """Computes one sweep up for the buckets before, and one down for those after."""
    there: dict[int, list[tuple[Summary, set[Key]]]] = {bucket: [] for bucket in buckets}
    for each in summaries:
        for bucket, shifted in ((each.bucket, False), (each.shifted, True)):
            keys = {(each.code, shifted, reader) for reader in (-1, each.reader)}
            there.setdefault(bucket, []).append((each, keys))
    found: dict[int, Boundary] = {}
    latest: dict[Key, int] = {}
    last_empty = -1
    for bucket in sorted(there):
        found[bucket] = Boundary(dict(latest), last_empty=last_empty)
        for each, keys in there[bucket]:
            latest |= {key: max(latest.get(key, START), each.invoke) for key in keys}
            if each.code == Code.EMPTY and each.bucket == bucket:
                last_empty = max(last_empty, each.last)
    soonest: dict[Key, int] = {}
    for bucket in sorted(there, reverse=True):
        found[bucket].after = dict(soonest)
        for each, keys in there[bucket]:
            soonest |= {key: min(soonest.get(key, NEVER), each.ret) for key in keys}
    return {bucket: found[bucket] for bucket in buckets}


def bounds(bucket: int, extent: Extent) -> tuple[int, int]:
    """Returns the bucket's positions: from the first, up to and without the second."""
    low = bucket * extent.width
    end = extent.puts_needed + 1 + (extent.capacity or 0)  # where the last get is shifted to
    return low, max(low, min(low + extent.width, end))


def own(rows: Rows, code: int, low: int, high: int) -> tuple[Rows, Longs]:
    """Returns the rows of one code at those positions, and the positions as indices of a dense array."""
    found = rows.where((rows.code == code) & (rows.ticket >= low) & (rows.ticket < high))
    return found, found.ticket - low
