"""The command ``queueduct check``. Spark is imported if the history is too long for this process."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from queueduct.cli import ERROR_EXIT_CODE
from queueduct.spark.ending import interruptible
from queueduct.verification.history import needs_pyarrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from queueduct.verification.history.format import History

__all__ = ["check"]

POLL_SECONDS = 0.3
SHOWN = 5


@click.command(
    epilog="\b\nExamples:\n"
    "  queueduct check runs/bounded\n"
    "  queueduct check runs/bounded --report bounded.html\n"
    "  queueduct check runs/bounded --master spark://host:7077 --json | jq .counts\n"
)
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--master", default="local[*]", show_default=True, help="Where Spark runs, if the history is long.")
@click.option("--report", type=click.Path(dir_okay=False, path_type=Path), help="Write an HTML report with plots.")
@click.option("--json", "as_json", is_flag=True, help="No live display; print the verdict as JSON.")
def check(directory: Path, master: str, report: Path | None, as_json: bool) -> None:
    """Decide whether the history in DIRECTORY is one that a correct queue could have produced.

    The exit code is 0 if it is, 1 if it is not, and 2 if the history cannot be checked as it is.
    docs/verification.md says what a history is, and what a pass proves.
    """
    console = Console(stderr=True, quiet=as_json)
    click.get_current_context().meta[ERROR_EXIT_CODE] = 2
    with interruptible():
        needs_pyarrow()
        from queueduct.verification.check import check as decide
        from queueduct.verification.check import write_report
        from queueduct.verification.history.format import read_history

        history = read_history(directory)  # before Spark is started for it, if it is
        with contextlib.ExitStack() as stack:
            spark = stack.enter_context(spark_for(history, master, console))
            say = stack.enter_context(live(spark, console))
            verdict = decide(directory, spark=spark, progress=say)
            if report is not None:
                say("drawing the report")
                write_report(directory, verdict, report, spark=spark)
    if as_json:
        click.echo(json.dumps(verdict.as_dict(), indent=2))
    else:
        show(verdict, report)
    sys.exit(0 if verdict.ok else 1)


def spark_for(history: History, master: str, console: Console) -> AbstractContextManager[SparkSession | None]:
    """Returns a session, if the history is too long for this process."""
    from queueduct.verification.check import WIDTH, needs_spark

    if not needs_spark(history):
        return contextlib.nullcontext()
    try:
        from queueduct.spark.pipelines.runner import started_spark
    except ImportError as error:
        raise ImportError(
            f"a history of more than {2 * WIDTH:,} operations is checked on Spark: {history.directory} has "
            f"{history.operations:,}, and {error.name} is not installed; pip install 'queueduct[spark]'"
        ) from error
    return started_spark(master, console)


@contextlib.contextmanager
def live(spark: SparkSession | None, console: Console) -> Iterator[Callable[[str], None]]:
    """Says which step it is; the bar shows how many of Spark's tasks are done in it."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    ended = threading.Event()
    with Progress(*columns, console=console, transient=True) as progress:
        step = progress.add_task("", total=None)

        def poll() -> None:
            if spark is None:
                return
            tracker = spark.sparkContext.statusTracker()
            while not ended.wait(POLL_SECONDS):
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
                known = [stage for stage in stages if stage is not None]
                total = sum(stage.numTasks for stage in known)
                done = sum(stage.numCompletedTasks for stage in known)
                progress.update(step, total=total or None, completed=done)

        watcher = threading.Thread(target=poll, daemon=True)
        watcher.start()
        try:
            yield lambda words: say(progress, step, words, console)
        finally:
            ended.set()
            watcher.join()


def say(progress: Progress, step: Any, words: str, console: Console) -> None:
    bar = progress.tasks[step]
    bar.total, bar.completed = None, 0  # those of the step before; update() takes no total of None
    progress.update(step, description=words)
    if not console.is_terminal:
        console.print(words)


def show(verdict: Any, report: Path | None) -> None:
    from queueduct.verification.check.verdict import witness_line

    click.echo(f"{verdict.operations:,} operations of kind {verdict.kind}, checked in {verdict.seconds:.1f} s")
    for name, number in verdict.outcomes.items():
        click.echo(f"  {name:<12} {number:>15,}")
    if verdict.ok:
        click.echo("passed:")
        for sentence in verdict.proved:
            click.echo(wrapped(sentence, "  "))
    else:
        total = sum(verdict.counts.values())
        rules = ", ".join(f"{rule} {number:,}" for rule, number in verdict.counts.items())
        click.echo(f"FAILED: {total:,} violations: {rules}")
        for violation in verdict.violations[:SHOWN]:
            click.echo(wrapped(f"{violation.rule}: {violation.why}", "  "))
            for witness in violation.witnesses:
                click.echo(wrapped(witness_line(witness), "    "))
        if len(verdict.violations) > SHOWN:
            click.echo("  and more: --json and --report list them")
    if report is not None:
        click.echo(f"report: {report}")


def wrapped(words: str, indent: str) -> str:
    """Prints for the width of a terminal; a pipe gets each sentence as one line."""
    if not sys.stdout.isatty():
        return indent + words
    width = max(40, shutil.get_terminal_size().columns)
    hanging = indent + "  "
    return textwrap.fill(words, width, initial_indent=indent, subsequent_indent=hanging, break_on_hyphens=False)
