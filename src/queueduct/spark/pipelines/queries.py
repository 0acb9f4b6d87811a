"""Start a pipeline's query. ``archive``: every item to Parquet. ``aggregate``: windows of event time to another queue.

Either does so exactly once. A window is closed by a watermark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import Column, DataFrame, SparkSession, functions
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from queueduct import EventQueue
from queueduct.spark.address import Address
from queueduct.spark.convert.schema import record_dtype
from queueduct.spark.pipelines.lake import claim
from queueduct.spark.read.spool import beside
from queueduct.spark.times import duration, event_time

__all__ = ["aggregate", "archive", "duration"]


def archive(
    spark: SparkSession,
    queue: str,
    to: str | Path,
    *,
    checkpoint: str | Path | None = None,
    available_now: bool = False,
    interval: str | None = None,
    partition_by: Sequence[str] = (),
    options: Mapping[str, str | int] | None = None,
) -> StreamingQuery:
    """Start a query that writes the queue's items to Parquet files in the directory ``to``, each exactly once.

    Items of any queue but an EventQueue go through a spool beside the checkpoint, since a get removes them.
    A restart goes on from the checkpoint, by default ``_checkpoint`` in that directory. Each archive needs its own: one
    that was begun with another checkpoint is refused, since Spark's file sink would lose batches in it.
    With ``available_now`` the query ends when it has written the items of its start; else it runs until it is stopped.
    ``interval``, as in "10 seconds", makes fewer and larger files. ``options`` are those of the source.
    """
    where = checkpoint or Path(to, "_checkpoint")
    rows = read_stream(spark, queue, where, options)
    unknown = [column for column in partition_by if column not in rows.columns]
    if unknown:
        raise ValueError(
            f"partition_by must name columns of the queue: {', '.join(unknown)}; it has {', '.join(rows.columns)}"
        )
    claim(spark, to, where)
    writer = rows.writeStream.format("parquet").queryName(f"archive {queue}").option("path", str(to))
    if partition_by:
        writer = writer.partitionBy(*partition_by)
    return start(writer, where, available_now=available_now, interval=interval)


def aggregate(
    spark: SparkSession,
    queue: str,
    to: str,
    *,
    window: str,
    aggregates: Sequence[str],
    by: Sequence[str] = (),
    time: str | None = None,
    watermark: str = "1s",
    checkpoint: str | Path,
    available_now: bool = False,
    interval: str | None = None,
    options: Mapping[str, str | int] | None = None,
    timeout: float | None = None,
) -> StreamingQuery:
    """Start a query that puts one record for each window and group into the queue ``to``, each exactly once.

    ``window`` and ``watermark`` are durations such as "1s" or "500ms"; ``aggregates`` are SQL, as in
    "max(px) as high"; ``time`` is the event time, by default the record's only field of type M8. A window is put when
    an item has come that is ``watermark`` later than its end; items of the window that come after that are left out.
    The records are {start, the fields of ``by``, the aggregates}; a queue that is not there is created for them.
    """
    directory = str(options["directory"]) if options and "directory" in options else None
    item = record_of(Address(queue, directory))
    rows = read_stream(spark, queue, checkpoint, options)
    windows = windowed(rows, event_time(item, time), duration(window), duration(watermark), by, aggregates)
    EventQueue.create(to, item=record_dtype(windows.schema, item), directory=directory, exist_ok=True).close()
    target = {"queue": to, "directory": directory, "timeout": timeout}
    given = {option: value for option, value in target.items() if value is not None}
    writer = windows.writeStream.format("queueduct").queryName(f"aggregate {queue}").outputMode("append")
    return start(writer.options(**given), checkpoint, available_now=available_now, interval=interval)


def windowed(
    rows: DataFrame, time: str, window: str, watermark: str, by: Sequence[str], aggregates: Sequence[str]
) -> DataFrame:
    """Returns one row for each window and group."""
    if not aggregates:
        raise ValueError("there must be something to compute: aggregates is empty; give one, as in 'max(px)'")
    grouped = rows.withWatermark(time, watermark).groupBy(functions.window(time, window).alias("window"), *by)
    results = grouped.agg(*(named(text) for text in aggregates))
    return results.select(functions.col("window.start").alias("start"), *results.columns[1:])


def named(text: str) -> Column:
    """Returns an aggregate as a column with a name that a field can have: ``max(px)`` is max_px."""
    if re.search(r"\sas\s+\w+\s*$", text, re.IGNORECASE):
        return functions.expr(text)
    return functions.expr(text).alias(re.sub(r"\W+", "_", text).strip("_").lower())


def record_of(address: Address) -> np.dtype[Any]:
    with address.open() as queue:
        item = queue.item
    if not isinstance(item, np.dtype) or item.names is None:
        raise TypeError(f"only records can be aggregated: the queue {address.name!r} has items of {item}")
    return item


def read_stream(
    spark: SparkSession, queue: str, checkpoint: str | Path, options: Mapping[str, str | int] | None
) -> DataFrame:
    """Returns the queue's items as a stream. A spool, if the queue needs one, is beside the checkpoint."""
    given = {**beside(checkpoint), "checkpointLocation": str(checkpoint), **(options or {}), "queue": queue}
    return spark.readStream.format("queueduct").options(**given).load()


def start(
    writer: DataStreamWriter, checkpoint: str | Path, *, available_now: bool, interval: str | None
) -> StreamingQuery:
    writer = writer.option("checkpointLocation", str(checkpoint))
    if available_now:
        writer = writer.trigger(availableNow=True)
    elif interval is not None:
        writer = writer.trigger(processingTime=duration(interval))
    return writer.start()
