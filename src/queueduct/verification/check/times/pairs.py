"""The order check of rows that are here: puts and gets paired by their values, all of time in one bucket."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from queueduct.verification.check.counts import Counts
from queueduct.verification.check.operations import (
    EMPTY,
    FULL,
    GET,
    KILLED_GET,
    KILLED_PUT,
    NEVER,
    PUT,
    REDELIVERED,
    START,
    WEAK_EMPTY,
    Finding,
    Findings,
    Longs,
    Rows,
    sought,
)
from queueduct.verification.check.times.full_answers import Filling, judge_filling
from queueduct.verification.check.times.order import Moments, OrderCarry, judge_order
from queueduct.verification.check.witnesses import not_unique
from queueduct.verification.history.format import LIMITED, History

__all__ = ["judged_in_one_piece"]

Flags = NDArray[np.bool_]


class Pairs(NamedTuple):
    """One row a value. Times that never came are NEVER."""

    value: Longs
    puts: Longs
    killed_puts: Longs
    gets: Longs
    killed_gets: Longs
    again: Longs
    ie: Longs
    re: Longs
    id: Longs
    rd: Longs
    last_id: Longs

    def where(self, chosen: NDArray[np.bool_]) -> Pairs:
        return Pairs(*(column[chosen] for column in self))

    @property
    def is_left(self) -> Flags:
        """Never got, as far as anybody knows."""
        found: Flags = (self.gets == 0) & (self.killed_gets == 0)
        return found


def judged_in_one_piece(
    rows: Rows, redelivered: Flags, has_value: Flags, history: History, counts: Counts
) -> list[Finding]:
    capacity = history.capacity if history.kind in LIMITED or history.kind == "growing" else None
    found: list[Finding] = []
    for reader in sorted(counts.readers) if history.kind == "events" else [-1]:
        is_mine = np.isin(rows.code, (PUT, KILLED_PUT)) | (rows.reader == reader)
        mine = rows.where(is_mine)
        pairs = pairs_of(mine, redelivered[is_mine], has_value[is_mine])
        bad = Findings()
        report_bad(pairs, reader, bad)
        killed = np.sort(mine.invoke[(mine.code == KILLED_GET) & ~has_value[is_mine]])
        kept = in_order(pairs, mine, history.kind, killed)
        empties = mine.where(mine.code == EMPTY)
        moments = moments_of(kept, empties)
        last_empty = int(empties.invoke.max()) if len(empties) else START
        judged = judge_order(moments, START, OrderCarry(last_empty=last_empty, reader=reader), capacity)
        found += bad.rows() + judged.findings.rows()
        if capacity is not None:
            found += judge_filling(filling_of(pairs, rows), START, 0, capacity).findings.rows()
    return found


def filling_of(pairs: Pairs, rows: Rows) -> Filling:
    """What was redelivered may be there as long as anybody knows."""
    fulls = rows.where(rows.code == FULL)
    is_gone = (pairs.rd < NEVER) & (pairs.again == 0)
    return Filling(pairs.ie[pairs.puts > 0], pairs.rd[is_gone & (pairs.puts > 0)], fulls.invoke, fulls.ret)


def pairs_of(rows: Rows, redelivered: Flags, has_value: Flags) -> Pairs:
    is_side = has_value & np.isin(rows.code, (PUT, GET, KILLED_PUT, KILLED_GET, REDELIVERED))
    sides = rows.where(is_side)
    order = np.argsort(sides.value, kind="stable")
    sides, again = sides.where(order), redelivered[is_side][order]
    if not len(sides):
        return Pairs(*(np.empty(0, np.int64) for _ in Pairs._fields))
    begins = np.flatnonzero(np.append(True, sides.value[1:] != sides.value[:-1]))
    is_put, is_got = np.isin(sides.code, (PUT, KILLED_PUT)), np.isin(sides.code, (GET, REDELIVERED))
    is_killed_get = sides.code == KILLED_GET

    def number(flags: Flags) -> Longs:
        return np.add.reduceat(flags.astype(np.int64), begins)

    def soonest(flags: Flags, times: Longs) -> Longs:
        return np.minimum.reduceat(np.where(flags, times, NEVER), begins)

    gets = number(is_got)
    return Pairs(
        value=sides.value[begins],
        puts=number(is_put),
        killed_puts=number(sides.code == KILLED_PUT),
        gets=gets,
        killed_gets=number(is_killed_get),
        again=number(again & ~is_put),
        ie=soonest(is_put, sides.invoke),
        re=soonest(is_put, sides.ret),
        id=np.where(gets > 0, soonest(is_got, sides.invoke), soonest(is_killed_get, sides.invoke)),
        rd=soonest(is_got, sides.ret),
        last_id=np.maximum.reduceat(np.where(is_got, sides.invoke, START), begins),
    )


def report_bad(pairs: Pairs, reader: int, findings: Findings) -> None:
    """What a value alone shows: got and never put, got before it was put, got twice."""

    def got(row: Any, which: str, times: Longs) -> dict[str, Any]:
        return sought("get", which, times[row], reader=reader) | {"value": int(pairs.value[row])}

    for row in np.flatnonzero(pairs.puts > 1):
        raise not_unique(int(pairs.value[row]), [])
    for row in np.flatnonzero((pairs.puts == 0) & (pairs.gets > 0)):
        findings.add("fresh", "an item was got that was never put", got(row, "invoke_ns", pairs.id), None)
    for row in np.flatnonzero((pairs.puts > 0) & (pairs.rd < pairs.ie)):
        put = {"op": "put", "value": int(pairs.value[row])}
        findings.add("fresh", "an item was got before its put was invoked", got(row, "return_ns", pairs.rd), put)
    for row in np.flatnonzero(pairs.gets > 1):
        twin = got(row, "invoke_ns", pairs.id)
        findings.add("repeat", "an item was got twice", got(row, "invoke_ns", pairs.last_id), twin)


def in_order(pairs: Pairs, rows: Rows, kind: str, killed: Longs) -> Pairs:
    """The pairs that the order is about; the reasons are those of ``with_unseen_gets``."""
    kept = pairs.where((pairs.puts == 1) & (pairs.again == 0) & ~(pairs.is_left & (pairs.killed_puts > 0)))
    if kind == "overwriting":
        return kept.where(~kept.is_left)
    if kind == "events":
        answers = rows.ret[np.isin(rows.code, (GET, EMPTY, REDELIVERED, WEAK_EMPTY)) & (rows.ret != NEVER)]
        read = pairs.re[~pairs.is_left]
        start = min(int(answers.min()) if len(answers) else NEVER, int(read.min()) if len(read) else NEVER)
        kept = kept.where(~kept.is_left | (kept.ie > start))
    left = np.flatnonzero(kept.is_left)
    left = left[np.argsort(kept.re[left], kind="stable")][: len(killed)]
    kept.id[left] = killed[: len(left)]
    return kept


def moments_of(pairs: Pairs, empties: Rows) -> Moments:
    queued, taken = pairs.where(pairs.re < NEVER), pairs.where((pairs.re < pairs.id) & (pairs.id < NEVER))
    sizes = [len(pairs.ie), len(queued.re), len(taken.id), len(empties)]
    sort = np.repeat(np.arange(4), sizes)
    return Moments(
        sort == 0,
        sort == 1,
        sort == 2,
        sort == 3,
        np.concatenate([pairs.ie, queued.re, taken.id, empties.ret]),
        np.concatenate([pairs.rd, queued.id, taken.id, empties.invoke]),
        np.concatenate([pairs.value, queued.value, taken.value, np.zeros(len(empties), np.int64)]),
    )
