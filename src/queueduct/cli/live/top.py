"""The subcommand ``top``: all queues, live."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from pathlib import Path

import click
from rich.console import Console

from queueduct.cli.live.keys import Stopped, stopping_on_signals
from queueduct.cli.live.screen import Screen
from queueduct.cli.live.table import SORTS, queue_table
from queueduct.cli.options import IN
from queueduct.cli.outcome import end_by_signal
from queueduct.cli.units import Duration
from queueduct.monitoring import Monitor, as_json

__all__ = ["seconds_option", "top"]

LOOKS = 4  # within the interval of a table that is printed once
seconds_option = click.option(
    "-d",
    "--interval",
    "seconds",
    default="500ms",
    show_default=True,
    type=Duration(0.05, 3600),
    help="The time between looks.",
)


@click.command(
    epilog="\b\nExamples:\n"
    "  queueduct top\n"
    "  queueduct top -d 2 --sort lag\n"
    "  queueduct top --once\n"
    "  queueduct top --json | jq '.queues[] | {name, depth}'\n"
)
@IN
@seconds_option
@click.option("--once", is_flag=True, help="Print one table after one interval, and end.")
@click.option(
    "--sort",
    default="name",
    show_default=True,
    type=click.Choice([name for name, _ in SORTS.values()]),
    help="By what.",
)
@click.option("--json", "as_lines", is_flag=True, help="Print each look as a line of JSON; with --once one line.")
def top(directory: Path | None, seconds: float, once: bool, sort: str, as_lines: bool) -> None:
    """Show all queues, live: depth, rates, readers with their lag, participants.

    Looking changes nothing in a queue. In a terminal q quits, arrows and Enter open one queue, ? shows the other keys.
    Without a terminal it prints one table.

    \b
    A reader is  ok           its lag is 0, or falls
                 behind       it moves, and its lag grows
                 stalled      it does not move, and there are items for it
                 unattended   durable, and no process has it
                 dropped      a full queue has dropped it
    """
    console = Console(highlight=False)
    key = next(key for key, (name, _) in SORTS.items() if name == sort)
    is_live = console.is_terminal and not (once or as_lines) and os.environ.get("TERM") != "dumb"
    try:
        # one table must judge readers by the only interval that it has
        window = seconds if once or not (is_live or as_lines) else max(5.0, 4 * seconds)
        with stopping_on_signals(), Monitor(directory, interval=seconds, window=window) as monitor:
            if as_lines:
                print_lines(monitor, seconds, only_one=once)
            elif is_live:
                Screen(monitor, console, seconds, key).run()
            else:
                pause(monitor, seconds)
                if not console.is_terminal:
                    console = Console(highlight=False, width=max(console.width, 200))  # into a file, or a pipe
                console.print(queue_table(monitor.look(), console, sort=key))
    except Stopped as stopped:
        end_by_signal(stopped.number, is_the_end=is_live or (as_lines and not once))
    except BrokenPipeError:
        silence()


def print_lines(monitor: Monitor, seconds: float, *, only_one: bool) -> None:
    """Prints a snapshot after each interval: nothing is known of rates before."""
    if only_one:
        pause(monitor, seconds)
        click.echo(json.dumps(as_json(monitor.look())))
        return
    monitor.look()
    while True:
        time.sleep(seconds)
        click.echo(json.dumps(as_json(monitor.look())))


def pause(monitor: Monitor, seconds: float) -> None:
    """Waits for the only interval, and looks now and then, so that a reader which moves is seen to move."""
    for _ in range(LOOKS):
        monitor.look()
        time.sleep(seconds / LOOKS)


def silence() -> None:
    """The reader of our output has gone: Python's own flush at the end must not fail on it."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
