"""The consumers with Spark: the queries of ``queueduct archive`` and ``queueduct aggregate``, in one session."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from queueduct import EventQueue
from queueduct.demo.consumers import Accident, Shown
from queueduct.monitoring.pipelines import PipelineFile
from queueduct.spark.ending import stream_readers
from queueduct.spark.pipelines import aggregate, archive
from queueduct.spark.pipelines.progress import Progress, Told, has_ended

__all__ = ["SETTINGS", "SparkConsumers"]

START_SECONDS = 60.0
FIRST_BATCHES = 12  # in which Java compiles what it runs
AGGREGATES = [
    "min_by(px, sequence) as open",
    "max(px) as high",
    "min(px) as low",
    "max_by(px, sequence) as close",
    "sum(qty) as volume",
    "count(*) as ticks",
]
SETTINGS = {
    "spark__sql__shuffle__partitions": "1",  # eight groups a second
    "spark__sql__streaming__fileSink__log__cleanupDelay": "2h",  # the account reads when each batch was written
}


class Running:
    """A query, and how to start it again."""

    def __init__(self, name: str, start: Callable[[], StreamingQuery], told: Told) -> None:
        self.name = name
        self.start = start
        self.told = told
        self.query = start()
        self.was_killed = False

    def check(self, seconds: float) -> None:
        """Starts the query again if the process that plans it was killed."""
        try:
            has_ended(self.query, seconds)
        except StreamingQueryException:
            if not self.was_killed:
                raise
            self.was_killed = False
            self.query = self.start()


class SparkConsumers:
    """Two queries."""

    def __init__(
        self, spark: SparkSession, ticks: EventQueue, candles: str, out: Path, *, first_batches: int = FIRST_BATCHES
    ) -> None:
        self.spark = spark
        self.ticks = ticks
        self.candles = candles
        self.out = out
        self.first_batches = first_batches
        self.progress = Progress(spark)
        self.running: list[Running] = []
        self.planners: list[int] = []
        """The processes that plan the archive: one."""

    def start(self) -> None:
        for name, start, target in (
            ("archive", self.archive, str(self.out / "archive")),
            ("candles", self.aggregate, self.candles),
        ):
            title = f"{'archive' if name == 'archive' else 'aggregate'} {self.ticks.name} to {target}"
            is_queue = target == self.candles
            told = Told(
                PipelineFile(
                    Path(self.ticks.directory or "."),
                    str(self.ticks.name),
                    title,
                    target,
                    target if is_queue else None,
                    self.out / "state" / name,
                )
            )
            self.running.append(Running(f"Spark: {name}", start, told))
            deadline = time.monotonic() + START_SECONDS
            while len(self.ticks.readers()) < len(self.running) and time.monotonic() < deadline:
                self.running[-1].check(0.05)
            self.planners = self.planners or stream_readers()

    def archive(self) -> StreamingQuery:
        return archive(
            self.spark,
            str(self.ticks.name),
            self.out / "archive",
            checkpoint=self.out / "state" / "archive",
            options={"reader": "archive"},
        )

    def aggregate(self) -> StreamingQuery:
        return aggregate(
            self.spark,
            str(self.ticks.name),
            self.candles,
            window="1s",
            by=["sym"],
            aggregates=AGGREGATES,
            watermark="1s",
            checkpoint=self.out / "state" / "candles",
            options={"reader": "candles"},
        )

    def is_warm(self) -> bool:
        return all(len(self.progress.batches(running.query)) >= self.first_batches for running in self.running)

    def check(self, seconds: float) -> None:
        for running in self.running:
            running.check(seconds / len(self.running))
            batches = self.progress.batches(running.query)
            if running.told.is_due(batches):
                done = batches[-1].stop if batches else None
                running.told.write(batches, done, max(0, self.ticks.end - (done or 0)))

    def accidents(self) -> list[Accident]:
        return [Accident("the process that plans Spark's archive", self.kill_planner)]

    def kill_planner(self) -> None:
        """Kills the process that reads the queue for a query: the query fails, and is started again."""
        self.running[0].was_killed = True
        for pid in self.planners:
            os.kill(pid, signal.SIGKILL)

    def shown(self) -> list[Shown]:
        found = []
        for running in self.running:
            batches = self.progress.batches(running.query)
            last = f"{batches[-1].rows:,} in {batches[-1].seconds:.2f} s" if batches else "the first takes longest"
            found.append(Shown(running.name, batches[-1].stop if batches else 0, last))
        return found

    def is_done(self) -> bool:
        return all(map(self.is_at_the_end, self.running))

    def is_at_the_end(self, running: Running) -> bool:
        """Returns true if the query has processed all items of the queue."""
        batches, status = self.progress.batches(running.query), running.query.status
        is_idle = not status["isDataAvailable"] and not status["isTriggerActive"]
        return bool(batches) and batches[-1].stop >= self.ticks.end and is_idle

    def stop(self) -> None:
        for running in self.running:
            running.query.stop()
            running.told.file.end("the demonstration has ended")
        self.progress.close()
