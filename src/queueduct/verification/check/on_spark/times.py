"""The order check on Spark: puts and gets are paired by their values, then judged one bucket of time at a time.

Buckets of time are made of small bins of equal length, as many together as hold about so many rows: a burst makes short
buckets. Where they begin is counted, not sampled, so that every pass sees the same ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.storagelevel import StorageLevel

from queueduct.verification.check.counts import Counts
from queueduct.verification.check.on_spark.pairs import bad_pairs, pairs_of, with_unseen_gets
from queueduct.verification.check.operations import EMPTY, FULL, NEVER, START, Finding
from queueduct.verification.check.times.full_answers import Filling, FillingJudgement, false_full, judge_filling
from queueduct.verification.check.times.order import (
    Answer,
    Moments,
    OrderCarry,
    OrderJudgement,
    false_empty,
    judge_order,
)
from queueduct.verification.history.format import LIMITED, History

__all__ = ["judged_by_time"]

AT_PUT, AT_QUEUED, AT_TAKEN, AT_EMPTY, AT_HELD, AT_GONE, AT_FULL = range(7)
BINS_A_BUCKET = 32
MOST_BINS = 1 << 14
FOUND = pa.schema([("what", pa.string()), ("body", pa.string())])


class Bin(NamedTuple):
    """The moments of one sort in one bin of time, of one reader."""

    reader: int
    bin: int
    sort: int
    rows: int
    soonest: int
    soonest_value: int
    latest: int
    latest_value: int
    intervals: int
    """Of those at AT_QUEUED: how many are got later."""


def judged_by_time(
    rows: DataFrame, history: History, counts: Counts, width: int, partitions: int, progress: Callable[[str], None]
) -> list[Finding]:
    progress("pairing puts and gets by their values")
    pairs = pairs_of(rows, history, counts, partitions).persist(StorageLevel.DISK_ONLY)
    try:
        found = bad_pairs(pairs)
        kept = with_unseen_gets(pairs, rows, history, counts)
        capacity = history.capacity if history.kind in LIMITED or history.kind == "growing" else None
        moments = moments_of(kept, rows, capacity)
        if capacity is not None and counts.of_code.get(FULL, 0):
            moments = moments.unionByName(filling_of(pairs, rows))
        progress("the extremes of every bucket of time")
        total = 3 * counts.operations
        number = min(MOST_BINS, -(-total // width) * BINS_A_BUCKET) if total > width else 1
        length = max(1, -(-(counts.last_time - counts.first_invoke + 1) // max(1, number)))
        binned = moments.withColumn("bin", bin_of(fn.col("time"), counts.first_invoke, length))
        bins = bins_of(binned)
        progress("the conditions of every bucket of time")
        return found + judged_on_spark(binned, bins, counts.first_invoke, length, width, partitions, capacity)
    finally:
        pairs.unpersist()


def bin_of(time: Column, first: int, length: int) -> Column:
    return ((time - first - fn.pmod(time - first, fn.lit(length))) / fn.lit(length)).cast("long")


def moments_of(pairs: DataFrame, rows: DataFrame, capacity: int | None) -> DataFrame:
    listed = [
        fn.when(fn.col("puts") > 0, moment("ie", AT_PUT, "rd")),
        fn.when(fn.col("re") < NEVER, moment("re", AT_QUEUED, "id")),
    ]
    if capacity is not None:
        listed.append(fn.when((fn.col("re") < fn.col("id")) & (fn.col("id") < NEVER), moment("id", AT_TAKEN, "id")))
    return exploded(pairs, listed).unionByName(answers_of(rows, EMPTY, AT_EMPTY))


def filling_of(pairs: DataFrame, rows: DataFrame) -> DataFrame:
    """What was redelivered may be there as long as anybody knows."""
    is_gone = (fn.col("rd") < NEVER) & (fn.col("again") == 0)
    listed = [moment("ie", AT_HELD, "ie"), fn.when(is_gone, moment("rd", AT_GONE, "rd"))]
    return exploded(pairs.filter(fn.col("puts") > 0), listed).unionByName(answers_of(rows, FULL, AT_FULL))


def moment(time: str, sort: int, other: str) -> Column:
    return fn.struct(fn.col(time).alias("time"), fn.lit(sort).cast("byte").alias("sort"), fn.col(other).alias("other"))


def exploded(pairs: DataFrame, listed: list[Column]) -> DataFrame:
    """Those of the listed moments that a pair has."""
    there = fn.filter(fn.array(*listed), lambda each: each.isNotNull())
    found = pairs.select("reader", "value", fn.explode(there).alias("m"))
    return found.select("reader", "value", "m.time", "m.sort", "m.other")


def answers_of(rows: DataFrame, code: int, sort: int) -> DataFrame:
    return rows.filter(fn.col("code") == code).select(
        fn.coalesce("reader", fn.lit(-1)).alias("reader"),
        fn.lit(0).cast("long").alias("value"),
        fn.col("return_ns").alias("time"),
        fn.lit(sort).cast("byte").alias("sort"),
        fn.col("invoke_ns").alias("other"),
    )


def bins_of(moments: DataFrame) -> list[Bin]:
    is_interval = fn.col("time") < fn.col("other")
    later = fn.when(is_interval | (fn.col("sort") == AT_EMPTY), fn.col("other"))
    grouped = moments.groupBy("reader", "bin", "sort").agg(
        fn.count("*").alias("rows"),
        fn.min("other").alias("soonest"),
        fn.min_by("value", "other").alias("soonest_value"),
        fn.max(later).alias("latest"),
        fn.max_by("value", later).alias("latest_value"),
        fn.count(fn.when(is_interval, 1)).alias("intervals"),
    )
    return [Bin(*(START if row[name] is None else int(row[name]) for name in Bin._fields)) for row in grouped.collect()]


def buckets_of(bins: Sequence[Bin], width: int) -> dict[int, int]:
    """Each bin's bucket: so many bins together that they have about ``width`` rows, of all readers."""
    sizes: dict[int, int] = {}
    for each in bins:
        sizes[each.bin] = sizes.get(each.bin, 0) + each.rows
    found: dict[int, int] = {}
    bucket = filled = 0
    for number in sorted(sizes):
        if filled and filled + sizes[number] > width:
            bucket, filled = bucket + 1, 0
        found[number] = bucket
        filled += sizes[number]
    return found


def carries_of(bins: Sequence[Bin], buckets: dict[int, int]) -> dict[tuple[int, int], OrderCarry]:
    """For each reader and bucket."""
    found: dict[tuple[int, int], OrderCarry] = {}
    number = max(buckets.values(), default=0) + 1
    for reader in {each.reader for each in bins}:
        mine = [each for each in bins if each.reader == reader]
        got = [(NEVER, 0)] * (number + 1)
        taken = [(START, 0)] * (number + 1)
        inside, held = np.zeros((2, number + 1), np.int64)
        last_empty = START
        for each in mine:
            bucket = buckets[each.bin]
            if each.sort == AT_PUT:
                got[bucket] = min(got[bucket], (each.soonest, each.soonest_value))
            elif each.sort == AT_QUEUED:
                taken[bucket + 1] = max(taken[bucket + 1], (each.latest, each.latest_value))
                inside[bucket + 1] += each.intervals
            elif each.sort == AT_TAKEN:
                inside[bucket + 1] -= each.rows
            elif each.sort in (AT_HELD, AT_GONE):
                held[bucket + 1] += each.rows if each.sort == AT_HELD else -each.rows
            elif each.sort == AT_EMPTY:
                last_empty = max(last_empty, each.latest)
        later = list(accumulate(reversed(got), min))[::-1]
        earlier = list(accumulate(taken, max))
        inside, held = np.cumsum(inside), np.cumsum(held)
        for bucket in range(number):
            found[reader, bucket] = OrderCarry(
                *later[bucket + 1],
                *earlier[bucket],
                inside=int(inside[bucket]),
                last_empty=int(last_empty),
                reader=reader,
                held=int(held[bucket]),
            )
    return found


def judged_on_spark(
    moments: DataFrame,
    bins: Sequence[Bin],
    first: int,
    length: int,
    width: int,
    partitions: int,
    capacity: int | None,
) -> list[Finding]:
    buckets = buckets_of(bins, width)
    carries = carries_of(bins, buckets)
    lows: dict[int, int] = {}
    for number, bucket in buckets.items():
        lows[bucket] = min(lows.get(bucket, NEVER), first + number * length)
    if len(lows) > 1:
        spark: SparkSession = moments.sparkSession
        known = fn.broadcast(spark.createDataFrame(list(buckets.items()), "bin long, bucket long"))
        keyed = moments.join(known, "bin")
    else:
        keyed = moments.withColumn("bucket", fn.lit(0).cast("long"))
    judge = judge_of_bucket(carries, lows, capacity)
    found = (
        keyed.select("reader", "bucket", "time", "sort", "other", "value")
        .repartition(min(partitions, max(1, len(carries))), "reader", "bucket")
        .groupBy("reader", "bucket")
        .applyInArrow(judge, "what string, body string")
        .collect()
    )
    return settled([(row["what"], json.loads(row["body"])) for row in found])


def judge_of_bucket(
    carries: dict[tuple[int, int], OrderCarry], lows: dict[int, int], capacity: int | None
) -> Callable[[tuple[Any, ...], pa.Table], pa.Table]:
    def judge(key: tuple[Any, ...], table: pa.Table) -> pa.Table:
        reader, bucket = (int(part.as_py()) for part in key)
        sort = table.column("sort").to_numpy()
        columns = [table.column(name).to_numpy() for name in ("time", "other", "value")]
        moments = moments_in(sort, *columns)
        judged = judge_order(moments, lows[bucket], carries[reader, bucket], capacity)
        lines = encoded(judged, reader, bucket)
        if capacity is not None and (sort >= AT_HELD).any():
            filling = filling_in(sort, *columns[:2])
            lines += encoded_filling(
                judge_filling(filling, lows[bucket], carries[reader, bucket].held, capacity), bucket
            )
        return pa.table([[line[0] for line in lines], [line[1] for line in lines]], schema=FOUND)

    return judge


def moments_in(sort: Any, time: Any, other: Any, value: Any) -> Moments:
    return Moments(
        sort == AT_PUT, sort == AT_QUEUED, sort == AT_TAKEN, sort == AT_EMPTY, np.asarray(time), other, value
    )


def filling_in(sort: Any, time: Any, other: Any) -> Filling:
    return Filling(time[sort == AT_HELD], time[sort == AT_GONE], other[sort == AT_FULL], time[sort == AT_FULL])


def encoded_filling(judged: FillingJudgement, bucket: int) -> list[tuple[str, str]]:
    lines = [("finding", json.dumps(finding)) for finding in judged.findings.rows()]
    lines.append(("last full", json.dumps((bucket, judged.last_full))))
    return lines + [("full", json.dumps((bucket, *answer))) for answer in judged.open_answers]


def encoded(judged: OrderJudgement, reader: int, bucket: int) -> list[tuple[str, str]]:
    lines = [("finding", json.dumps(finding)) for finding in judged.findings.rows()]
    lines.append(("break", json.dumps((reader, bucket, judged.last_break))))
    return lines + [("answer", json.dumps((reader, bucket, *answer))) for answer in judged.open_answers]


def settled(lines: Sequence[tuple[str, Any]]) -> list[Finding]:
    """The findings, with the answers that began in an earlier bucket: was there a moment since that nothing covers?"""
    found = [Finding(*body) for what, body in lines if what == "finding"]
    breaks: dict[int, list[tuple[int, int]]] = {}
    for what, body in lines:
        if what == "break":
            breaks.setdefault(body[0], []).append((body[1], body[2]))
    for what, body in lines:
        if what != "answer":
            continue
        reader, bucket, answer = body[0], body[1], Answer(*body[2:])
        last = max((moment for earlier, moment in breaks.get(reader, ()) if earlier < bucket), default=START)
        if last < answer.invoke:
            found.append(false_empty(answer, reader))
    last_full = [body for what, body in lines if what == "last full"]
    for bucket, invoke, ret in [body for what, body in lines if what == "full"]:
        if max((moment for earlier, moment in last_full if earlier < bucket), default=START) < invoke:
            found.append(false_full(invoke, ret))
    return found
