"""The subcommands that change a queue as a whole: shutdown, clear, keep-last, rm, repair."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

import queueduct
from queueduct.cli.options import IN, QUEUE, as_json, complete_queues
from queueduct.cli.outcome import told as words_of
from queueduct.cli.output import echo_json
from queueduct.cli.queues import described
from queueduct.cli.units import AMOUNT

__all__ = ["clear", "keep_last", "repair", "rm", "shutdown"]

BATCH = 1024
REPAIR_SECONDS = 0.3  # within which the next look for the dead is due, whoever made the last one


@click.command(epilog="\b\nExamples:\n  queueduct shutdown ticks\n  queueduct shutdown jobs --immediate --json\n")
@QUEUE
@click.option("--immediate", is_flag=True, help="Consumers end at once, too; what is left is dropped.")
@IN
@as_json("Print a JSON object.")
def shutdown(name: str, immediate: bool, directory: Path | None, as_json: bool) -> None:
    """End a queue: nothing more is put, and consumers end when it is empty."""
    with queueduct.open(name, directory=directory) as queue:
        was_shut_down = bool(queue.stats().is_shut_down)
        left = queue.stats().size
        queue.shutdown(immediate)
    row = {"name": name, "was_shut_down": was_shut_down, "immediate": immediate, "left": 0 if immediate else left}
    if as_json:
        echo_json(row)
        return
    again = "was shut down already" if was_shut_down and not immediate else "is shut down"
    rest = f"{left:,} items were dropped" if immediate else f"{left:,} items are left to get"
    click.echo(f"{name} {again}; {rest}")


@click.command(epilog="\b\nExample:\n  queueduct clear jobs\n")
@QUEUE
@IN
@as_json("Print a JSON object.")
def clear(name: str, directory: Path | None, as_json: bool) -> None:
    """Remove all items that are there now. Those that consumers have on lease stay theirs."""
    with queueduct.open(name, directory=directory) as queue:
        removed = cleared(queue)
    told(name, removed, as_json)


def cleared(queue: Any) -> int:
    """Removes the items of this moment, also while producers go on. Returns how many."""
    if isinstance(queue, queueduct.EventQueue):
        return cut(queue, 0)
    removed, there = 0, queue.qsize()
    while removed < there:
        try:
            lease = queue.lease(min(BATCH, there - removed), block=False)
        except (queueduct.Empty, queueduct.ShutDown):
            break
        removed += len(lease)
        lease.release()
    return removed


@click.command(epilog="\b\nExample:\n  queueduct keep-last ticks 1000\n")
@QUEUE
@click.argument("count", type=AMOUNT)
@IN
@as_json("Print a JSON object.")
def keep_last(name: str, count: int, directory: Path | None, as_json: bool) -> None:
    """Remove all but the last COUNT items of a log."""
    with queueduct.open(name, directory=directory) as queue:
        if not isinstance(queue, queueduct.EventQueue):
            raise click.UsageError(
                f"only a log (events) keeps its last items: {name!r} is of kind {queue.kind}; "
                f"queueduct clear {name} removes all items"
            )
        removed = cut(queue, count)
    told(name, removed, as_json)


def cut(log: queueduct.EventQueue, count: int) -> int:
    earliest = log.earliest
    log.keep_last(count)
    return max(0, log.earliest - earliest)


def told(name: str, removed: int, as_json: bool) -> None:
    if as_json:
        echo_json({"name": name, "removed": removed})
    else:
        click.echo(f"removed {removed:,} items of {name}")


@click.command(epilog="\b\nExample:\n  queueduct rm ticks orders\n")
@click.argument("names", nargs=-1, required=True, metavar="QUEUE...", shell_complete=complete_queues)
@IN
@as_json("Print a JSON list: what each had counted, or why it failed.")
def rm(names: tuple[str, ...], directory: Path | None, as_json: bool) -> None:
    """Remove queues' names. Processes that have one open go on with it.

    If one cannot be removed, the others still are, and the exit code is 1.
    """
    rows = [removed_name(name, directory, with_counters=as_json) for name in names]
    if as_json:
        echo_json(rows)
    for row in rows:
        if "failed" in row:
            click.echo(f"Error: {row['failed']}", err=True)
        elif not as_json:
            click.echo(f"removed {row['name']}")
    if any("failed" in row for row in rows):
        sys.exit(1)


def removed_name(name: str, directory: Path | None, *, with_counters: bool) -> dict[str, Any]:
    """Removes a queue's name, even if it cannot be read. Returns its row, or one that says why it failed."""
    try:
        row = described(name, directory) if with_counters else {"name": name}
        queueduct.unlink(name, directory=directory)
    except (queueduct.QueueductError, OSError, ValueError, TypeError) as error:
        return {"name": name, "failed": words_of(error)}
    return row


@click.command(epilog="\b\nExamples:\n  queueduct repair ticks\n  queueduct repair jobs --json\n")
@click.argument("names", nargs=-1, required=True, metavar="QUEUE...", shell_complete=complete_queues)
@IN
@as_json("Print a JSON list.")
def repair(names: tuple[str, ...], directory: Path | None, as_json: bool) -> None:
    """Put right what killed processes have left. Every participant does so by itself; this does it now.

    Items that a dead consumer had go to the next one; slots that a dead producer had claimed are free again; a log that
    a writer died in is put in order; a log on a disk is cut back to what a crash of the machine has left.
    """
    rows = [repaired(name, directory) for name in names]
    if as_json:
        echo_json(rows)
    for row in rows:
        if "failed" in row:
            click.echo(f"Error: {row['failed']}", err=True)
        elif not as_json:
            click.echo(f"{row['name']}: {'; '.join(in_words(row)) or 'nothing was to be repaired'}")
    if any("failed" in row for row in rows):
        corrupt = [row["name"] for row in rows if row.get("is_corrupt")]
        if corrupt:
            bad = " ".join(corrupt)
            click.echo(f"what contradicts itself cannot be repaired: queueduct rm {bad}, and create it anew", err=True)
        sys.exit(1)


WORDS = {
    "dead_participants": "{} dead participants were let go",
    "repairs": "{} interrupted writes were taken back or finished",
    "tombstones": "{} slots of dead producers were given up",
    "recovered": "{} slots of dead holders came back",
    "torn": "{} half-written messages were given up",
    "lost_with_consumer": "{} messages were lost with their consumer",
    "to_be_redelivered": "{} items of dead consumers are to be delivered again",
    "cuts": "the log was cut {} times after a crash of the machine",
}


def repaired(name: str, directory: Path | None) -> dict[str, Any]:
    try:
        before = state_of(name, directory)
        with queueduct.open(name, directory=directory) as queue:  # a log on a disk is settled by this
            if isinstance(queue, queueduct.EventQueue):
                queue.readers()  # takes the lock, from a dead writer, too
            else:
                queue.join(timeout=REPAIR_SECONDS)
            after = state_of(name, directory)
    except (queueduct.QueueductError, OSError, ValueError, TypeError) as error:
        return {"name": name, "failed": words_of(error), "is_corrupt": isinstance(error, queueduct.CorruptSegment)}
    found = {key: after[key] - before[key] for key in after if key not in ("dead_participants", "leased", "size")}
    found["dead_participants"] = before["dead_participants"] - after["dead_participants"]
    return {"name": name, **found}


def state_of(name: str, directory: Path | None) -> dict[str, int]:
    """Returns what a repair may change."""
    with queueduct.watch(name, directory=directory) as watch:
        stats = watch.stats()._asdict()
        dead = sum(not each.alive for each in watch.participants())
    renamed = {"epoch": "cuts"}
    names = ("repairs", "tombstones", "recovered", "torn", "lost_with_consumer", "epoch")
    return {"dead_participants": dead} | {renamed.get(each, each): stats[each] for each in names if each in stats}


def in_words(row: dict[str, Any]) -> list[str]:
    return [words.format(f"{row[key]:,}") for key, words in WORDS.items() if row.get(key)]
