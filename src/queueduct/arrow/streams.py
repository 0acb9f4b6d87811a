"""Logs as Arrow streams, by the PyCapsule interface: polars, DuckDB and pyarrow read a queue or a reader as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from queueduct.arrow.schema import schema_of
from queueduct.arrow.tables import ColumnPlan, Columns, plan_of
from queueduct.errors import ShutDown

__all__ = ["empty_table", "queue_stream", "reader_stream", "schema_capsule", "table_plan"]

BATCH_ROWS = 1 << 16
BATCH_BYTES = 4 << 20
table_of = pa.Table.from_batches


class TableColumns(Columns):
    """Collects items for to_arrow: their batch is the table, so nothing is left to do after the reader moved."""

    __slots__ = ()

    def batch(self, rows: int | None = None) -> pa.Table:
        return table_of([Columns.batch(self, rows)])


def table_plan(item: Any, max_items: int | None, strings: str) -> tuple[Callable[..., TableColumns], int]:
    """Returns what collects a table, and for how many items at most."""
    plan = plan_of(item, strings)
    return partial(TableColumns, plan), plan.most if max_items is None else min(max_items, plan.most)


def empty_table(item: Any, strings: str) -> pa.Table:
    return pa.Table.from_batches([], plan_of(item, strings).schema)


def schema_capsule(item: Any) -> object:
    return schema_of(item).__arrow_c_schema__()


def reader_stream(reader: Any, item: Any, stop: int, requested: object) -> object:
    """Returns the capsule of a stream from the reader's position up to ``stop``. Each batch moves the position."""
    return capsule(item, requested, lambda schema: reader_batches(reader, item, schema, stop))


def queue_stream(queue: Any, requested: object) -> object:
    """Returns the capsule of a stream of all that is kept now. It is read by position: no reader moves."""
    item, start, stop = queue.item, queue.earliest, queue.end
    return capsule(item, requested, lambda schema: position_batches(queue, item, schema, start, stop))


def capsule(item: Any, requested: object, batches: Callable[[pa.Schema], Iterator[pa.RecordBatch]]) -> object:
    wanted = None if requested is None else pa.schema(Requested(requested))
    schema = agreed_schema(item, wanted)
    stream = pa.RecordBatchReader.from_batches(schema, batches(schema))
    return stream.__arrow_c_stream__(None if wanted is None else wanted.__arrow_c_schema__())


def rows_of_a_batch(item: Any) -> int:
    return BATCH_ROWS if item is bytes else max(1, min(BATCH_ROWS, BATCH_BYTES // np.dtype(item).itemsize))


def reader_batches(reader: Any, item: Any, schema: pa.Schema, stop: int) -> Iterator[pa.RecordBatch]:
    plan, rows = ColumnPlan(item, schema), rows_of_a_batch(item)
    while reader.position < stop:
        try:
            batch = reader._collect(partial(Columns, plan), rows, stop, 0)
        except ShutDown:  # what was left was removed
            return
        if batch is None:
            return
        yield batch


def position_batches(queue: Any, item: Any, schema: pa.Schema, start: int, stop: int) -> Iterator[pa.RecordBatch]:
    plan, rows = ColumnPlan(item, schema), rows_of_a_batch(item)
    for at in range(start, stop, rows):
        items = queue.read(at, min(at + rows, stop))
        columns = Columns(plan, len(items), at)
        columns.add(items)
        yield columns.batch()


def agreed_schema(item: Any, wanted: pa.Schema | None) -> pa.Schema:
    """Returns the schema; fields of bytes are binary where the consumer asks for that, and need not be UTF-8 then."""
    schema = schema_of(item)
    if wanted is None:
        return schema
    binary = schema_of(item, strings="binary")
    for index, field in enumerate(schema):
        if field.name in wanted.names and wanted.field(field.name).type == binary.field(index).type:
            schema = schema.set(index, binary.field(index))
    return schema


class Requested:
    """A consumer's schema, as pyarrow takes it."""

    def __init__(self, capsule: object) -> None:
        self.capsule = capsule

    def __arrow_c_schema__(self) -> object:
        return self.capsule
