"""The subcommands ``demo`` and ``queue-demo``. What they run is imported when they run."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click

__all__ = ["demo", "queue_demo"]

RATE_OF_CORE, RATE_LIMIT = 160_000.0, 1_200_000.0


@click.command(
    epilog="\b\nExamples:\n"
    "  queueduct demo\n"
    "  queueduct demo --no-spark\n"
    "  queueduct demo --seconds 10 --rate 5000 --out /tmp/demo --json\n"
)
@click.option(
    "--seconds", default=30.0, show_default=True, type=click.FloatRange(1, 3600), help="How long to put ticks."
)
@click.option("--rate", type=click.FloatRange(100, 1e7), help="Ticks a second; by default 160,000 for each core.")
@click.option(
    "--out",
    default=Path("queueduct-demo"),
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the archive, the summary and the plot go.",
)
@click.option("--no-spark", is_flag=True, help="Archive with a recorder and make candles with numpy: no Java.")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Of the live page; by default 8321, or any if that is in use."
)
@click.option("--json", "as_json", is_flag=True, help="No live display; print the summary as JSON.")
def demo(seconds: float, rate: float | None, out: Path, no_spark: bool, port: int | None, as_json: bool) -> None:
    """The main job, live: producers, a queue, Spark, a Parquet archive, and candles in a second queue.

    A live page of the queues is at the printed address meanwhile. A producer and a consumer are killed on the way, and
    others go on in their place. Takes about a minute. The exit code is 1 if a tick is missing or doubled, or a candle
    is wrong.
    """
    from queueduct.spark.ending import interruptible

    with interruptible():
        from rich.console import Console

        from queueduct.demo import flow

        chosen = usual_rate() if rate is None else rate
        account = flow.run(seconds, chosen, out, Console(quiet=as_json), on_spark=not no_spark, port=port)
    if as_json:
        click.echo(json.dumps(account.as_dict(), indent=2))
    sys.exit(0 if account.ok else 1)


def usual_rate() -> float:
    """Returns as many ticks a second as this machine's cores do with ease."""
    return min(RATE_LIMIT, RATE_OF_CORE * len(os.sched_getaffinity(0)))


@click.command(epilog="\b\nExample:\n  queueduct queue-demo --seconds 5 --json\n")
@click.option("--seconds", default=10.0, show_default=True, type=click.FloatRange(1, 3600), help="How long to run.")
@click.option("--json", "as_json", is_flag=True, help="No live display; print the result as JSON.")
def queue_demo(seconds: float, as_json: bool) -> None:
    """Four processes on one queue, one of them killed on the way, every item accounted for."""
    from rich.console import Console

    from queueduct.demo import one_queue

    result = one_queue.run(seconds, Console(stderr=as_json, quiet=as_json))
    if as_json:
        click.echo(json.dumps(result.as_dict(), indent=2))
    sys.exit(0 if result.ok else 1)
