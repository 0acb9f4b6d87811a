"""Operations that are in memory: all of a history, or a part of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queueduct.verification.check.operations import NEVER, START, Code, Columns, Longs, Rows, grouped, numbered
from queueduct.verification.check.witnesses import Row, Wanted
from queueduct.verification.history.format import FARTHEST, History, HistoryError
from queueduct.verification.history.reader import is_valid, numbers

__all__ = ["OUTCOMES", "Part"]

Flags = NDArray[np.bool_]

OUTCOMES = ("put ok", "put full", "put pending", "get ok", "get empty", "get pending")
CODES = np.array(
    [
        *(Code.PUT, Code.PUT, Code.PUT, Code.PUT),
        *(Code.FULL, Code.WEAK_FULL, Code.FULL, Code.WEAK_FULL),
        *(Code.KILLED_PUT, Code.KILLED_PUT, Code.KILLED_PUT, Code.KILLED_PUT),
        *(Code.GET, Code.GET, Code.REDELIVERED, Code.REDELIVERED),
        *(Code.EMPTY, Code.WEAK_EMPTY, Code.EMPTY, Code.WEAK_EMPTY),
        *(Code.KILLED_GET, Code.KILLED_GET, Code.KILLED_GET, Code.KILLED_GET),
    ],
    np.int8,
)
"""The code of each outcome: neither redelivered nor weak, weak, redelivered, both."""
LONGS = {"worker": START, "value": START, "ticket": START, "invoke_ns": START, "return_ns": NEVER, "reader": -1}
"""What stands for null in these columns."""


@dataclass(frozen=True)
class Part(Columns):
    """The columns of the record. A null flag is false, and tickets count from the first."""

    outcome: NDArray[np.int8]
    """Its index in OUTCOMES."""
    redelivered: Flags
    weak: Flags
    torn: Flags
    worker: Longs
    value: Longs
    ticket: Longs
    invoke_ns: Longs
    return_ns: Longs
    reader: Longs
    """In a log; else null."""
    has_value: Flags

    @classmethod
    def of(cls, batch: pa.RecordBatch, history: History) -> Part:
        """Raises HistoryError if a row contradicts itself."""
        flags = [numbers(batch.column(name), False) for name in ("redelivered", "weak", "torn")]
        longs = {name: apart_from_null(batch.column(name), null) for name, null in LONGS.items()}
        longs["value"] = numbers(batch.column("value"), START)
        if history.first_ticket:
            moved = np.maximum(longs["ticket"], -FARTHEST) - history.first_ticket
            longs["ticket"] = np.where(is_valid(batch.column("ticket")), moved, START)
        if history.kind != "events":
            longs["reader"] = np.full(len(batch), -1)
        columns: list[Any] = [outcomes_of(batch), *flags, *longs.values(), is_valid(batch.column("value"))]
        part = cls(*columns)
        part.refuse_bad_rows(is_log=history.kind == "events")
        return part

    def refuse_bad_rows(self, *, is_log: bool) -> None:
        has_return, is_pending = self.has("return_ns"), np.isin(self.code, (Code.KILLED_PUT, Code.KILLED_GET))
        is_read = is_log & (self.outcome >= OUTCOMES.index("get ok"))
        is_far = (np.abs(self.invoke_ns) >= FARTHEST) | has_return & (np.abs(self.return_ns) >= FARTHEST)
        needs_value = np.isin(self.code, (*Code.PUTS, *Code.GETS))
        for is_bad, words in (
            (~self.has("invoke_ns") | ~self.has("worker"), "invoke_ns and worker must not be null: they are in {}"),
            (is_far, "times must be nearer to 0 than 2^62 ns: they are not in {}; use one monotonic clock"),
            (
                self.return_ns < self.invoke_ns,
                "the clock must not go backwards: return_ns < invoke_ns in {}; use one monotonic clock of one host",
            ),
            (is_pending & has_return, "a pending operation has not returned: return_ns must be null in {}"),
            (~is_pending & ~has_return, "return_ns is null for pending operations only: it is in {}"),
            (needs_value & ~self.has_value, "value must not be null: it is in {}"),
            (is_read & ~self.has("reader"), "gets of kind events must name their reader: reader is null in {}"),
            (is_read & (self.reader < 0), "readers are numbered from 0 on: they are not in {}"),
        ):
            if is_bad.any():
                first = int(np.argmax(is_bad))
                number = int((is_bad & (self.outcome == self.outcome[first])).sum())
                rows = f"{number:,} rows of {OUTCOMES[self.outcome[first]]}, as of worker {self.worker[first]}"
                raise HistoryError(words.format(rows))

    def has(self, column: str) -> Flags:
        """Returns where the column is not null."""
        found: Flags = self.has_value if column == "value" else getattr(self, column) != LONGS[column]
        return found

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
        keys: dict[str, NDArray[Any]] = {
            "outcome": self.outcome,
            "code": self.code,
            "has_ticket": self.has("ticket"),
            "bucket": self.ticket // width,
            "shifted": (np.clip(self.ticket, -FARTHEST, FARTHEST) + capacity) // width,
            "reader": self.reader,
        }
        order, begins = grouped(numbered(*keys.values()))
        columns = {name: key[order[begins]] for name, key in keys.items()}
        columns["rows"] = np.diff(np.append(begins, len(order)))
        for name, how, values in (
            ("values", np.add, self.has_value.astype(np.int64)),
            ("torn", np.add, self.torn.astype(np.int64)),
            ("first", np.minimum, self.ticket),
            ("last", np.maximum, self.ticket),
            ("first_invoke", np.minimum, self.invoke_ns),
            ("invoke", np.maximum, self.invoke_ns),
            ("ret", np.minimum, self.return_ns),
            ("last_return", np.maximum, np.where(self.has("return_ns"), self.return_ns, START)),
        ):
            columns[name] = how.reduceat(values[order], begins)
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def lookup(self, wanted: Wanted, most: int) -> list[Row]:
        """The rows that have one of the wanted values in one of the columns."""
        chosen = np.zeros(len(self), bool)
        for column, values in wanted.items():
            chosen |= self.has(column) & np.isin(getattr(self, column), np.array(sorted(values), np.int64))
        return self.listed(chosen, most)

    def listed(self, chosen: Flags, most: int | None = None) -> list[Row]:
        """Returns the rows as in the record."""
        found = self.where(np.flatnonzero(chosen)[:most])
        columns: dict[str, list[Any]] = {}
        for number, name in enumerate(("op", "outcome")):
            columns[name] = [OUTCOMES[index].split()[number] for index in found.outcome]
        for name in LONGS:
            pairs = zip(getattr(found, name).tolist(), found.has(name).tolist(), strict=True)
            columns[name] = [number if is_there else None for number, is_there in pairs]
        for name in ("redelivered", "weak", "torn"):
            columns[name] = getattr(found, name).tolist()
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def examples(self, what: str, most: int) -> list[Row]:
        """Rows that are wrong by themselves: torn, full, negative, beyond."""
        conditions = {
            "torn": self.torn,
            "full": np.isin(self.code, Code.FULLS),
            "negative": self.has("ticket") & (self.ticket < 0),
            "beyond": self.ticket >= FARTHEST,
        }
        return self.listed(conditions[what], most)

    def killed(self) -> list[Row]:
        """The rows of killed operations and of redelivered items."""
        return self.listed(self.code > Code.WEAK_FULL)


def apart_from_null(column: pa.Array, null: int) -> Longs:
    """Moves a number that stands for null by one: neither is right in its column."""
    found = numbers(column, null)
    is_meant = (found == null) & is_valid(column)
    return np.where(is_meant, null + 1 if null == START else null - 1, found) if is_meant.any() else found


def outcomes_of(batch: pa.RecordBatch) -> NDArray[np.int8]:
    op, outcome = batch.column("op"), batch.column("outcome")
    words = [(*column.dictionary.to_pylist(), None) for column in (op, outcome)]
    names = [f"{first} {second}" for first in words[0] for second in words[1]]
    known = np.array([OUTCOMES.index(name) if name in OUTCOMES else -1 for name in names], np.int8)
    indices = [numbers(column.indices, len(column.dictionary)) for column in (op, outcome)]
    name = indices[0] * len(words[1]) + indices[1]
    found: NDArray[np.int8] = known[name]
    if len(unknown := name[found < 0]):
        number, what = int((unknown == unknown[0]).sum()), names[unknown[0]]
        raise HistoryError(f"an operation must be one of {', '.join(sorted(OUTCOMES))}: {number:,} rows are {what!r}")
    return found
