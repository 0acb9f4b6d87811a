"""The subcommands ``ls``, ``stat`` and ``readers``: show queues. They watch, and take no part."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

import queueduct
from queueduct.cli.options import IN, QUEUE, as_json, complete_readers
from queueduct.cli.output import below, colored, echo_json, in_bytes, table
from queueduct.formats.item_text import item_text

if TYPE_CHECKING:
    from queueduct.monitoring import QueueSeen

__all__ = ["described", "ls", "readers", "stat"]

WINDOW_SECONDS = 0.5  # over which a reader that lags is judged
LOOK_SECONDS = 0.1


@click.command(epilog="\b\nExamples:\n  queueduct ls\n  queueduct ls --json | jq '.[].name'\n")
@IN
@as_json("Print a JSON list.")
def ls(directory: Path | None, as_json: bool) -> None:
    """List every queue in the directory."""
    found = []
    if directory is not None and not directory.exists():
        raise FileNotFoundError(
            f"there is no directory {directory}; queueduct create QUEUE KIND --dir {directory} makes it"
        )
    for name, kind, created, creator in queueduct.queues(directory=directory):
        with contextlib.suppress(queueduct.QueueNotFound):  # another process has removed it meanwhile
            row = described(name, directory, in_short=not as_json)
            made = {"created": created.isoformat(), "creator": creator}
            found.append({"name": name, "kind": kind, **row, **made})
    if as_json:
        echo_json(found)
    elif not found:
        click.echo("no queues here; --dir or QUEUEDUCT_DIR names another directory, queueduct create makes one")
    else:
        titles = ("name", "kind", "item", "items", "memory", "participants", "readers", "")
        click.echo(table([titles, *map(cells, found)], "<<<>>>><"))
        for row in found:
            if "error" in row:
                click.echo(f"{row['name']}: {row['error']}")


@click.command(epilog="\b\nExamples:\n  queueduct stat ticks\n  queueduct stat ticks --json | jq .items_put\n")
@QUEUE
@IN
@as_json("Print a JSON object.")
def stat(name: str, directory: Path | None, as_json: bool) -> None:
    """Show one queue: its counters, readers, producers and participants.

    A reader that lags is watched for half a second, to tell whether it moves.
    """
    row = describe(name, directory)
    seen, producers = looked_at(name, directory)
    if as_json:
        from queueduct.monitoring import as_json as plain

        details = {"readers": plain(seen.readers), "producers": plain(producers)}
        echo_json({**row, "details": {**details, "participants": plain(seen.participants)}})
        return
    below((field, str(value) if field == "creator" else value) for field, value in row.items())
    if seen.readers:
        show("readers", readers_table(seen))
    if producers:
        rows = [(each.name, f"{each.sequence:,}", f"{each.done:,} of {each.total:,}") for each in producers]
        show("producers", table([("name", "sequence", "items in"), *rows], "<>>"))
    if seen.participants:
        show("participants", participants_table(seen))


@click.command(
    epilog="\b\nExamples:\n"
    "  queueduct readers ticks\n"
    "  queueduct readers ticks --json | jq -c '.[] | {name, lag, status}'\n"
    "  queueduct readers ticks --drop dashboard\n"
    "\n\b\n"
    "Status:\n"
    "  ok          has everything, or comes nearer\n"
    "  behind      moves, and its lag grows\n"
    "  stalled     does not move, although there are items for it\n"
    "  unattended  durable, and no process has it: its items are kept for it\n"
    "  dropped     a full log has dropped it: it has lost items\n"
)
@QUEUE
@click.option("--drop", metavar="READER", shell_complete=complete_readers, help="Remove this durable reader.")
@IN
@as_json("Print a JSON list; with --drop an object.")
def readers(name: str, drop: str | None, directory: Path | None, as_json: bool) -> None:
    """List the readers of a log, with lag and status; or remove one, so that what it holds back is freed."""
    seen, _ = looked_at(name, directory)
    if seen.kind != "events":
        raise click.UsageError(f"only a log (events) has readers: {name!r} is of kind {seen.kind}")
    if drop is not None:
        dropped(name, drop, seen, directory, as_json)
    elif as_json:
        from queueduct.monitoring import as_json as plain

        echo_json(plain(seen.readers))
    elif seen.readers:
        click.echo(readers_table(seen))
    else:
        click.echo(f"nobody reads {name}; queueduct tail {name} --reader NAME --from earliest makes a durable reader")


def dropped(name: str, reader: str, seen: QueueSeen, directory: Path | None, as_json: bool) -> None:
    there = {each.name: each.lag for each in seen.readers if each.name is not None}
    if reader not in there:
        raise click.UsageError(
            f"there is no durable reader {reader!r} of {name!r} to drop; it has {', '.join(there) or 'none'}"
        )
    with queueduct.EventQueue.open(name, directory=directory) as log:
        log.unsubscribe(reader)
    if as_json:
        echo_json({"name": name, "dropped": reader, "lag": there[reader]})
    else:
        click.echo(f"dropped {reader}: {there[reader]:,} items of {name} were not read by it")


def looked_at(name: str, directory: Path | None) -> tuple[QueueSeen, Any]:
    """Returns what a monitor sees of a queue, and its producers. Raises what opening the queue would."""
    queueduct.watch(name, directory=directory).close()
    from queueduct.monitoring import Monitor, Status

    until = time.monotonic() + WINDOW_SECONDS + 3 * LOOK_SECONDS
    with Monitor(directory, names=[name], window=WINDOW_SECONDS, interval=LOOK_SECONDS) as monitor:
        seen = monitor.look().queue(name)
        while seen is not None and time.monotonic() < until and any(r.status is Status.UNKNOWN for r in seen.readers):
            time.sleep(LOOK_SECONDS)
            seen = monitor.look().queue(name)
        detail = monitor.detail(name)
    if seen is None:
        raise queueduct.QueueNotFound(f"the queue {name!r} was removed just now")
    if seen.error is not None:
        raise queueduct.CorruptSegment(seen.error)
    return seen, () if detail is None else detail.producers


def readers_table(seen: QueueSeen) -> str:
    rows = [
        (
            each.label,
            colored(str(each.status)),
            f"{each.lag:,}",
            f"{'> ' if each.is_lag_longer else ''}{each.lag_seconds:.1f} s" if each.lag else "",
            f"{each.committed:,}",
            "attached" if each.is_attached else "",
        )
        for each in seen.readers
    ]
    return table([("reader", "status", "lag", "in time", "committed", ""), *rows], "<<>>><")


def participants_table(seen: QueueSeen) -> str:
    rows = [
        (str(each.pid), str(each.thread), each.state, f"{each.items_put:,}", f"{each.items_got:,}", each.command or "")
        for each in seen.participants
    ]
    return table([("pid", "thread", "state", "put", "got", "command"), *rows], ">><>><")


def show(title: str, lines: str) -> None:
    click.echo(f"\n{title}")
    click.echo("\n".join(f"  {line}" for line in lines.splitlines()))


def describe(name: str, directory: Path | None, *, in_short: bool = False) -> dict[str, Any]:
    """Returns a queue as one flat row."""
    with queueduct.watch(name, directory=directory) as queue:
        row = {"name": name, "kind": queue.kind, "item": shortened(queue.item) if in_short else item_text(queue.item)}
        made = {"created": queue.created.isoformat(), "creator": queue.creator}
        counters: dict[str, Any] = queue.stats()._asdict()
        return row | counters | made


def shortened(item: Any) -> str:
    """What an item is; a record or an array by its size: what is in it would fill a table."""
    if isinstance(item, np.dtype) and item.names is not None:
        return f"{len(item.names)} fields, {item.itemsize:,} B"
    if isinstance(item, np.dtype) and item.shape:
        return f"{'x'.join(map(str, item.shape))} {item_text(item.base)}"
    return item_text(item)


def described(name: str, directory: Path | None, *, in_short: bool = False) -> dict[str, Any]:
    """Returns a queue as one flat row, or a row that says why it cannot be read."""
    try:
        return describe(name, directory, in_short=in_short)
    except queueduct.QueueNotFound:
        raise
    except (queueduct.QueueductError, OSError) as error:
        return {"name": name, "error": str(error)}


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """A row of the table."""
    if "error" in row:
        return (row["name"], row["kind"], "", "", "", "", "", "cannot be read")
    return (
        row["name"],
        row["kind"],
        row["item"],
        f"{row['size']:,}",
        in_bytes(row["resident_bytes"]),
        str(row["participants"]),
        str(row.get("readers", "")),
        "shut down" if row["is_shut_down"] else "",
    )
