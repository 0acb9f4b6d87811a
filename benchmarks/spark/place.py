"""What all measurements share: one session, one queue of rows, and the same rows as Parquet files."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql.streaming.query import StreamingQuery

import queueduct
from queueduct.spark import session

ROW = np.dtype([("number", "i8"), ("price", "f8"), ("at", "M8[us]")])  # 24 bytes
CHUNK = 1_000_000


class Place:
    """Made once; every run leaves it as it was."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.folder = Path(tempfile.mkdtemp(prefix="queueduct-bench-spark-"))
        self.spark: SparkSession = session("local[*]", name="bench")
        self.queue = queueduct.EventQueue.create("bench-rows", item=ROW, max_bytes=rows * ROW.itemsize * 2 + (64 << 20))
        self.names = iter(range(1_000_000))
        for start in range(0, rows, CHUNK):
            self.queue.put_many(some_rows(start, min(start + CHUNK, rows)))
        self.parquet = str(self.folder / "rows.parquet")
        positions = functions.col("number").alias("position")  # as the source has it: the same rows, column by column
        self.made_rows().select("*", positions).write.parquet(self.parquet)

    def made_rows(self) -> DataFrame:
        """The same rows, made by Spark."""
        number = functions.col("id")
        return self.spark.range(self.rows).select(
            number.alias("number"),
            (number / 4).alias("price"),
            functions.timestamp_micros(number).alias("at"),
        )

    def new_folder(self) -> str:
        return str(self.folder / f"run-{next(self.names)}")

    def close(self) -> None:
        self.queue.unlink()
        self.queue.close()
        self.spark.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def some_rows(start: int, stop: int) -> np.ndarray:
    rows = np.zeros(stop - start, ROW)
    rows["number"] = np.arange(start, stop)
    rows["price"] = rows["number"] / 4
    rows["at"] = rows["number"].astype("M8[us]")
    return rows


def seconds_of(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def stream_to_noop(place: Place, rows: DataFrame) -> float:
    """Rows a second of an available-now query, as Spark itself timed its batches: the start of a query is not in it."""
    writer = rows.writeStream.format("noop").option("checkpointLocation", place.new_folder())
    return rate_of(place, writer.trigger(availableNow=True).start())


def rate_of(place: Place, query: StreamingQuery) -> float:
    """The same of a query that was started."""
    query.awaitTermination()
    done = [progress for progress in query.recentProgress if progress.numInputRows]
    count = sum(progress.numInputRows for progress in done)
    seconds = sum(progress.durationMs["addBatch"] for progress in done) / 1e3
    if count != place.rows:
        raise AssertionError(f"{place.rows:,} rows were there, {count:,} came")
    return count / seconds
