"""Archive a queue: every item to Parquet, exactly once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from queueduct.spark.pipelines.lake import claim
from queueduct.spark.pipelines.query import read_stream, start

__all__ = ["archive"]


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

    What a queue forgets when it gives it, all but an EventQueue, goes through a spool beside the checkpoint.
    The checkpoint, by default ``_checkpoint`` in that directory, is what a restart goes on from: one for each archive,
    and an archive that was begun with another one is refused, since Spark's file sink would lose batches in it.
    With ``available_now`` the query ends when it has written what was there; else it goes on until it is stopped.
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
