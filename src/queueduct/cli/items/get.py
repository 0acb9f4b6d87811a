"""The subcommand ``get``: items out of a queue, into a pipe, a file, or a command for each.

Items are leased, written, and only then released: one that could not be written is still in the queue.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

import click

import queueduct
from queueduct.cli.items.outputs import Output, format_options
from queueduct.cli.options import IN, QUEUE, complete_queues
from queueduct.cli.outcome import Failure, Stopped, TimeIsUp, held_back
from queueduct.cli.units import COUNT, SECONDS

__all__ = ["get"]

BATCH = 1024


@click.command(
    epilog="\b\nExamples:\n"
    "  queueduct get jobs\n"
    "  queueduct get jobs -n 100 --timeout 0.2 -o jobs.jsonl\n"
    "  queueduct get jobs --available | jq -r .\n"
    "  queueduct get jobs -n 2 --lease --exec 'cp {file} j-{position}' --retries 3\n"
    "  queueduct get jobs --follow --timeout 0.2 --lease --exec 'wc -c'\n"
    "\n\b\n"
    "In --exec these are replaced, and nothing else: there is no shell.\n"
    "  {}            the item: its bytes, or its line of JSON\n"
    "  {file}        a file with the item in it\n"
    "  {position}    where the item is in its queue\n"
    "  {deliveries}  how often it has been delivered, this time included\n"
    "Without {} and {file} the item is the command's stdin.\n"
)
@QUEUE
@click.option("-n", "count", type=COUNT, help="How many items, at most (1); it waits for them.")
@click.option("--available", is_flag=True, help="What is there now, without waiting; all of it, or at most -n.")
@click.option("-f", "--follow", is_flag=True, help="Whatever comes, until the queue is shut down or Ctrl-C.")
@click.option("--timeout", type=SECONDS, help="Give up after so long; with --follow, when nothing came for so long.")
@click.option("--exec", "command", metavar="COMMAND", help="Run this command for each item.")
@click.option("--lease", "is_leased", is_flag=True, help="An item for which COMMAND fails comes again.")
@click.option("--retries", type=click.IntRange(min=1), help="Tries in all; then the item goes to --dead-letters.")
@click.option(
    "--retry-delay", type=SECONDS, default="0.1", show_default=True, help="Before the second try; it doubles."
)
@click.option(
    "--dead-letters",
    metavar="QUEUE2",
    shell_complete=complete_queues,
    help="A queue of objects, made if it is not there; QUEUE.dead.",
)
@format_options
@IN
def get(
    name: str,
    count: int | None,
    available: bool,
    follow: bool,
    timeout: float | None,
    command: str | None,
    is_leased: bool,
    retries: int | None,
    retry_delay: float,
    dead_letters: str | None,
    directory: Path | None,
    to: Path | None,
    format_name: str | None,
    as_json: bool,
    overwrite: bool,
    strings: str,
) -> None:
    """Take items out of QUEUE.

    An item is out of the queue only when it is written: after a closed pipe, a full disk, Ctrl-C or a kill it comes
    again. A file gets its name, and its items leave the queue, when all of it is written.

    With --exec a command runs for each item. With --lease the item stays in the queue until the command has ended with
    0, and comes again if it ends otherwise, or is killed; without, it is gone when the command starts.
    The first failure ends get; with --retries the item is tried again, and at last goes to the dead letters, as those
    of queueduct.Workers. Then get goes on, and its exit code is 1.
    """
    if available and (follow or timeout is not None):
        raise click.UsageError("--available never waits: leave --follow and --timeout out")
    if command is None and (is_leased or retries is not None or dead_letters is not None):
        raise click.UsageError("--lease, --retries and --dead-letters are for --exec: give a command")
    if command is not None and (to is not None or format_name is not None or as_json):
        raise click.UsageError("--exec gives the items to a command: leave -o and --format out")
    if retries is not None and not is_leased:
        raise click.UsageError("--retries is for --lease: without it an item is gone when its command starts")
    if dead_letters is not None and retries is None:
        raise click.UsageError("--dead-letters takes what has failed in all --retries: say how many")
    with queueduct.open(name, directory=directory) as queue:
        if isinstance(queue, queueduct.EventQueue):
            raise click.UsageError(
                f"a log (events) has readers, and nothing is taken out of it: {name!r}; queueduct tail {name} shows "
                f"it, and queueduct tail {name} --reader NAME goes on as a durable reader"
            )
        demand = Demand(queue, name, count, available, follow, timeout)
        if command is not None:
            from queueduct.cli.items.commands import run_each

            run_each(demand, command, is_leased, retries, retry_delay, dead_letters, directory)
            return
        with Output(queue.item, to, format_name, as_json=as_json, overwrite=overwrite, strings=strings) as output:
            take(demand, output)


class Demand:
    """What is asked for: how many items, and how long to wait for them."""

    def __init__(
        self, queue: Any, name: str, count: int | None, available: bool, follow: bool, timeout: float | None
    ) -> None:
        self.queue = queue
        self.name = name
        self.available = available
        self.follow = follow
        self.timeout = timeout
        self.left = 1 if count is None and not available and not follow else count
        self.count = 0
        self.is_endless = follow and count is None
        self.since = time.monotonic()
        self.is_late = self.is_over = False

    def next(self, most: int) -> queueduct.Lease | None:
        """Leases up to ``most`` items. Returns None at the end, which may be the queue's, or that of the time."""
        if self.left is not None:
            most = min(most, self.left)
        if most == 0:
            return None
        try:
            if self.available:
                lease = self.queue.lease(most, block=False)
            else:
                lease = self.queue.lease(most, timeout=self.seconds())
        except queueduct.Empty:
            self.is_late = not self.available
            return None
        except queueduct.ShutDown:
            self.is_over = True
            return None
        if self.left is not None:
            self.left -= len(lease)
        self.count += len(lease)
        if self.follow:
            self.since = time.monotonic()
        found: queueduct.Lease = lease
        return found

    def seconds(self) -> float | None:
        return None if self.timeout is None else max(0.0, self.since + self.timeout - time.monotonic())

    def end(self, done: str) -> None:
        """Raises what tells that fewer came than were asked for."""
        if self.is_late:
            raise TimeIsUp(f"nothing more came within {self.timeout:g} s; {done}")
        if self.is_over and self.count == 0 and not self.follow:
            raise Failure(f"the queue {self.name!r} is shut down, and empty")


def take(demand: Demand, output: Output) -> None:
    """Writes items; those of a file are released when it is complete."""
    if output.is_whole:
        take_whole(demand, output)
        return
    try:
        while (lease := demand.next(BATCH)) is not None:
            with lease:  # which gives them back after an error
                output.write(lease.items)
                with held_back():
                    lease.release()
    except KeyboardInterrupt:
        told = f"{output.items:,} items written; the others are still in {demand.name}"
        raise Stopped(told, is_the_end=demand.is_endless) from None
    output.finish()
    demand.end(f"{output.items:,} items written")


def take_whole(demand: Demand, output: Output) -> None:
    if demand.follow:
        raise click.UsageError(
            "--follow has no end, and this output is complete only at its end: leave one of them out, or write "
            "jsonl, csv or arrow into a pipe"
        )
    capacity = getattr(demand.queue, "capacity", None) if demand.queue.kind != "growing" else None
    if demand.left is not None and capacity is not None and demand.left > capacity:
        raise click.UsageError(
            f"-n must be at most the queue's capacity, as all items stay in the queue until the file is complete: "
            f"n={demand.left}, capacity={capacity}; write into a pipe, or several files"
        )
    was_stopped = False
    with contextlib.ExitStack() as stack:  # which gives back what is not released
        leases = []
        try:
            while (lease := demand.next(BATCH if demand.left is None else demand.left)) is not None:
                stack.enter_context(lease)
                output.write(lease.items)
                leases.append(lease)
        except KeyboardInterrupt:
            was_stopped = True
        with held_back():
            output.finish()
            for lease in leases:
                lease.release()
        if was_stopped:
            raise Stopped(f"{output.items:,} items written; the others are still in {demand.name}")
    demand.end(f"{output.items:,} items written")
