"""The two ends of a pipeline's query: a queue as its source, and how often it runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from queueduct.spark.read.spool import beside

__all__ = ["read_stream", "start"]


def read_stream(
    spark: SparkSession, queue: str, checkpoint: str | Path, options: Mapping[str, str | int] | None
) -> DataFrame:
    """The queue's items. A spool, if the queue needs one, lies beside the checkpoint."""
    given = {**beside(checkpoint), "checkpointLocation": str(checkpoint), **(options or {}), "queue": queue}
    return spark.readStream.format("queueduct").options(**given).load()


def start(
    writer: DataStreamWriter, checkpoint: str | Path, *, available_now: bool, interval: str | None
) -> StreamingQuery:
    writer = writer.option("checkpointLocation", str(checkpoint))
    if available_now:
        writer = writer.trigger(availableNow=True)
    elif interval is not None:
        writer = writer.trigger(processingTime=interval)
    return writer.start()
