"""The command ``penstock``: look at queues, remove them, see one at work. Public API only."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from typing import Any

import click
from rich.console import Console
from rich.table import Table

import penstock
from penstock import demo as demonstration
from penstock.spark.commands import COMMANDS

EXAMPLES = """\b
Examples:
  penstock ls                     every queue in the directory
  penstock stat ticks --json      one queue's counters, for a script
  penstock rm ticks               remove a queue's name
  penstock archive ticks --to lake/ticks        every item to Parquet, through Spark
  penstock demo                   producers, a queue, Spark, a lake and candles, live
"""


@click.group(epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(penstock.__version__, prog_name="penstock")
def main() -> None:
    """Concurrent queues in shared memory.

    Queues live in $PENSTOCK_DIR, by default /dev/shm/penstock-<uid>.
    """


@main.command("ls", epilog="\b\nExample:\n  penstock ls --json | jq '.[].name'\n")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def list_queues(as_json: bool) -> None:
    """List every queue in the directory."""
    found = [row for info in penstock.queues() for row in described(info.name)]
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    if not found:
        click.echo("no queues here; PENSTOCK_DIR names another directory")
        return
    table = Table(box=None, pad_edge=False)
    for column in ("name", "kind", "item"):
        table.add_column(column)
    for column in ("size", "capacity", "MB", "participants"):
        table.add_column(column, justify="right")
    for row in found:
        table.add_row(
            row["name"],
            row["kind"],
            row["item"],
            f"{row['size']:,}",
            f"{row['max_bytes'] / 1e6:,.1f} MB" if "max_bytes" in row else f"{row['capacity']:,}",
            f"{row.get('resident_bytes', row.get('total_bytes', 0)) / 1e6:,.1f}",
            str(row["participants"]),
        )
    Console().print(table)


@main.command(epilog="\b\nExample:\n  penstock stat ticks\n")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def stat(name: str, as_json: bool) -> None:
    """Show one queue's counters."""
    with report_errors():
        row = describe(name)
    if as_json:
        click.echo(json.dumps(row, indent=2))
        return
    width = max(map(len, row))
    for field, value in row.items():
        click.echo(f"{field:<{width}}  {value:,}" if type(value) is int else f"{field:<{width}}  {value}")


@main.command(epilog="\b\nExample:\n  penstock rm ticks orders\n")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def rm(names: tuple[str, ...]) -> None:
    """Remove queues' names. Processes that have one open go on with it."""
    with report_errors():
        for name in names:
            penstock.unlink(name)
            click.echo(f"removed {name}")


@main.command("queue-demo", epilog="\b\nExample:\n  penstock queue-demo --seconds 5 --json\n")
@click.option("--seconds", default=10.0, show_default=True, type=click.FloatRange(1, 3600), help="How long to run.")
@click.option("--json", "as_json", is_flag=True, help="No live display; print the result as JSON.")
def queue_demo(seconds: float, as_json: bool) -> None:
    """Four processes on one queue, one of them killed on the way, every item accounted for."""
    with report_errors():
        result = demonstration.run(seconds, Console(stderr=as_json, quiet=as_json))
    if as_json:
        click.echo(json.dumps(result.as_dict(), indent=2))
    sys.exit(0 if result.ok else 1)


for command in COMMANDS:
    main.add_command(command)


def describe(name: str) -> dict[str, Any]:
    """A queue as one flat row."""
    with penstock.open(name) as queue:
        stats = queue.stats()._asdict()
        item = getattr(queue.item, "__name__", None) or str(queue.item)
        shared = {"name": name, "kind": queue.kind, "item": item, "size": queue.qsize(), "capacity": queue.capacity}
    return {**shared, **stats}


def described(name: str) -> Iterator[dict[str, Any]]:
    """The same, or nothing if the queue has just gone."""
    with contextlib.suppress(penstock.QueueNotFound):
        yield describe(name)


class report_errors:  # noqa: N801 - reads as a statement: `with report_errors():`
    """penstock's errors as one line on stderr and exit code 2, not as a traceback."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (penstock.PenstockError, OSError, ValueError, TypeError)):
            raise click.ClickException(str(error)) from error
