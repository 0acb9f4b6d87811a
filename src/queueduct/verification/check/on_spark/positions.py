"""The ticket check on Spark: a second scan, one bucket of positions at a time; the first scan told of the others."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from queueduct.verification.check.on_spark.buckets import bucket_of
from queueduct.verification.check.operations import NEVER, PUT, Finding, Rows
from queueduct.verification.check.positions import log, queue
from queueduct.verification.check.positions.boundaries import SHIFTED, Carry, Shape
from queueduct.verification.check.positions.sides import First, Found, Hole, Judgement
from queueduct.verification.check.unique_values import Range, ranges_of

__all__ = ["judged_by_ticket"]

FOUND = pa.schema([("what", pa.string()), ("body", pa.string())])


def judged_by_ticket(
    rows: DataFrame, is_log: bool, shape: Shape, carries: dict[int, Carry], partitions: int
) -> tuple[Found, list[Range]]:
    """What is wrong, and in which ranges the values are.

    ``rows`` are those that have a ticket, without the killed and the redelivered ones.
    """
    capacity = shape.capacity
    ticket = fn.col("ticket")
    buckets = fn.array(bucket_of(ticket, shape.width))
    if capacity is not None:
        shifted = bucket_of(ticket + capacity, shape.width)
        own = bucket_of(ticket, shape.width)
        is_twice = fn.col("code").isin(*SHIFTED) & (own != shifted) & (shifted <= shape.buckets[-1])
        buckets = fn.when(is_twice, fn.array(own, shifted)).otherwise(fn.array(own))
    keyed = rows.select(
        fn.explode(buckets).alias("bucket"),
        fn.col("code").cast("byte").alias("code"),
        "ticket",
        fn.coalesce("value", fn.lit(-1)).alias("value"),
        fn.col("invoke_ns").alias("invoke"),
        fn.coalesce("return_ns", fn.lit(NEVER)).alias("ret"),
        "worker",
        fn.coalesce("reader", fn.lit(-1)).alias("reader"),
    )
    judge = judge_of_bucket(is_log, shape, carries)
    found = (
        keyed.repartition(min(partitions, max(1, len(carries))), "bucket")
        .groupBy("bucket")
        .applyInArrow(judge, "what string, body string")
    )
    lines = [(row["what"], row["body"]) for row in found.collect()]
    return decoded(lines), [tuple(pair) for what, body in lines if what == "ranges" for pair in json.loads(body)]


def judge_of_bucket(
    is_log: bool, shape: Shape, carries: dict[int, Carry]
) -> Callable[[tuple[Any, ...], pa.Table], pa.Table]:
    def judge(key: tuple[Any, ...], table: pa.Table) -> pa.Table:
        bucket = int(key[0].as_py())
        rows = Rows.of({name: table.column(name).to_numpy() for name in Rows.COLUMNS})
        module = log if is_log else queue
        lines = encoded(module.judge(rows, bucket, carries[bucket], shape))
        lines.append(("ranges", json.dumps(ranges_of(rows.value[rows.code == PUT]))))
        return pa.table([[line[0] for line in lines], [line[1] for line in lines]], schema=FOUND)

    return judge


def encoded(judged: Judgement) -> list[tuple[str, str]]:
    """For the way to the driver."""
    lines = [("finding", json.dumps(finding)) for finding in judged.findings.rows()]
    lines += [("hole", json.dumps(hole)) for hole in judged.holes]
    return lines + [("first", json.dumps(first)) for first in judged.firsts]


def decoded(lines: Sequence[tuple[str, str]]) -> Found:
    bodies = [(what, json.loads(body)) for what, body in lines]
    return (
        [Finding(*body) for what, body in bodies if what == "finding"],
        [Hole(*body) for what, body in bodies if what == "hole"],
        [First(*body) for what, body in bodies if what == "first"],
    )
