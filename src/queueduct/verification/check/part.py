"""Operations that are in memory: all of a history, or a part of one."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

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
    WEAK_FULL,
    Longs,
    Rows,
)
from queueduct.verification.check.witnesses import Row, Wanted
from queueduct.verification.history.format import FARTHEST, HistoryError

__all__ = ["OUTCOMES", "Part"]

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
KEYS = ("code", "outcome", "reader", "bucket", "shifted")
MANY = 1 << 16  # below that, threads cost more than they save
AGGREGATES = (
    ("invoke_ns", "count", "invokes"),
    ("worker", "count", "workers"),
    ("value", "count", "values"),
    ("return_ns", "count", "returns"),
    ("backwards", "count", "backwards"),
    ("backwards", "max", "backwards_worker"),
    ("torn", "sum", "torn"),
    ("ticket", "min", "first"),
    ("ticket", "max", "last"),
    ("invoke_ns", "max", "invoke"),
    ("invoke_ns", "min", "first_invoke"),
    ("return_ns", "min", "ret"),
    ("return_ns", "max", "last_return"),
)


class Part:
    def __init__(self, table: pa.Table) -> None:
        self.table = table
        """With the columns of the record, after ``with_defaults``."""

    def __len__(self) -> int:
        return len(self.table)

    @functools.cached_property
    def outcome(self) -> NDArray[np.int8]:
        """Of each row its place in OUTCOMES."""
        found = np.empty(len(self), np.int8)
        begin = 0
        for batch in self.table.select(["op", "outcome"]).to_batches():
            op, outcome = batch.column(0), batch.column(1)
            words = [(*column.dictionary.to_pylist(), None) for column in (op, outcome)]
            names = [f"{first} {second}" for first in words[0] for second in words[1]]
            known = np.array([OUTCOMES.index(name) if name in OUTCOMES else -1 for name in names], np.int8)
            places = [np.asarray(pc.fill_null(each.indices, len(each.dictionary))) for each in (op, outcome)]
            name = places[0] * len(words[1]) + places[1]
            found[begin : begin + len(batch)] = known[name]
            if (found[begin : begin + len(batch)] < 0).any():
                unknown = name[known[name] < 0]
                number, what = int((unknown == unknown[0]).sum()), names[unknown[0]]
                expected = ", ".join(sorted(OUTCOMES))
                raise HistoryError(f"an operation must be one of {expected}: {number:,} rows are {what!r}")
            begin += len(batch)
        return found

    @functools.cached_property
    def rows(self) -> Rows:
        return Rows(
            CODES[self.outcome * 4 + self.flags("redelivered") * np.int8(2) + self.flags("weak")],
            self.longs("ticket", START),
            self.longs("value", -1),
            self.longs("invoke_ns", -1),
            self.longs("return_ns", NEVER),
            self.longs("worker", -1),
            self.longs("reader", -1),
        )

    def longs(self, name: str, null: int) -> Longs:
        return np.asarray(pc.fill_null(self.table.column(name), null))

    def flags(self, name: str) -> NDArray[np.bool_]:
        return np.asarray(self.table.column(name))

    @property
    def has_value(self) -> NDArray[np.bool_]:
        return np.asarray(pc.is_valid(self.table.column("value")))

    def groups(self, width: int, capacity: int) -> list[Row]:
        """One row for each code, outcome, reader and bucket, with its extremes; what is null stays null."""
        ticket, rows = self.table.column("ticket"), self.rows
        is_backwards = pc.less(self.table.column("return_ns"), self.table.column("invoke_ns"))
        keyed = self.table.select(["invoke_ns", "return_ns", "worker", "value", "torn", "ticket", "reader"])
        for name, column in {
            "code": pa.array(rows.code),
            "outcome": pa.array(self.outcome),
            "bucket": floored(ticket, rows.ticket, 0, width),
            "shifted": floored(ticket, rows.ticket, capacity, width),
            "backwards": pc.if_else(is_backwards, self.table.column("worker"), pa.scalar(None, pa.int64())),
        }.items():
            keyed = keyed.append_column(name, column)
        grouped = keyed.group_by(list(KEYS), use_threads=len(self) > MANY).aggregate(
            [("code", "count"), *((name, how) for name, how, _ in AGGREGATES)]
        )
        names = {f"{name}_{how}": known for name, how, known in AGGREGATES} | {"code_count": "rows"}
        found = [{names.get(name, name): value for name, value in group.items()} for group in grouped.to_pylist()]
        return [group | {"outcome": OUTCOMES[group["outcome"]]} for group in found]

    def lookup(self, wanted: Wanted, most: int) -> list[Row]:
        """The rows that have one of the wanted values in one of the columns."""
        chosen = np.zeros(len(self), bool)
        for column, values in wanted.items():
            known = pa.array(sorted(values), self.table.schema.field(column).type)
            chosen |= np.asarray(pc.is_in(self.table.column(column), value_set=known))
        return self.listed(chosen, most)

    def listed(self, chosen: NDArray[np.bool_], most: int | None = None) -> list[Row]:
        found: list[Row] = self.table.take(pa.array(np.flatnonzero(chosen)[:most])).to_pylist()
        return found

    def examples(self, what: str, most: int) -> list[Row]:
        """Rows that are wrong by themselves: torn, full, negative, beyond."""
        conditions = {
            "torn": lambda: self.flags("torn"),
            "full": lambda: np.isin(self.rows.code, (FULL, WEAK_FULL)),
            "negative": lambda: np.asarray(pc.fill_null(pc.less(self.table.column("ticket"), 0), False)),
            "beyond": lambda: self.rows.ticket >= FARTHEST,
        }
        return self.listed(conditions[what](), most)

    def killed(self) -> list[Row]:
        """The rows of killed operations and of redelivered items."""
        return self.listed(self.rows.code > WEAK_FULL)


def floored(ticket: Any, positions: Longs, shift: int, width: int) -> Any:
    """The bucket of each ticket; null stays null."""
    if shift:
        positions = np.clip(positions, -FARTHEST, FARTHEST) + shift
    return pa.array(positions // width, mask=np.asarray(pc.is_null(ticket)))
