"""The commands themselves. Spark is imported when one of them runs, and its arguments are right."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from queueduct.cli.options import IN, complete_queues, complete_readers
from queueduct.cli.outcome import INTERRUPTED
from queueduct.cli.pipelines.arguments import check_aggregate, check_archive
from queueduct.cli.units import COUNT, SECONDS
from queueduct.spark.ending import interruptible

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["aggregate", "archive"]

Command = Callable[..., Any]


def shared_options(command: Command) -> Command:
    """Adds the options of every pipeline."""
    for option in (
        click.option("--master", default="local[*]", show_default=True, help="Where Spark runs."),
        click.option(
            "--checkpoint", type=click.Path(path_type=Path), help="What a restart goes on from; one for each query."
        ),
        click.option("--available-now", is_flag=True, help="Do what is there, and end; an error if some is left."),
        click.option("--every", help="Time between batches, as in 10s; by default there is none."),
        click.option("--max-rows", type=COUNT, help="Rows a batch, at most."),
        click.option("--start", help="Where a new query starts: earliest (default), latest or a position."),
        click.option(
            "--reader",
            shell_complete=complete_readers,
            help="The durable reader's name; by default the checkpoint keeps one.",
        ),
        IN,
        click.option("--json", "as_json", is_flag=True, help="No live display; print the summary as JSON."),
    ):
        command = option(command)
    return command


@click.command(
    epilog="\b\nExamples:\n"
    "  queueduct archive ticks --to lake/ticks\n"
    "  queueduct archive ticks --to lake/ticks --available-now --json\n"
    "  queueduct archive ticks --to lake/ticks --partition-by sym --every 1m\n"
)
@click.argument("queue", shell_complete=complete_queues)
@click.option("--to", required=True, type=click.Path(path_type=Path), help="The directory of Parquet files.")
@click.option("--partition-by", multiple=True, metavar="FIELD", help="A directory for each value; may be repeated.")
@shared_options
def archive(queue: str, to: Path, partition_by: tuple[str, ...], **shared: Any) -> None:
    """Write every item of QUEUE to Parquet files, exactly once.

    Goes on until the queue is shut down or Ctrl-C; started again, it goes on where it stopped.
    The checkpoint is by default the directory _checkpoint in the archive, and an archive needs the one that it was
    begun with: for a queue that was created anew, or a checkpoint that is lost, archive into a new directory.
    """

    def start(spark: SparkSession) -> StreamingQuery:
        from queueduct.spark import pipelines

        return pipelines.archive(spark, queue, to, partition_by=partition_by, **query_options(shared))

    def check() -> None:
        check_archive(queue, to, partition_by, shared)

    run(queue, "archive", str(to), check, start, shared, shared["checkpoint"] or to / "_checkpoint")


@click.command(
    epilog="\b\nExamples:\n"
    "  queueduct aggregate ticks --to candles --window 1s --by sym \\\n"
    "      --agg 'max(px) as high' --agg 'min(px) as low' \\\n"
    "      --checkpoint state/candles\n"
)
@click.argument("queue", shell_complete=complete_queues)
@click.option(
    "--to",
    required=True,
    metavar="QUEUE2",
    shell_complete=complete_queues,
    help="The queue of results; created if it is not there.",
)
@click.option("--window", required=True, help="How long a window is, as in 1s or 500ms.")
@click.option("--by", multiple=True, metavar="FIELD", help="A group for each value; may be repeated.")
@click.option(
    "--agg", "aggregates", multiple=True, required=True, help="SQL, as in 'max(px) as high'; may be repeated."
)
@click.option("--time", help="The field of event time; by default the only one of type M8.")
@click.option("--watermark", default="1s", show_default=True, help="How late an item may come.")
@click.option("--timeout", type=SECONDS, help="Give up when no consumer has taken a result for so long.")
@shared_options
def aggregate(queue: str, to: str, **given: Any) -> None:
    """Aggregate QUEUE over windows of time into another queue, exactly once.

    A window's record is put when an item comes that is later than the window's end by the watermark.
    """
    if given["checkpoint"] is None:
        raise click.UsageError("an aggregate keeps its state in its checkpoint: give --checkpoint a directory")

    def start(spark: SparkSession) -> StreamingQuery:
        from queueduct.spark import pipelines

        return pipelines.aggregate(
            spark,
            queue,
            to,
            **{name: given[name] for name in ("window", "aggregates", "by", "time", "watermark", "timeout")},
            **query_options(given),
        )

    def check() -> None:
        check_aggregate(queue, to, given)

    run(queue, "aggregate", to, check, start, given, given["checkpoint"], target_queue=to)


def query_options(shared: dict[str, Any]) -> dict[str, Any]:
    """Returns the options of both pipelines as arguments."""
    names = {"max_rows": "maxRowsPerTrigger", "start": "startingOffsets", "reader": "reader", "directory": "directory"}
    return {
        "checkpoint": shared["checkpoint"],
        "available_now": shared["available_now"],
        "interval": shared["every"],
        "options": {option: plain(shared[name]) for name, option in names.items() if shared[name] is not None},
    }


def plain(value: Any) -> str | int:
    """Returns an option as Spark takes it: a path as text."""
    return value if isinstance(value, int) else str(value)


def run(
    queue: str,
    verb: str,
    target: str,
    check: Callable[[], None],
    start: Callable[[SparkSession], StreamingQuery],
    shared: dict[str, Any],
    checkpoint: Path,
    *,
    target_queue: str | None = None,
) -> None:
    """Checks everything before it starts Spark; then runs the query to its end."""
    console = Console(stderr=True, quiet=shared["as_json"])
    with interruptible():
        check()
        from queueduct.spark.address import Address
        from queueduct.spark.pipelines import runner
        from queueduct.spark.read.spool import beside

        spool_dir = beside(checkpoint).get("spoolDir")
        with runner.started_spark(shared["master"], console) as spark:
            summary = runner.run(
                spark,
                lambda: start(spark),
                Address(queue, None if shared["directory"] is None else str(shared["directory"])),
                f"{verb} {queue} to {target}",
                console,
                spool_dir,
                checkpoint=checkpoint,
                available_now=shared["available_now"],
                target=target,
                target_queue=target_queue,
            )
    if shared["as_json"]:
        click.echo(json.dumps(asdict(summary), indent=2))
    else:
        click.echo(
            f"{summary.rows:,} rows in {summary.batches} batches, {summary.seconds:.1f} s: "
            f"{summary.rows_per_second:,.0f} a second; {summary.ended}"
        )
        if summary.lag:
            click.echo(f"{summary.lag:,} items wait for the next run")
    if summary.ended == runner.STOPPED and shared["available_now"]:
        sys.exit(INTERRUPTED)
    if summary.passed_over:
        raise click.ClickException(
            f"every item must come to its target, and {summary.passed_over:,} of {queue!r} were left out: it has other "
            f"batches of the same numbers; start again with a new checkpoint and a new target, and --start "
            f"{summary.position - summary.passed_over - summary.rows}"
        )
    if summary.left:
        raise click.ClickException(
            f"--available-now must do everything that is there, and has left {summary.left:,} items of {queue!r}; "
            "start it again: it goes on where it stopped"
        )
