"""See a query through: show how it goes, end it when its queue has ended or somebody presses Ctrl-C, and sum up."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypeVar

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console
from rich.live import Live
from rich.table import Table

from penstock import PenstockError
from penstock.spark.address import Address
from penstock.spark.progress import Batch, Progress, has_ended
from penstock.spark.spool import backlog_of
from penstock.spark.starting import session

__all__ = ["QueryFailed", "Summary", "cause", "noted_interrupts", "run", "started_spark"]

Result = TypeVar("Result")

LOOK_SECONDS = 0.25
SAY_SECONDS = 5.0  # between lines where there is no terminal


class QueryFailed(PenstockError):
    """A query has ended with an error; the message is its cause, without the stack of Spark around it."""


@dataclass
class Summary:
    """What a query has done."""

    queue: str
    rows: int
    batches: int
    seconds: float
    rows_per_second: float
    position: int
    """Up to here everything is done."""
    lag: int
    """Items that were put since."""
    reader: str
    ended: str
    """Why: the queue was shut down, everything was done, or somebody stopped it."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@contextlib.contextmanager
def started_spark(master: str, console: Console) -> Iterator[SparkSession]:
    """A session, with something to look at while it starts."""
    with console.status("starting Spark: about ten seconds"):
        spark = session(master)
    try:
        yield spark
    finally:
        spark.stop()


def run(
    spark: SparkSession,
    start: Callable[[], StreamingQuery],
    address: Address,
    title: str,
    console: Console,
    spool_dir: str | None = None,
) -> Summary:
    """Start the query and stay until its end."""
    progress = Progress(spark)
    with address.open() as queue:
        backlog = backlog_of(queue, address, spool_dir)
        with console.status("planning the query"):
            query = failing_clearly(start)
        began = time.monotonic()
        try:
            ended = failing_clearly(lambda: watch(View(query, queue, progress, backlog), title, console))
        finally:
            query.stop()
        view = View(query, queue, progress, backlog)
        progress.settled(query)
        progress.close()
        return summed_up(view, time.monotonic() - began, ended)


class View(NamedTuple):
    """A query, its queue, and what is known of both."""

    query: StreamingQuery
    queue: Any
    progress: Progress
    backlog: Callable[[int | None], int]

    @property
    def batches(self) -> list[Batch]:
        return self.progress.batches(self.query)

    @property
    def rows(self) -> int:
        return sum(batch.rows for batch in self.batches)

    @property
    def lag(self) -> int:
        return self.backlog(self.batches[-1].stop if self.batches else None)

    @property
    def is_done(self) -> bool:
        """Has the last batch been committed, and is nothing left?"""
        if self.lag > 0:  # asked first: what is on its way from a queue to its spool is so in an active trigger
            return False
        status = self.query.status
        return not status["isDataAvailable"] and not status["isTriggerActive"]


def watch(view: View, title: str, console: Console) -> str:
    """Until the query ends, the queue has ended, or Ctrl-C."""
    began = said = time.monotonic()
    with noted_interrupts() as interrupted, Live(console=console, refresh_per_second=4, transient=True) as live:
        while not has_ended(view.query, LOOK_SECONDS):
            now = time.monotonic()
            live.update(picture(view, title, now - began))
            if not console.is_terminal and now - said > SAY_SECONDS:
                said = now
                console.print(f"{title}: {view.rows:,} rows, {view.lag:,} to go")
            if interrupted.is_set():
                return "stopped"
            if view.queue.stats().is_shut_down and view.is_done:
                return "the queue was shut down, and everything in it is done"
    return "everything that was there is done"


@contextlib.contextmanager
def noted_interrupts() -> Iterator[threading.Event]:
    """Ctrl-C only sets the event: Spark's own handler would speak to Java in the middle of another talk with it."""
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return
    before = signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


def picture(view: View, title: str, elapsed: float) -> Table:
    table = Table(title=f"{title}: {elapsed:.0f} s, Ctrl-C ends it", title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_row("rows", f"{view.rows:,}")
    table.add_row("rows a second", f"{view.rows / max(elapsed, 0.1):,.0f}")
    table.add_row("waiting in the queue", f"{view.lag:,}")
    last = view.batches[-1] if view.batches else None
    table.add_row("last batch", f"{last.rows:,} rows in {last.seconds:.2f} s" if last else "none yet")
    return table


def summed_up(view: View, seconds: float, ended: str) -> Summary:
    last = view.batches[-1] if view.batches else None
    return Summary(
        queue=str(view.queue.name),
        rows=view.rows,
        batches=len(view.batches),
        seconds=round(seconds, 3),
        rows_per_second=round(view.rows / max(seconds, 1e-9), 1),
        position=last.stop if last else 0,
        lag=view.lag,
        reader=last.reader if last else "",
        ended=ended,
    )


def failing_clearly(work: Callable[[], Result]) -> Result:
    """Spark's error with the stacks of two languages becomes the line that says why."""
    try:
        return work()
    except Exception as error:
        if isinstance(error, StreamingQueryException) or type(error).__module__.startswith("pyspark"):
            raise QueryFailed(cause(str(error))) from error
        raise


def cause(text: str) -> str:
    """The line of the last Python error in a message of Spark's, or its first line."""
    before, found, after = text.rpartition("Traceback (most recent call last):")
    if not found:
        return text.partition("\n")[0]
    for line in after.splitlines():
        if line and not line.startswith(" "):  # the frames are indented, and the error is not
            name, _, rest = line.partition(": ")
            return rest if name.startswith("penstock.") else f"{name.rpartition('.')[2]}: {rest}"
    return before.partition("\n")[0]
