"""Runs a query to its end: shows its progress, ends it with its queue or on Ctrl-C, and sums up."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console
from rich.live import Live
from rich.table import Table

from queueduct import QueueductError
from queueduct.monitoring.pipelines import PipelineFile
from queueduct.segments.kinds import kind_of
from queueduct.spark.address import Address
from queueduct.spark.checkpoint import Checkpoint
from queueduct.spark.ending import Interrupts, ending_with_all, in_a_thread, noted_interrupts
from queueduct.spark.pipelines.progress import Batch, Progress, Told, has_ended
from queueduct.spark.read.spool import backlog_of
from queueduct.spark.sessions import session

__all__ = [
    "STOPPED",
    "QueryFailed",
    "Summary",
    "cause",
    "run",
    "started_spark",
]

Result = TypeVar("Result")

POLL_SECONDS = 0.25
ALL_DONE = "everything that was there is done"
STOPPED = "stopped"
SAY_SECONDS = 5.0  # between lines where there is no terminal


class QueryFailed(QueueductError):
    """A query has ended with an error; the message is the cause, without Spark's stack."""


@dataclass
class Summary:
    queue: str
    rows: int
    batches: int
    seconds: float
    rows_per_second: float
    position: int
    """The position up to which everything is done."""
    lag: int
    """Items that are not done, with those put since the start."""
    left: int
    """Items of the start that are not done, for a query that processes only those."""
    passed_over: int
    """Items that count as done although Spark has not read them: its sink took their batches for older ones."""
    reader: str
    ended: str
    """Why it ended: the queue was shut down, everything was done, or it was stopped."""


@contextlib.contextmanager
def started_spark(master: str, console: Console, **settings: str) -> Iterator[SparkSession]:
    """Starts a session, with a spinner."""
    with console.status("starting Spark: about ten seconds"):
        spark = in_a_thread(lambda: session(master, **settings))
        # In Java a session is active in the thread that made it, and sources are looked up in that one.
        classic: Any = spark
        classic._get_j_spark_session_class(classic._jvm).setActiveSession(classic._jsparkSession)
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
    *,
    checkpoint: str | Path | None = None,
    available_now: bool = False,
    target: str = "",
    target_queue: str | None = None,
) -> Summary:
    """Starts the query and waits for its end. Its checkpoint says how far it was before."""
    progress = Progress(spark)
    with address.open() as queue:
        file = PipelineFile(queue.directory, queue.name, title, target, target_queue, checkpoint)
        backlog = backlog_of(queue, address, spool_dir)
        before = Reached.of(spark, checkpoint)
        there = There(int(queue.end) if kind_of(queue).is_log else None, backlog(before.done), before)
        with telling_of_failure(file), console.status("planning the query"):
            query = failing_clearly(start)
        began = time.monotonic()
        view = View(query, queue, progress, backlog, before.done)
        with telling_of_failure(file), noted_interrupts() as interrupted, ending_with_all(interrupted):
            try:
                ended = failing_clearly(lambda: watch(view, title, console, interrupted, Told(file)))
            finally:
                query.stop()
            progress.settled(query)
            progress.close()
            after = Reached.of(spark, checkpoint)
        view = view._replace(known=after.done, began=after.began)
        summary = summed_up(
            view, time.monotonic() - began, ended, there, is_to_do_all=available_now or ended == ALL_DONE
        )
        Told(file).write(view.batches, summary.position, summary.lag)
        file.end(summary.ended)
        return summary


@contextlib.contextmanager
def telling_of_failure(file: PipelineFile) -> Iterator[None]:
    """Tells those who watch the queue that the query has failed."""
    try:
        yield
    except BaseException as error:
        file.end(str(error) or type(error).__name__, is_failure=True)
        raise


class Reached(NamedTuple):
    """How far a query was at its start, by its checkpoint."""

    done: int | None = None
    """The position up to which everything is done."""
    planned: int | None = None
    """The position up to which batches are planned, with the one that Spark repeats."""
    began: int | None = None
    """Where the query began."""

    @classmethod
    def of(cls, spark: SparkSession, checkpoint: str | Path | None) -> Reached:
        found = None if checkpoint is None else Checkpoint(spark, checkpoint)
        return cls() if found is None else cls(found.position(), found.position_after(found.planned), found.began())


class There(NamedTuple):
    """The items that there were at the start."""

    end: int | None
    """For a log, which is read by position."""
    items: int
    before: Reached

    def left(self, view: View) -> int:
        """Returns how many of them are not done. Other consumers may have got some, unless the queue is a log."""
        if self.end is None:
            return min(view.lag, max(0, self.items - view.rows))
        return self.items if view.done is None else max(0, self.end - view.done)

    def passed_over(self, view: View) -> int:
        """Returns how many positions the query has passed without reading them.

        A batch that was planned before may have been written before, too, and then it is not read again.
        """
        began = view.began if self.before.planned is None else self.before.planned
        if self.end is None or began is None or view.done is None:
            return 0
        return max(0, view.done - began - view.rows)


class View(NamedTuple):
    """A query, its queue, and the state of both."""

    query: StreamingQuery
    queue: Any
    progress: Progress
    backlog: Callable[[int | None], int]
    known: int | None
    """The position up to which everything is done, by the last reading of the checkpoint."""
    began: int | None = None
    """Where the query once began."""

    @property
    def done(self) -> int | None:
        """Returns the position up to which everything is done; for a query without a planned batch, where it begins."""
        known = [place for place in (self.known, self.batches[-1].stop if self.batches else None) if place is not None]
        return max(known) if known else self.progress.began(self.query)

    @property
    def batches(self) -> list[Batch]:
        return self.progress.batches(self.query)

    @property
    def rows(self) -> int:
        return sum(batch.rows for batch in self.batches)

    @property
    def lag(self) -> int:
        return self.backlog(self.done)

    @property
    def is_done(self) -> bool:
        """Returns true if the last batch has been committed and nothing is left."""
        if self.lag > 0:  # asked first: items move from a queue to its spool only in an active trigger
            return False
        status = self.query.status
        return not status["isDataAvailable"] and not status["isTriggerActive"]


def watch(view: View, title: str, console: Console, interrupted: Interrupts, told: Told) -> str:
    """Waits until the query ends, the queue has ended, or Ctrl-C."""
    began = said = time.monotonic()
    shown = (-1, -1)
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        while not has_ended(view.query, POLL_SECONDS):
            now = time.monotonic()
            live.update(picture(view, title, now - began))
            if told.is_due(view.batches):
                told.write(view.batches, view.done, view.lag)
            if not console.is_terminal and now - said > SAY_SECONDS:
                said = now
                found = (view.rows, view.lag)
                if found != shown:
                    shown = found
                    console.print(f"{title}: {view.rows:,} rows, {view.lag:,} to go")
            if interrupted.is_set():
                return STOPPED
            if view.queue.stats().is_shut_down and view.is_done:
                return "the queue was shut down, and everything in it is done"
    return ALL_DONE


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


def summed_up(view: View, seconds: float, ended: str, there: There, *, is_to_do_all: bool) -> Summary:
    last = view.batches[-1] if view.batches else None
    left = there.left(view) if is_to_do_all else 0
    passed_over = there.passed_over(view) if ended == ALL_DONE else 0  # a batch that is stopped may not tell its rows
    return Summary(
        queue=str(view.queue.name),
        rows=view.rows,
        batches=len(view.batches),
        seconds=round(seconds, 3),
        rows_per_second=round(view.rows / max(seconds, 1e-9), 1),
        position=view.done or 0,
        lag=view.lag,
        left=left,
        passed_over=passed_over,
        reader=last.reader if last else "",
        ended="it ended before everything that was there was done" if left and ended == ALL_DONE else ended,
    )


def failing_clearly(work: Callable[[], Result]) -> Result:
    """Turns Spark's error, with the stacks of two languages, into the line that says why."""
    try:
        return work()
    except Exception as error:
        if isinstance(error, StreamingQueryException) or type(error).__module__.startswith("pyspark"):
            raise QueryFailed(cause(str(error))) from error
        raise


def cause(text: str) -> str:
    """Returns the line of the last Python error in a message of Spark's, or its first line."""
    before, found, after = text.rpartition("Traceback (most recent call last):")
    if not found:
        return text.partition("\n")[0]
    for line in after.splitlines():
        if line and not line.startswith(" "):  # the frames are indented, and the error is not
            name, _, rest = line.partition(": ")
            return rest if name.startswith("queueduct.") else f"{name.rpartition('.')[2]}: {rest}"
    return before.partition("\n")[0]
