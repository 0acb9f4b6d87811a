"""Ranges of positions, one for each task, and how a task reads one as Arrow batches."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from queueduct import DataLost
from queueduct.spark.address import Address, restart_at
from queueduct.spark.convert.to_arrow import to_batch

__all__ = ["LEAST_OF_MICRO_BATCH", "Range", "check_retained", "cut", "read_range"]

LEAST_ROWS = 32_768  # a task costs milliseconds: fewer rows need no further task
LEAST_OF_MICRO_BATCH = 262_144  # the same where other queries and producers use the cores, and a task may write a file
BATCH_ROWS = 16_384  # records and columns of one batch stay in the cache
BATCH_BYTES = 4 << 20


@dataclass
class Range(InputPartition):
    """Positions of one queue, from ``start`` up to and without ``stop``."""

    address: Address
    start: int
    stop: int


def check_retained(address: Address, start: int, stop: int, earliest: int, *, may_skip: bool) -> int:
    """Returns ``start``, or the earliest position, if ``start`` was freed and may be skipped."""
    if start >= earliest or start >= stop:
        return start
    if may_skip:
        return min(earliest, stop)
    raise DataLost(
        f"the queue {address.name!r} no longer has position {start}: earliest={earliest}; it was freed by clear or "
        "keep_last, or dropped when the queue was full; failOnDataLoss=false goes on from the earliest"
        f"{restart_at(earliest)}",
        start,
        earliest,
    )


def cut(address: Address, start: int, stop: int, partitions: int | None, least: int = LEAST_ROWS) -> list[Range]:
    """Returns about equal parts: as many as asked for, or as there are cores and enough rows for."""
    rows = stop - start
    if rows <= 0:
        return []
    if partitions is None:
        partitions = min(len(os.sched_getaffinity(0)), -(-rows // least))
    count = min(partitions, rows)
    edges = [start + rows * index // count for index in range(count + 1)]
    return [Range(address, *pair) for pair in itertools.pairwise(edges)]


def read_range(
    part: InputPartition, schema: pa.Schema, *, may_skip: bool, unpack: Callable[[Any], tuple[Any, Any]] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yields the items of a Range in order. Freed items raise DataLost, unless they may be skipped.

    ``unpack`` converts what was read to items and positions; by default the positions are those of the Range.
    """
    if not isinstance(part, Range):  # Spark's own, when there were no ranges
        return
    start, rows = part.start, 1024
    while start < part.stop:
        try:
            items = part.address.read(start, min(start + rows, part.stop))
        except DataLost as lost:
            if not may_skip:
                raise
            start = max(start, lost.earliest)
            continue
        items, positions = unpack(items) if unpack else (items, start)
        batch = to_batch(items, positions, schema)
        yield batch
        start += batch.num_rows
        rows = max(1, min(BATCH_ROWS, BATCH_BYTES * batch.num_rows // max(1, batch.nbytes)))
