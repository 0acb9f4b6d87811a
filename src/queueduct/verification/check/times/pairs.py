"""The put and the get of every value in one row, and the findings that a value alone shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from queueduct.verification.check.operations import NEVER, START, Code, Columns, Finding, Findings, Longs, sought
from queueduct.verification.check.part import Part
from queueduct.verification.check.unique_values import hash_of

__all__ = ["Bad", "Paired", "Pairs", "Sides", "bad_pairs", "by_value", "paired"]

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Sides(Columns):
    """Operations on an item, and strong answers, which have none."""

    code: NDArray[np.int8]
    value: Longs
    invoke: Longs
    ret: Longs
    reader: Longs
    redelivered: Flags


@dataclass(frozen=True)
class Pairs(Columns):
    """One row for each value, in their order. A missing time is NEVER."""

    value: Longs
    puts: Longs
    killed_puts: Longs
    gets: Longs
    killed_gets: Longs
    again: Longs
    """Deliveries after the first."""
    put_invoke: Longs
    put_return: Longs
    get_invoke: Longs
    get_return: Longs
    last_get_invoke: Longs

    @property
    def is_left(self) -> Flags:
        """True if the record has no get of it."""
        return np.asarray((self.gets == 0) & (self.killed_gets == 0))


class Paired(NamedTuple):
    """Operations on some values: in a log of one reader, else of all consumers, as reader -1."""

    reader: int
    pairs: Pairs
    answers: Sides
    """Of any value: each answer is in one of the pieces."""


def by_value(part: Part, tasks: int) -> Iterator[tuple[int, Sides]]:
    """Carries all operations of a value to one task."""
    rows = part.rows
    sides = Sides(rows.code, rows.value, rows.invoke, rows.ret, rows.reader, part.redelivered)
    is_answer = np.isin(rows.code, (Code.EMPTY, Code.FULL))
    chosen = is_answer | part.has_value & np.isin(rows.code, (*Code.PUTS, *Code.GETS, Code.KILLED_GET))
    hashed = hash_of(np.where(is_answer, rows.invoke, rows.value), tasks)
    yield from sides.where(chosen).sliced(hashed[chosen])


def paired(carried: tuple[int, list[Sides]], readers: tuple[int, ...]) -> Iterator[Paired]:
    if not carried[1]:
        return
    sides = Sides.joined(carried[1])
    is_answer = np.isin(sides.code, (Code.EMPTY, Code.FULL))
    items, answers = sides.where(~is_answer), sides.where(is_answer)
    items = items.where(np.argsort(items.value, kind="stable"))
    for reader in readers:
        is_mine = np.isin(items.code, Code.PUTS) | (items.reader == reader)
        yield Paired(reader, pairs_of(items.where(is_mine)), answers.where(answers.reader == reader))


def pairs_of(items: Sides) -> Pairs:
    """Returns the pairs in the order of their values."""
    if not len(items):
        return Pairs(*(np.empty(0, np.int64) for _ in range(11)))
    begins = np.flatnonzero(np.append(True, items.value[1:] != items.value[:-1]))
    is_put, is_got = np.isin(items.code, Code.PUTS), np.isin(items.code, Code.GETS)
    is_killed_get = items.code == Code.KILLED_GET

    def number(flags: Flags) -> Longs:
        return np.add.reduceat(flags.astype(np.int64), begins)

    def soonest(flags: Flags, times: Longs) -> Longs:
        return np.minimum.reduceat(np.where(flags, times, NEVER), begins)

    gets = number(is_got)
    return Pairs(
        value=items.value[begins],
        puts=number(is_put),
        killed_puts=number(items.code == Code.KILLED_PUT),
        gets=gets,
        killed_gets=number(is_killed_get),
        again=number(items.redelivered & ~is_put),
        put_invoke=soonest(is_put, items.invoke),
        put_return=soonest(is_put, items.ret),
        get_invoke=np.where(gets > 0, soonest(is_got, items.invoke), soonest(is_killed_get, items.invoke)),
        get_return=soonest(is_got, items.ret),
        last_get_invoke=np.maximum.reduceat(np.where(is_got, items.invoke, START), begins),
    )


class Bad(NamedTuple):
    put_twice: int | None
    """The least value that was put twice."""
    findings: Findings


def bad_pairs(piece: Paired) -> list[Bad]:
    """Returns what a value alone shows: put twice, got and never put, got before it was put, got twice."""
    pairs, findings = piece.pairs, Findings()

    def got(row: Any, which: str, times: Longs) -> dict[str, Any]:
        return sought("get", which, times[row], reader=piece.reader) | {"value": int(pairs.value[row])}

    def listed(rule: str, why: str, bad: Flags) -> Longs:
        rows = np.flatnonzero(bad)
        return rows[: findings.room_for(rule, why, len(rows))]

    rule, why = "fresh", "an item was got that was never put"
    for row in listed(rule, why, (pairs.puts == 0) & (pairs.gets > 0)):
        findings.listed.append(Finding(rule, why, got(row, "invoke_ns", pairs.get_invoke), None))
    why = "an item was got before its put was invoked"
    for row in listed(rule, why, (pairs.puts > 0) & (pairs.get_return < pairs.put_invoke)):
        put = {"op": "put", "value": int(pairs.value[row])}
        findings.listed.append(Finding(rule, why, got(row, "return_ns", pairs.get_return), put))
    rule, why = "repeat", "an item was got twice"
    for row in listed(rule, why, pairs.gets > 1):
        twin = got(row, "invoke_ns", pairs.get_invoke)
        findings.listed.append(Finding(rule, why, got(row, "invoke_ns", pairs.last_get_invoke), twin))
    doubled = pairs.value[pairs.puts > 1]
    return [Bad(int(doubled[0]) if len(doubled) else None, findings)]
