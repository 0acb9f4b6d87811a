"""The command ``queueduct``: look at queues, remove them, see one at work. Public API only."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

import queueduct
from queueduct.cli.check import check
from queueduct.cli.pipelines import COMMANDS
from queueduct.cli.stress import stress
from queueduct.demo import one_queue as demonstration

EXAMPLES = """\b
Examples:
  queueduct ls                     every queue in the directory
  queueduct stat ticks --json      one queue's counters, for a script
  queueduct rm ticks               remove a queue's name
  queueduct archive ticks --to lake/ticks        every item to Parquet, through Spark
  queueduct stress bounded --history runs/1      every operation recorded
  queueduct demo                   producers, a queue, Spark, a lake and candles, live
"""

# What a bad name, a bad file or a bad option leads to: a line for the user, and no traceback.
EXPECTED = (queueduct.QueueductError, OSError, ValueError, TypeError)


@click.group(epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(queueduct.__version__, prog_name="queueduct")
def main() -> None:
    """Concurrent queues in shared memory.

    Queues live in $QUEUEDUCT_DIR, by default /dev/shm/queueduct-<uid>.
    """


@main.command("ls", epilog="\b\nExample:\n  queueduct ls --json | jq '.[].name'\n")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def list_queues(as_json: bool) -> None:
    """List every queue in the directory."""
    found = [row for info in queueduct.queues() if (row := described(info, in_short=not as_json)) is not None]
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    if not found:
        click.echo("no queues here; QUEUEDUCT_DIR names another directory")
        return
    table = Table(box=None, pad_edge=False)
    for column in ("name", "kind", "item"):
        table.add_column(column, no_wrap=True)
    for column in ("items", "MB", "participants"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for row in found:
        if "error" in row:
            table.add_row(row["name"], row["kind"], "", "", "", "", "cannot be read")
            continue
        table.add_row(
            row["name"],
            row["kind"],
            row["item"],
            f"{row['size']:,}",
            f"{row['resident_bytes' if 'resident_bytes' in row else 'total_bytes'] / 1e6:,.1f}",
            str(row["participants"]),
            "shut down" if row["is_shut_down"] else "",
        )
    print_whole(table)
    for row in found:
        if "error" in row:
            click.echo(f"{row['name']}: {row['error']}")


@main.command(epilog="\b\nExample:\n  queueduct stat ticks\n")
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
        click.echo(f"{field:<{width}}  " + hanging(f"{value:,}" if type(value) is int else str(value), width + 2))


@main.command(epilog="\b\nExample:\n  queueduct rm ticks orders\n")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list: what each had counted, or why it failed.")
def rm(names: tuple[str, ...], as_json: bool) -> None:
    """Remove queues' names. Processes that have one open go on with it.

    One that cannot be removed does not keep the others from it; the exit code is 1 then.
    """
    rows = [removed(name, with_counters=as_json) for name in names]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    for row in rows:
        if "failed" in row:
            click.echo(f"Error: {row['failed']}", err=True)
        elif not as_json:
            click.echo(f"removed {row['name']}")
    sys.exit(1 if any("failed" in row for row in rows) else 0)


@main.command("queue-demo", epilog="\b\nExample:\n  queueduct queue-demo --seconds 5 --json\n")
@click.option("--seconds", default=10.0, show_default=True, type=click.FloatRange(1, 3600), help="How long to run.")
@click.option("--json", "as_json", is_flag=True, help="No live display; print the result as JSON.")
def queue_demo(seconds: float, as_json: bool) -> None:
    """Four processes on one queue, one of them killed on the way, every item accounted for."""
    with report_errors():
        result = demonstration.run(seconds, Console(stderr=as_json, quiet=as_json))
    if as_json:
        click.echo(json.dumps(result.as_dict(), indent=2))
    sys.exit(0 if result.ok else 1)


for command in (*COMMANDS, check, stress):
    main.add_command(command)


def print_whole(table: Table) -> None:
    """Wider than the terminal if need be: a name that is cut short cannot be used."""
    console = Console(markup=False, highlight=False)
    wanted = Measurement.get(console, console.options.update(max_width=1 << 16), table).maximum
    console.width = max(console.width, wanted)
    console.print(table)


def hanging(words: str, indent: int) -> str:
    """What is too long for the terminal goes on below its own beginning."""
    if not sys.stdout.isatty():
        return words
    room = max(20, shutil.get_terminal_size().columns - indent)
    return ("\n" + " " * indent).join(textwrap.wrap(words, room) or [""])


def describe(name: str, *, in_short: bool = False) -> dict[str, Any]:
    """A queue as one flat row."""
    with queueduct.open(name) as queue:
        row = {"name": name, "kind": queue.kind, "item": item_text(queue.item, in_short=in_short)}
        return row | {"size": queue.qsize()} | queue.stats()._asdict()


def item_text(item: Any, *, in_short: bool) -> str:
    """What an item is; in short, a record or an array by its size: what is in it would fill a table."""
    if in_short and isinstance(item, np.dtype) and item.names is not None:
        return f"{len(item.names)} fields, {item.itemsize:,} B"
    if in_short and isinstance(item, np.dtype) and item.shape:
        return f"{'x'.join(map(str, item.shape))} {item.base}"
    return getattr(item, "__name__", None) or str(item)


def described(info: queueduct.QueueInfo, *, in_short: bool) -> dict[str, Any] | None:
    """The same for a list, which one queue that cannot be read must not end; None if it has gone meanwhile."""
    try:
        return describe(info.name, in_short=in_short)
    except queueduct.QueueNotFound:
        return None
    except (queueduct.QueueductError, OSError) as error:
        return {"name": info.name, "kind": info.kind, "error": str(error)}


def removed(name: str, *, with_counters: bool) -> dict[str, Any]:
    """Remove a queue's name: its row, or one that says why it failed."""
    try:
        row = last_look(name) if with_counters else {"name": name}
        queueduct.unlink(name)
    except EXPECTED as error:
        return {"name": name, "failed": str(error)}
    return row


def last_look(name: str) -> dict[str, Any]:
    """A queue before it is removed; one that cannot be read can be removed all the same."""
    try:
        return describe(name)
    except queueduct.QueueNotFound:
        raise
    except (queueduct.QueueductError, OSError) as error:
        return {"name": name, "error": str(error)}


class report_errors:  # noqa: N801 - reads as a statement: `with report_errors():`
    """queueduct's errors as one line on stderr and exit code 1, not as a traceback."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, EXPECTED):
            raise click.ClickException(str(error)) from error
