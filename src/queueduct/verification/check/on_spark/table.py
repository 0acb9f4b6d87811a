"""A history of any length: the rows as a DataFrame, and what must be asked of them, asked by Spark."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from queueduct.verification.check.counts import Counts
from queueduct.verification.check.on_spark.buckets import bucket_of
from queueduct.verification.check.on_spark.positions import judged_by_ticket
from queueduct.verification.check.on_spark.times import judged_by_time
from queueduct.verification.check.operations import (
    EMPTY,
    FULL,
    GET,
    KILLED_GET,
    KILLED_PUT,
    PUT,
    REDELIVERED,
    WEAK_EMPTY,
    WEAK_FULL,
    Finding,
    Longs,
)
from queueduct.verification.check.positions.boundaries import Carry, Shape
from queueduct.verification.check.positions.sides import Found
from queueduct.verification.check.unique_values import Range, meetings, repeated
from queueduct.verification.check.witnesses import Row, Wanted
from queueduct.verification.history.format import COLUMNS, FARTHEST, OPTIONAL, Files, History
from queueduct.verification.history.reader import SPARK_SCHEMA, read_parts

__all__ = ["OnSpark"]

LOOKED_UP = 100_000
VALUES_A_TASK = 1 << 22
MOST_MEETINGS = 100


def load(spark: SparkSession, history: History) -> DataFrame:
    """One row an operation, with the types of the record; tickets count from the first."""
    parts = [read_by_spark(spark, files) for files in history.files if files.spark_types is not None]
    others = [files for files in history.files if files.spark_types is None]
    if others:
        parts.append(read_by_arrow(spark, others))
    rows = functools.reduce(DataFrame.unionByName, parts)
    for flag in ("redelivered", "weak", "torn"):
        rows = rows.withColumn(flag, fn.coalesce(fn.col(flag), fn.lit(False)))
    if history.first_ticket:
        ticket = fn.col("ticket")
        moved = fn.when(ticket.isNotNull(), fn.greatest(ticket, fn.lit(-FARTHEST)) - history.first_ticket)
        rows = rows.withColumn("ticket", moved)
    if history.kind != "events":
        rows = rows.withColumn("reader", fn.lit(None).cast("long"))
    return rows


def read_by_spark(spark: SparkSession, files: Files) -> DataFrame:
    """Only the columns of the record: Spark cannot read others of any type, and need not."""
    assert files.spark_types is not None
    schema = ", ".join(f"{name} {kind}" for name, kind in files.spark_types.items())
    columns = [
        (fn.lit(None) if name in files.untyped else fn.col(name)).cast(kind).alias(name)
        for name, kind in (COLUMNS | OPTIONAL).items()
    ]
    return spark.read.schema(schema).parquet(*map(literal, files.paths)).select(*columns)


def literal(path: str) -> str:
    """A path that Spark takes as it is: neither a pattern, nor on another file system."""
    return "file:" + re.sub(r"([\\*?\[\]{}])", r"\\\1", path)


def read_by_arrow(spark: SparkSession, groups: Sequence[Files]) -> DataFrame:
    """Half as fast again as Spark's own reader, but the same reader as in one piece; a task a file."""
    listed = [(path, files.untyped) for files in groups for path in files.paths]

    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from read_parts(*listed[number])

    return spark.range(0, len(listed), 1, len(listed)).mapInArrow(read, SPARK_SCHEMA)


def code() -> Column:
    op, outcome, weak = fn.col("op"), fn.col("outcome"), fn.col("weak")
    return (
        fn.when((op == "put") & (outcome == "ok"), PUT)
        .when((op == "get") & (outcome == "ok") & fn.col("redelivered"), REDELIVERED)
        .when((op == "get") & (outcome == "ok"), GET)
        .when((outcome == "empty") & ~weak, EMPTY)
        .when(outcome == "empty", WEAK_EMPTY)
        .when((outcome == "full") & ~weak, FULL)
        .when(outcome == "full", WEAK_FULL)
        .when(op == "put", KILLED_PUT)
        .otherwise(KILLED_GET)
        .cast("int")
    )


class OnSpark:
    """The rows, wherever they are."""

    def __init__(self, spark: SparkSession, history: History) -> None:
        self.history = history
        self.rows = load(spark, history).withColumn("code", code())
        self.is_crowded = False
        """Has a bucket more answers than positions? Somebody asked in vain, all the time."""
        self.ranges: list[Range] = []
        """Of the values that were put, as the buckets of positions have them."""
        self.partitions = max(2, spark.sparkContext.defaultParallelism * 2)

    def groups(self, width: int) -> list[Row]:
        capacity = self.history.capacity or 0 if self.history.kind != "events" else 0
        by_reader = fn.col("reader") if self.history.kind == "events" else fn.lit(None).cast("long")
        found = self.rows.groupBy(
            "op",
            "outcome",
            "redelivered",
            "weak",
            by_reader.alias("reader_key"),
            bucket_of(fn.col("ticket"), width).alias("bucket"),
            bucket_of(fn.least("ticket", fn.lit(FARTHEST)) + capacity, width).alias("shifted"),
        ).agg(
            fn.count("*").alias("rows"),
            fn.count("value").alias("values"),
            fn.count("return_ns").alias("returns"),
            fn.count("invoke_ns").alias("invokes"),
            fn.count("worker").alias("workers"),
            fn.count(fn.when(fn.col("return_ns") < fn.col("invoke_ns"), 1)).alias("backwards"),
            fn.max(fn.when(fn.col("return_ns") < fn.col("invoke_ns"), fn.col("worker"))).alias("backwards_worker"),
            fn.count(fn.when(fn.col("torn"), 1)).alias("torn"),
            fn.min("ticket").alias("first"),
            fn.max("ticket").alias("last"),
            fn.max("invoke_ns").alias("invoke"),
            fn.min("invoke_ns").alias("first_invoke"),
            fn.min("return_ns").alias("ret"),
            fn.max("return_ns").alias("last_return"),
        )
        groups = [group.asDict() for group in found.collect()]
        answers = [group for group in groups if group["outcome"] in ("empty", "full")]
        self.is_crowded = any(group["rows"] > width for group in answers)
        return groups

    def lookup(self, wanted: Wanted) -> list[Row]:
        condition = fn.lit(False)
        for column, values in wanted.items():
            condition = condition | fn.col(column).isin(*values)
        return self.listed(condition, LOOKED_UP)

    def examples(self, what: str, most: int) -> list[Row]:
        conditions = {
            "torn": fn.col("torn"),
            "full": fn.col("outcome") == "full",
            "negative": fn.col("ticket") < 0,
            "beyond": fn.col("ticket") >= FARTHEST,
        }
        return self.listed(conditions[what], most)

    def specials(self) -> list[Row]:
        return [row.asDict() for row in self.rows.filter(fn.col("code") > WEAK_FULL).collect()]

    def listed(self, condition: Column, most: int) -> list[Row]:
        return [row.asDict() for row in self.rows.filter(condition).limit(most).collect()]

    def judge_tickets(self, shape: Shape, carries: dict[int, Carry]) -> Found:
        rows = self.rows.filter((fn.col("code") <= WEAK_FULL) & fn.col("ticket").isNotNull())
        if shape.capacity is None:
            rows = rows.filter(~fn.col("code").isin(FULL, WEAK_FULL))
        if self.is_crowded:
            rows = rows.filter(fn.col("code").isin(PUT, GET)).unionByName(extremes(rows))
        is_log = self.history.kind == "events"
        found, self.ranges = judged_by_ticket(rows, is_log, shape, carries, self.partitions)
        return found

    def value_put_twice(self, killed: Sequence[int]) -> int | None:
        """Each value that may be goes to the partition of its hash, where few are; those are sorted."""
        found = meetings([*self.ranges, *((value, value) for value in killed)])
        if not found:
            return None
        values = self.rows.filter(fn.col("code").isin(PUT, KILLED_PUT)).select("value")
        if len(found) <= MOST_MEETINGS:
            values = values.filter(functools.reduce(Column.__or__, (fn.col("value").between(*pair) for pair in found)))
        spread = values.repartition(max(self.partitions, -(-self.history.operations // VALUES_A_TASK)), "value")
        doubled = spread.mapInArrow(doubled_of, "value long").agg(fn.min("value")).collect()[0][0]
        return None if doubled is None else int(doubled)

    def judge_times(self, counts: Counts, width: int, progress: Callable[[str], None]) -> list[Finding]:
        return judged_by_time(self.rows, self.history, counts, width, self.partitions, progress)


def extremes(rows: DataFrame) -> DataFrame:
    """Of all answers at a position only the one that was invoked last and the one that returned first can be wrong."""
    order = [name for name in rows.columns if name not in ("invoke_ns", "return_ns")]
    by_invoke = fn.struct("invoke_ns", "return_ns", *order)
    by_return = fn.struct("return_ns", "invoke_ns", *order)
    answers = rows.filter(~fn.col("code").isin(PUT, GET)).groupBy("code", "ticket", "reader")
    found = answers.agg(fn.max(by_invoke).alias("last"), fn.min(by_return).alias("first"))
    last = found.select(*(fn.col(f"last.{name}").alias(name) for name in rows.columns))
    first = found.select(*(fn.col(f"first.{name}").alias(name) for name in rows.columns))
    return last.unionByName(first).distinct()


def doubled_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A value that is there twice, if one is; stops at the first, however many there are."""
    seen: list[Longs] = []
    for batch in batches:
        seen.append(batch.column(0).to_numpy())
        if (doubled := repeated(seen[-1])) is not None:
            break
    else:
        doubled = repeated(np.concatenate(seen)) if seen else None
    if doubled is not None:
        yield pa.RecordBatch.from_pydict({"value": [doubled]})
