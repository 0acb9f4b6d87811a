"""What each bucket of positions must know of all the others: one small row a bucket, scanned on the driver.

A put, a get and an empty answer belong to the bucket of their ticket. Where the queue is bounded by C, a get and a full
answer matter a second time, C positions later: the get at k makes room for the put at k + C. There they are *shifted*,
and with them the empty answers that follow the get.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from queueduct.verification.check.operations import (
    EMPTY,
    FULL,
    GET,
    NEVER,
    PUT,
    START,
    WEAK_EMPTY,
    WEAK_FULL,
    Longs,
    Rows,
)

__all__ = ["Boundary", "Extent", "Summary", "boundaries_of", "bounds", "extent_of", "own"]


SHIFTED = (GET, FULL, WEAK_FULL, EMPTY, WEAK_EMPTY)


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
    """The latest."""
    ret: int
    """The soonest."""


@dataclass(frozen=True)
class Extent:
    """What holds for the whole history."""

    capacity: int | None
    """None: no limit."""
    width: int
    """Positions in a bucket."""
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
    """Of an overwriting queue: when each was invoked, in order."""
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


@dataclass
class Boundary:
    """For one bucket. The latest invocations of what is before it, and the soonest returns of what is after it."""

    put_invoke: int = START
    empty_invoke: int = START
    get_invoke: int = START
    full_invoke: int = START
    put_return: int = NEVER
    get_return: int = NEVER
    empty_return: int = NEVER
    full_return: int = NEVER
    shifted_get_invoke: int = START
    shifted_full_invoke: int = START
    shifted_get_return: int = NEVER
    shifted_full_return: int = NEVER
    shifted_weak_return: int = NEVER
    shifted_empty_return: int = NEVER
    last_empty: int = -1
    """The last position before the bucket that boundaries an empty answer."""
    reader_invoke: dict[int, int] = field(default_factory=dict)
    reader_return: dict[int, int] = field(default_factory=dict)
    reader_empty_return: dict[int, int] = field(default_factory=dict)


def extent_of(
    summaries: Sequence[Summary],
    capacity: int | None,
    width: int,
    overwrites: bool,
    killed_reads: Iterable[tuple[int, int]] = (),
    killed_puts: Iterable[int] = (),
) -> Extent:
    """``killed_reads``: the reader and the ticket of those that were killed; they tell where a reader was.

    ``killed_puts``: their invocations, in order.
    """

    def last(*codes: int) -> int:
        return max((each.last for each in summaries if each.code in codes), default=-1)

    reads = [each for each in summaries if each.reader >= 0]
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    for each in reads:
        end = each.last + 1 if each.code == GET else each.last
        starts[each.reader] = min(starts.get(each.reader, each.first), each.first)
        ends[each.reader] = max(ends.get(each.reader, end), end)
    for reader, ticket in killed_reads:
        starts[reader] = min(starts.get(reader, ticket), ticket)
        ends.setdefault(reader, ticket)
    return Extent(
        capacity=capacity,
        width=width,
        overwrites=overwrites,
        put_end=last(PUT) + 1,
        last_put=max((each.invoke for each in summaries if each.code == PUT), default=START),
        get_end=last(GET) + 1,
        empty_end=max(0, last(EMPTY, WEAK_EMPTY)),
        last_empty=last(EMPTY),
        full_end=last(FULL, WEAK_FULL) if capacity is not None else -1,
        killed_puts=tuple(killed_puts) if overwrites else (),
        readers=tuple(sorted(starts)),
        reader_starts=starts,
        reader_ends=ends,
    )


def boundaries_of(summaries: Sequence[Summary], buckets: Sequence[int]) -> dict[int, Boundary]:
    """Of those buckets, in order. One sweep up for what came before, one down for what comes after."""
    by_own: dict[int, list[Summary]] = {}
    by_shifted: dict[int, list[Summary]] = {}
    for each in summaries:
        by_own.setdefault(each.bucket, []).append(each)
        by_shifted.setdefault(each.shifted, []).append(each)
    boundaries = {bucket: Boundary() for bucket in buckets}
    sweep = Boundary()
    everywhere = sorted({*buckets, *by_own, *by_shifted})
    for bucket in everywhere:
        if bucket in boundaries:
            copy_before(sweep, boundaries[bucket])
        for each in by_own.get(bucket, ()):
            add_before(sweep, each)
        for each in by_shifted.get(bucket, ()):
            if each.code == GET:
                sweep.shifted_get_invoke = max(sweep.shifted_get_invoke, each.invoke)
            elif each.code == FULL:
                sweep.shifted_full_invoke = max(sweep.shifted_full_invoke, each.invoke)
    sweep = Boundary()
    for bucket in reversed(everywhere):
        if bucket in boundaries:
            copy_after(sweep, boundaries[bucket])
        for each in by_own.get(bucket, ()):
            add_after(sweep, each)
        for each in by_shifted.get(bucket, ()):
            if each.code == GET:
                sweep.shifted_get_return = min(sweep.shifted_get_return, each.ret)
            elif each.code in (FULL, WEAK_FULL):
                sweep.shifted_full_return = min(sweep.shifted_full_return, each.ret)
            elif each.code == EMPTY:
                sweep.shifted_empty_return = min(sweep.shifted_empty_return, each.ret)
            elif each.code == WEAK_EMPTY:
                sweep.shifted_weak_return = min(sweep.shifted_weak_return, each.ret)
    return boundaries


def add_before(sweep: Boundary, each: Summary) -> None:
    if each.code == PUT:
        sweep.put_invoke = max(sweep.put_invoke, each.invoke)
    elif each.code == GET:
        sweep.get_invoke = max(sweep.get_invoke, each.invoke)
        sweep.reader_invoke[each.reader] = max(sweep.reader_invoke.get(each.reader, START), each.invoke)
    elif each.code == EMPTY:
        sweep.empty_invoke = max(sweep.empty_invoke, each.invoke)
        sweep.last_empty = max(sweep.last_empty, each.last)
    elif each.code == FULL:
        sweep.full_invoke = max(sweep.full_invoke, each.invoke)


def add_after(sweep: Boundary, each: Summary) -> None:
    if each.code == PUT:
        sweep.put_return = min(sweep.put_return, each.ret)
    elif each.code == GET:
        sweep.get_return = min(sweep.get_return, each.ret)
        sweep.reader_return[each.reader] = min(sweep.reader_return.get(each.reader, NEVER), each.ret)
    elif each.code in (EMPTY, WEAK_EMPTY):
        sweep.empty_return = min(sweep.empty_return, each.ret)
        before = sweep.reader_empty_return.get(each.reader, NEVER)
        sweep.reader_empty_return[each.reader] = min(before, each.ret)
    else:
        sweep.full_return = min(sweep.full_return, each.ret)


BEFORE = ("put_invoke", "empty_invoke", "get_invoke", "full_invoke", "last_empty")
SHIFTED_BEFORE = ("shifted_get_invoke", "shifted_full_invoke")
AFTER = ("put_return", "get_return", "empty_return", "full_return")
SHIFTED_AFTER = ("shifted_get_return", "shifted_full_return", "shifted_weak_return", "shifted_empty_return")


def copy_before(sweep: Boundary, boundary: Boundary) -> None:
    for name in BEFORE + SHIFTED_BEFORE:
        setattr(boundary, name, getattr(sweep, name))
    boundary.reader_invoke = dict(sweep.reader_invoke)


def copy_after(sweep: Boundary, boundary: Boundary) -> None:
    for name in AFTER + SHIFTED_AFTER:
        setattr(boundary, name, getattr(sweep, name))
    boundary.reader_return = dict(sweep.reader_return)
    boundary.reader_empty_return = dict(sweep.reader_empty_return)


def bounds(bucket: int, extent: Extent) -> tuple[int, int]:
    """Its positions: from the first, up to and without the second."""
    low = bucket * extent.width
    end = extent.puts_needed + 1 + (extent.capacity or 0)  # where the last get is shifted to
    return low, max(low, min(low + extent.width, end))


def own(rows: Rows, code: int, low: int, high: int) -> tuple[Rows, Longs]:
    """Of one code at those positions, and the positions as places in a dense array."""
    found = rows.where((rows.code == code) & (rows.ticket >= low) & (rows.ticket < high))
    return found, found.ticket - low
