"""A history that fits in memory: the same questions as on Spark, answered from arrays, without starting a job."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queueduct.verification.check.counts import Counts, code_of
from queueduct.verification.check.operations import (
    FULL,
    NEVER,
    PUT,
    START,
    WEAK_FULL,
    Finding,
    Longs,
    Rows,
)
from queueduct.verification.check.positions import log, queue
from queueduct.verification.check.positions.boundaries import Carry, Shape, relevant
from queueduct.verification.check.positions.sides import Found
from queueduct.verification.check.times.pairs import judged_in_one_piece
from queueduct.verification.check.unique_values import repeated
from queueduct.verification.check.witnesses import Row, Wanted
from queueduct.verification.history.format import FARTHEST, History
from queueduct.verification.history.reader import SCHEMA, read_parts

__all__ = ["InOnePiece", "read_rows"]

KEYS = ("op", "outcome", "redelivered", "weak", "reader_key", "bucket", "shifted")
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


def read_rows(history: History) -> pa.Table:
    """All of them, with the types of the record; tickets count from the first."""
    parts = [part for files in history.files for path in files.paths for part in read_parts(path, files.untyped)]
    return tidied(pa.Table.from_batches(parts, SCHEMA), history)


def tidied(table: pa.Table, history: History) -> pa.Table:
    for flag in ("redelivered", "weak", "torn"):
        table = table.set_column(table.schema.get_field_index(flag), flag, pc.fill_null(table.column(flag), False))
    if history.first_ticket:
        ticket = table.column("ticket")
        moved = pc.subtract(pc.max_element_wise(ticket, -FARTHEST, skip_nulls=False), history.first_ticket)
        table = table.set_column(table.schema.get_field_index("ticket"), "ticket", moved)
    if history.kind != "events":
        nobody = pa.nulls(len(table), pa.int64())
        table = table.set_column(table.schema.get_field_index("reader"), "reader", nobody)
    return table


class InOnePiece:
    """The rows, here."""

    def __init__(self, history: History, table: pa.Table) -> None:
        self.history, self.table = history, table

    def groups(self, width: int) -> list[Row]:
        capacity = self.history.capacity or 0 if self.history.kind != "events" else 0
        ticket = self.table.column("ticket")
        backwards = pc.less(self.table.column("return_ns"), self.table.column("invoke_ns"))
        nobody = pa.nulls(len(self.table), self.table.schema.field("worker").type)
        keyed = (
            self.table.append_column("bucket", floored(ticket, 0, width))
            .append_column("shifted", floored(ticket, capacity, width))
            .append_column("reader_key", self.table.column("reader"))
            .append_column("backwards", pc.if_else(backwards, self.table.column("worker"), nobody))
        )
        grouped = keyed.group_by(list(KEYS), use_threads=len(self.table) > MANY).aggregate(
            [("op", "count", pc.CountOptions(mode="all")), *((name, how) for name, how, _ in AGGREGATES)]
        )
        names = {f"{name}_{how}": known for name, how, known in AGGREGATES} | {"op_count": "rows"}
        return [{names.get(name, name): value for name, value in group.items()} for group in grouped.to_pylist()]

    def lookup(self, wanted: Wanted) -> list[Row]:
        chosen = np.zeros(len(self.table), bool)
        for column, values in wanted.items():
            known = pa.array(sorted(values), self.table.schema.field(column).type)
            chosen |= np.asarray(pc.is_in(self.table.column(column), value_set=known))
        return self.listed(chosen)

    def listed(self, chosen: NDArray[np.bool_]) -> list[Row]:
        found: list[Row] = self.table.filter(pa.array(chosen)).to_pylist()
        return found

    def examples(self, what: str, most: int) -> list[Row]:
        conditions = {
            "torn": lambda: self.table.column("torn"),
            "full": lambda: pc.equal(self.table.column("outcome"), "full"),
            "negative": lambda: pc.fill_null(pc.less(self.table.column("ticket"), 0), False),
            "beyond": lambda: pc.fill_null(pc.greater_equal(self.table.column("ticket"), FARTHEST), False),
        }
        return self.listed(np.asarray(conditions[what]()))[:most]

    @functools.cached_property
    def codes(self) -> NDArray[np.int8]:
        """Of every row: the same names as the groups have."""
        keys = ("op", "outcome", "redelivered", "weak")
        found = np.zeros(len(self.table), np.int8)
        flags = self.table.select(keys).group_by(list(keys), use_threads=len(self.table) > MANY)
        for group in flags.aggregate([]).to_pylist():
            is_one = np.ones(len(self.table), bool)
            for key in keys:
                is_one &= np.asarray(pc.equal(self.table.column(key), group[key]))
            found[is_one] = code_of(group)
        return found

    def specials(self) -> list[Row]:
        return self.listed(self.codes > WEAK_FULL)

    def rows(self) -> Rows:
        """All of them; what is null is START in a ticket, NEVER in a return, and -1 elsewhere."""
        return Rows(
            self.codes,
            self.longs("ticket", START),
            self.longs("value", -1),
            self.longs("invoke_ns", -1),
            self.longs("return_ns", NEVER),
            self.longs("worker", -1),
            self.longs("reader", -1),
        )

    def longs(self, name: str, null: int) -> Longs:
        return np.asarray(pc.fill_null(self.table.column(name).cast(pa.int64()), null))

    def judge_tickets(self, shape: Shape, carries: dict[int, Carry]) -> Found:
        rows = self.rows()
        is_limited = shape.capacity is not None
        chosen = (rows.code <= WEAK_FULL) & (rows.ticket != START)
        rows = rows.where(chosen & (is_limited | ~np.isin(rows.code, (FULL, WEAK_FULL))))
        module = log if self.history.kind == "events" else queue
        found: Found = ([], [], [])
        for bucket, carry in carries.items():
            mine = rows if len(carries) == 1 else relevant(rows, bucket, shape)
            judged = module.judge(mine, bucket, carry, shape)
            found[0].extend(judged.findings.rows())
            found[1].extend(judged.holes)
            found[2].extend(judged.firsts)
        return found

    def value_put_twice(self, killed: Sequence[int]) -> int | None:
        return repeated(np.append(self.longs("value", -1)[self.codes == PUT], np.array(killed, np.int64)))

    def judge_times(self, counts: Counts, width: int, progress: Callable[[str], None]) -> list[Finding]:
        progress("the order of times")
        redelivered = np.asarray(self.table.column("redelivered"))
        return judged_in_one_piece(self.rows(), redelivered, self.table_has_value(), self.history, counts)

    def table_has_value(self) -> NDArray[np.bool_]:
        return np.asarray(pc.is_valid(self.table.column("value")))


def floored(ticket: Any, offset: int, width: int) -> Any:
    """Rounded down, as on Spark; null stays null."""
    positions = np.asarray(pc.fill_null(ticket, 0)).astype(np.int64)
    if offset:
        positions = np.minimum(positions, FARTHEST) + offset
    return pa.array(positions // width, mask=np.asarray(pc.is_null(ticket)))
