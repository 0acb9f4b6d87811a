"""The main job, live: producers put ticks into a queue, Spark archives them and makes candles of them.

::

    4 producers ──► EventQueue "ticks" ──► Spark ──► Parquet archive
                                             └─────► EventQueue "candles" ──► shown live

At the end every tick is accounted for, by symbol: what was put, what is in the archive, what is in the candles.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console
from rich.live import Live

from queueduct import EventQueue
from queueduct.demo.check import Account, settle
from queueduct.demo.display import Display, draw_plot, report
from queueduct.demo.ticks import TICK, Producers
from queueduct.spark.ending import at_the_end
from queueduct.spark.pipelines import aggregate, archive
from queueduct.spark.pipelines.progress import Progress, has_ended
from queueduct.spark.pipelines.runner import Interrupts, ending_with_all, noted_interrupts, started_spark

__all__ = ["run"]

QUEUE_BYTES = 64 << 20
OPENING_SECONDS = 60.0
CLOSING_SECONDS = 120.0
AGGREGATES = [
    "min_by(px, sequence) as open",
    "max(px) as high",
    "min(px) as low",
    "max_by(px, sequence) as close",
    "sum(qty) as volume",
    "count(*) as ticks",
]


def run(seconds: float, rate: float, out: Path, console: Console) -> Account:
    """Runs for ``seconds`` at about ``rate`` ticks a second. All its files go to ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    for part in ("archive", "state"):
        shutil.rmtree(out / part, ignore_errors=True)
    with (
        queues() as (ticks, candles),
        started_spark("local[2]", console, spark__sql__shuffle__partitions="2") as spark,
    ):
        demonstration = Demonstration(spark, ticks, candles, out, console)
        with ending_with_all(demonstration.interrupted):
            account = demonstration.run(seconds, rate)
    (out / "summary.json").write_text(json.dumps(account.as_dict(), indent=2) + "\n")
    with console.status("drawing the plot"):
        draw_plot(account, out / "plot.png")
    report(account, out, console)
    return account


@contextlib.contextmanager
def queues() -> Iterator[tuple[EventQueue, str]]:
    """The queue of ticks, and the name of the one of candles, which the aggregate creates."""
    name = f"demo-{os.getpid()}"
    candles = f"{name}-candles"

    def remove() -> None:
        with contextlib.suppress(FileNotFoundError):
            ticks.unlink()
        with contextlib.suppress(FileNotFoundError):
            EventQueue.open(candles).unlink()

    with EventQueue.create(f"{name}-ticks", item=TICK, max_bytes=QUEUE_BYTES) as ticks, at_the_end(remove):
        yield ticks, candles


class Demonstration:
    def __init__(self, spark: SparkSession, ticks: EventQueue, candles: str, out: Path, console: Console) -> None:
        self.spark = spark
        self.ticks = ticks
        self.candles = candles
        self.out = out
        self.console = console
        self.progress = Progress(spark)
        self.interrupted = Interrupts()

    def run(self, seconds: float, rate: float) -> Account:
        producers = Producers(self.ticks, rate)
        with self.console.status("planning two queries: the archive and the candles"):
            queries = self.start_queries()
        with EventQueue.open(self.candles) as candle_queue, candle_queue.subscribe(start="earliest") as candles:
            display = Display(candles, producers, self.progress, queries)
            try:
                with self.console.status("Spark does its first batches, which take longest"):
                    producers.start()
                    wait(queries, lambda: all(map(self.progress.batches, queries)), OPENING_SECONDS)
                producers.is_open.value = 1
                display.opened = time.time()
                self.show(display, queries, seconds)
                with self.console.status("the producers have ended: Spark does the rest"):
                    producers.stop()
                    self.ticks.shutdown()
                    wait(queries, lambda: all(map(self.is_at_the_end, queries)), CLOSING_SECONDS)
                    display.take_candles()
            finally:
                producers.kill()
                for query in queries:
                    query.stop()
        with self.console.status("accounting for every tick"):
            archived = self.progress.settled(queries[0])
            return settle(self.out / "archive", producers, display, archived)

    def start_queries(self) -> tuple[StreamingQuery, StreamingQuery]:
        """Starts both queries, and waits until they hold the queue: no tick is put before that."""
        name = str(self.ticks.name)
        archiving = archive(
            self.spark,
            name,
            self.out / "archive",
            checkpoint=self.out / "state" / "archive",
            interval="1 second",
            options={"reader": "archive"},
        )
        aggregating = aggregate(
            self.spark,
            name,
            self.candles,
            window="1s",
            by=["sym"],
            aggregates=AGGREGATES,
            watermark="1s",
            checkpoint=self.out / "state" / "candles",
            options={"reader": "candles"},
        )
        wait((archiving, aggregating), lambda: len(self.ticks.readers()) >= 2, OPENING_SECONDS)
        return archiving, aggregating

    def show(self, display: Display, queries: tuple[StreamingQuery, ...], seconds: float) -> None:
        began = time.monotonic()
        live = Live(console=self.console, refresh_per_second=4, transient=True)
        with noted_interrupts(self.interrupted) as interrupted, live:
            while (elapsed := time.monotonic() - began) < seconds and not interrupted.is_set():
                live.update(display.draw(elapsed, seconds))
                display.take_candles()
                for query in queries:
                    has_ended(query, 0.1)
        if interrupted.is_set():
            self.console.print("stopped early; the account follows")

    def is_at_the_end(self, query: StreamingQuery) -> bool:
        """Returns true if the query has processed all items of the queue."""
        batches, status = self.progress.batches(query), query.status
        is_idle = not status["isDataAvailable"] and not status["isTriggerActive"]
        return bool(batches) and batches[-1].stop >= self.ticks.end and is_idle


def wait(queries: tuple[StreamingQuery, ...], is_over: Callable[[], bool], seconds: float) -> None:
    """Waits at most that long. Raises the error that has ended a query."""
    deadline = time.monotonic() + seconds
    while not is_over() and time.monotonic() < deadline:
        for query in queries:
            has_ended(query, 0.05)
