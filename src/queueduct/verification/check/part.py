"""Operations that are in memory: all of a history, or a part of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queueduct.verification.check.operations import (
    EMPTY,
    FULL,
    FULLS,
    GET,
    KILLED_GET,
    KILLED_PUT,
    NEVER,
    PUT,
    REDELIVERED,
    START,
    WEAK_EMPTY,
    WEAK_FULL,
    Columns,
    Longs,
    Rows,
    grouped,
)
from queueduct.verification.check.witnesses import Row, Wanted
from queueduct.verification.history.format import FARTHEST, History, HistoryError
from queueduct.verification.history.reader import is_valid, numbers

__all__ = ["OUTCOMES", "Part"]

Flags = NDArray[np.bool_]

OUTCOMES = ("put ok", "put full", "put pending", "get ok", "get empty", "get pending")
CODES = np.array(
    [
        *(PUT, PUT, PUT, PUT),
        *(FULL, WEAK_FULL, FULL, WEAK_FULL),
        *(KILLED_PUT, KILLED_PUT, KILLED_PUT, KILLED_PUT),
        *(GET, GET, REDELIVERED, REDELIVERED),
        *(EMPTY, WEAK_EMPTY, EMPTY, WEAK_EMPTY),
        *(KILLED_GET, KILLED_GET, KILLED_GET, KILLED_GET),
    ],
    np.int8,
)
"""Of each outcome: neither redelivered nor weak, weak, redelivered, both."""
LONGS = {"worker": -1, "value": -1, "ticket": START, "invoke_ns": -1, "return_ns": NEVER, "reader": -1}
"""And what stands where they are null."""


@dataclass(frozen=True)
class Part(Columns):
    """The columns of the record. Flags that are null are false, and tickets count from the first."""

    outcome: NDArray[np.int8]
    """Its place in OUTCOMES."""
    redelivered: Flags
    weak: Flags
    torn: Flags
    worker: Longs
    value: Longs
    ticket: Longs
    invoke_ns: Longs
    return_ns: Longs
    reader: Longs
    """Of a log; else null."""
    has_worker: Flags
    has_value: Flags
    has_ticket: Flags
    has_invoke_ns: Flags
    has_return_ns: Flags
    has_reader: Flags

    @classmethod
    def of(cls, batch: pa.RecordBatch, history: History) -> Part:
        flags = [numbers(batch.column(name), False) for name in ("redelivered", "weak", "torn")]
        longs = {name: numbers(batch.column(name), null) for name, null in LONGS.items()}
        there = {name: is_valid(batch.column(name)) for name in LONGS}
        if history.first_ticket:
            moved = np.maximum(longs["ticket"], -FARTHEST) - history.first_ticket
            longs["ticket"] = np.where(there["ticket"], moved, START)
        if history.kind != "events":
            longs["reader"], there["reader"] = np.full(len(batch), -1), np.zeros(len(batch), bool)
        return cls(outcomes_of(batch), *flags, *longs.values(), *there.values())

    @property
    def code(self) -> NDArray[np.int8]:
        found: NDArray[np.int8] = CODES[self.outcome * 4 + self.redelivered * np.int8(2) + self.weak]
        return found

    @property
    def rows(self) -> Rows:
        return Rows(self.code, self.ticket, self.value, self.invoke_ns, self.return_ns, self.worker, self.reader)

    def groups(self, width: int, capacity: int) -> list[Row]:
        """One row for each outcome, code, reader and bucket, with its extremes."""
        if not len(self):
            return []
        shifted = np.clip(self.ticket, -FARTHEST, FARTHEST) + capacity
        keys = (self.outcome, self.code, self.has_ticket, self.ticket // width, shifted // width, self.reader)
        order, begins = grouped(numbered(*keys))
        backwards = np.where(self.has_return_ns & (self.return_ns < self.invoke_ns), self.worker, START)
        columns = {name: key[order[begins]] for name, key in zip(GROUP, keys, strict=True)}
        columns["rows"] = np.diff(np.append(begins, len(order)))
        for name, flags in {
            "workers": self.has_worker,
            "values": self.has_value,
            "invokes": self.has_invoke_ns,
            "returns": self.has_return_ns,
            "readers": self.has_reader,
            "torn": self.torn,
            "backwards": backwards != START,
        }.items():
            columns[name] = np.add.reduceat(flags[order].astype(np.int64), begins)
        for name, least, values in (
            ("first", np.minimum, self.ticket),
            ("last", np.maximum, self.ticket),
            ("first_invoke", np.minimum, self.invoke_ns),
            ("invoke", np.maximum, self.invoke_ns),
            ("ret", np.minimum, self.return_ns),
            ("last_return", np.maximum, np.where(self.has_return_ns, self.return_ns, START)),
            ("backwards_worker", np.maximum, backwards),
        ):
            columns[name] = least.reduceat(values[order], begins)
        names, rows = list(columns), zip(*(column.tolist() for column in columns.values()), strict=True)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def lookup(self, wanted: Wanted, most: int) -> list[Row]:
        """The rows that have one of the wanted values in one of the columns."""
        chosen = np.zeros(len(self), bool)
        for column, values in wanted.items():
            is_wanted = np.isin(getattr(self, column), np.array(sorted(values), np.int64))
            chosen |= is_wanted & getattr(self, f"has_{column}")
        return self.listed(chosen, most)

    def listed(self, chosen: Flags, most: int | None = None) -> list[Row]:
        """As in the record."""
        found = self.where(np.flatnonzero(chosen)[:most])
        columns: dict[str, list[Any]] = {}
        for number, name in enumerate(("op", "outcome")):
            columns[name] = [OUTCOMES[place].split()[number] for place in found.outcome]
        for name in LONGS:
            pairs = zip(getattr(found, name).tolist(), getattr(found, f"has_{name}").tolist(), strict=True)
            columns[name] = [number if is_there else None for number, is_there in pairs]
        for name in ("redelivered", "weak", "torn"):
            columns[name] = getattr(found, name).tolist()
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def examples(self, what: str, most: int) -> list[Row]:
        """Rows that are wrong by themselves: torn, full, negative, beyond."""
        conditions = {
            "torn": self.torn,
            "full": np.isin(self.code, FULLS),
            "negative": self.has_ticket & (self.ticket < 0),
            "beyond": self.ticket >= FARTHEST,
        }
        return self.listed(conditions[what], most)

    def killed(self) -> list[Row]:
        """The rows of killed operations and of redelivered items."""
        return self.listed(self.code > WEAK_FULL)


GROUP = ("outcome", "code", "has_ticket", "bucket", "shifted", "reader")


def outcomes_of(batch: pa.RecordBatch) -> NDArray[np.int8]:
    op, outcome = batch.column("op"), batch.column("outcome")
    words = [(*column.dictionary.to_pylist(), None) for column in (op, outcome)]
    names = [f"{first} {second}" for first in words[0] for second in words[1]]
    known = np.array([OUTCOMES.index(name) if name in OUTCOMES else -1 for name in names], np.int8)
    places = [numbers(column.indices, len(column.dictionary)) for column in (op, outcome)]
    name = places[0] * len(words[1]) + places[1]
    found: NDArray[np.int8] = known[name]
    if len(unknown := name[found < 0]):
        number, what = int((unknown == unknown[0]).sum()), names[unknown[0]]
        raise HistoryError(f"an operation must be one of {', '.join(sorted(OUTCOMES))}: {number:,} rows are {what!r}")
    return found


def numbered(*keys: NDArray[Any]) -> Longs:
    """One number for each combination that there is of so many keys."""
    found = np.zeros(len(keys[0]), np.int64)
    span = 1
    for key in keys:
        least, greatest = int(key.min()), int(key.max())
        if greatest - least >= 1 << 30:
            distinct, key = np.unique(key, return_inverse=True)
            least, greatest = 0, len(distinct) - 1
        if span * (greatest - least + 1) >= 1 << 62:
            distinct, found = np.unique(found, return_inverse=True)
            span = len(distinct)
        found = found * (greatest - least + 1) + (key.astype(np.int64) - least)
        span *= greatest - least + 1
    return found
