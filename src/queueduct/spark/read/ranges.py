"""A range of positions cut into spans, one a task, and a span read as Arrow batches."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from queueduct import DataLost
from queueduct.spark.address import Address, commanded
from queueduct.spark.convert.to_arrow import to_batch
from queueduct.spark.read.spool import unpacked

__all__ = ["Span", "check_retained", "cut", "read_span"]

LEAST_ROWS = 32_768  # a task costs milliseconds: fewer rows than this are not worth another
BATCH_ROWS = 16_384  # records and columns of one batch stay in the cache
BATCH_BYTES = 4 << 20


@dataclass
class Span(InputPartition):
    """Positions of one queue, from ``start`` up to and without ``stop``."""

    address: Address
    start: int
    stop: int


def check_retained(address: Address, start: int, stop: int, earliest: int, *, may_skip: bool) -> int:
    """Where to start: at ``start``, or, if that was freed and it may be, at the earliest position that is there."""
    if start >= earliest or start >= stop:
        return start
    if may_skip:
        return min(earliest, stop)
    raise DataLost(
        f"the queue {address.name!r} no longer has position {start}: earliest={earliest}; it was freed by clear or "
        "keep_last, or dropped when the queue was full; failOnDataLoss=false goes on from the earliest"
        f"{commanded(earliest)}",
        start,
        earliest,
    )


def cut(address: Address, start: int, stop: int, partitions: int | None) -> list[Span]:
    """About equal spans: as many as were asked for, or as there are cores and rows for."""
    rows = stop - start
    if rows <= 0:
        return []
    if partitions is None:
        partitions = min(len(os.sched_getaffinity(0)), -(-rows // LEAST_ROWS))
    count = min(partitions, rows)
    edges = [start + rows * index // count for index in range(count + 1)]
    return [Span(address, *pair) for pair in itertools.pairwise(edges)]


def read_span(span: Span, schema: pa.Schema, *, may_skip: bool, is_spool: bool = False) -> Iterator[pa.RecordBatch]:
    """The span's items in order; those that were freed meanwhile are an error, or left out if that was asked for."""
    start, rows = span.start, 1024
    while start < span.stop:
        try:
            items = span.address.read(start, min(start + rows, span.stop))
        except DataLost as lost:
            if not may_skip:
                raise
            start = max(start, lost.earliest)
            continue
        batch = to_batch(*unpacked(items), schema) if is_spool else to_batch(items, start, schema)
        yield batch
        start += batch.num_rows
        rows = max(1, min(BATCH_ROWS, BATCH_BYTES * batch.num_rows // max(1, batch.nbytes)))
