"""The subcommands ``ls``, ``stat`` and ``rm``: show queues and remove them. Public API only."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import textwrap
from pathlib import Path
from typing import Any

import click
import numpy as np

import queueduct

__all__ = ["ls", "rm", "stat"]

IN = click.option(
    "--directory", type=click.Path(path_type=Path), help="Where the queues are; by default $QUEUEDUCT_DIR."
)


@click.command(epilog="\b\nExample:\n  queueduct ls --json | jq '.[].name'\n")
@IN
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def ls(directory: Path | None, as_json: bool) -> None:
    """List every queue in the directory."""
    found = []
    for name, kind, created, creator in queueduct.queues(directory=directory):
        with contextlib.suppress(queueduct.QueueNotFound):  # another process has removed it meanwhile
            row = described(name, directory, in_short=not as_json)
            made = {"created": created.isoformat(), "creator": creator}
            found.append({"name": name, "kind": kind, **row, **made})
    if as_json:
        click.echo(json.dumps(found, indent=2))
    elif not found:
        click.echo("no queues here; --directory or QUEUEDUCT_DIR names another directory")
    else:
        click.echo(as_table([("name", "kind", "item", "items", "MB", "participants", ""), *map(cells, found)]))
        for row in found:
            if "error" in row:
                click.echo(f"{row['name']}: {row['error']}")


@click.command(epilog="\b\nExample:\n  queueduct stat ticks\n")
@click.argument("name")
@IN
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def stat(name: str, directory: Path | None, as_json: bool) -> None:
    """Show one queue's counters."""
    row = describe(name, directory)
    if as_json:
        click.echo(json.dumps(row, indent=2))
        return
    width = max(map(len, row))
    for field, value in row.items():
        click.echo(f"{field:<{width}}  " + hanging(f"{value:,}" if type(value) is int else str(value), width + 2))


@click.command(epilog="\b\nExample:\n  queueduct rm ticks orders\n")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@IN
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list: what each had counted, or why it failed.")
def rm(names: tuple[str, ...], directory: Path | None, as_json: bool) -> None:
    """Remove queues' names. Processes that have one open go on with it.

    If one cannot be removed, the others still are, and the exit code is 1.
    """
    rows = [removed(name, directory, with_counters=as_json) for name in names]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    for row in rows:
        if "failed" in row:
            click.echo(f"Error: {row['failed']}", err=True)
        elif not as_json:
            click.echo(f"removed {row['name']}")
    sys.exit(1 if any("failed" in row for row in rows) else 0)


def describe(name: str, directory: Path | None, *, in_short: bool = False) -> dict[str, Any]:
    """Returns a queue as one flat row."""
    with queueduct.watch(name, directory=directory) as queue:
        row = {"name": name, "kind": queue.kind, "item": item_text(queue.item, in_short=in_short)}
        made = {"created": queue.created.isoformat(), "creator": queue.creator}
        counters: dict[str, Any] = queue.stats()._asdict()
        return row | counters | made


def item_text(item: Any, *, in_short: bool) -> str:
    """What an item is; in short, a record or an array by its size: what is in it would fill a table."""
    if in_short and isinstance(item, np.dtype) and item.names is not None:
        return f"{len(item.names)} fields, {item.itemsize:,} B"
    if in_short and isinstance(item, np.dtype) and item.shape:
        return f"{'x'.join(map(str, item.shape))} {item.base}"
    return getattr(item, "__name__", None) or str(item)


def described(name: str, directory: Path | None, *, in_short: bool = False) -> dict[str, Any]:
    """Returns a queue as one flat row, or a row that says why it cannot be read."""
    try:
        return describe(name, directory, in_short=in_short)
    except queueduct.QueueNotFound:
        raise
    except (queueduct.QueueductError, OSError) as error:
        return {"name": name, "error": str(error)}


def removed(name: str, directory: Path | None, *, with_counters: bool) -> dict[str, Any]:
    """Removes a queue's name, even if it cannot be read. Returns its row, or one that says why it failed."""
    try:
        row = described(name, directory) if with_counters else {"name": name}
        queueduct.unlink(name, directory=directory)
    except (queueduct.QueueductError, OSError, ValueError, TypeError) as error:
        return {"name": name, "failed": str(error)}
    return row


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """A row of the table."""
    if "error" in row:
        return (row["name"], row["kind"], "", "", "", "", "cannot be read")
    return (
        row["name"],
        row["kind"],
        row["item"],
        f"{row['size']:,}",
        f"{row['resident_bytes'] / 1e6:,.1f}",
        str(row["participants"]),
        "shut down" if row["is_shut_down"] else "",
    )


def as_table(rows: list[tuple[str, ...]]) -> str:
    """Returns columns in full width, even wider than the terminal: a cut name is of no use."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = ("<", "<", "<", ">", ">", ">", "<")
    return "\n".join(
        "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(row, aligned, widths, strict=True)).rstrip()
        for row in rows
    )


def hanging(words: str, indent: int) -> str:
    """Wraps a long value below its beginning."""
    if not sys.stdout.isatty():
        return words
    room = max(20, shutil.get_terminal_size().columns - indent)
    return ("\n" + " " * indent).join(textwrap.wrap(words, room) or [""])
