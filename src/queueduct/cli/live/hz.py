"""The subcommand ``hz``: how many items a second go into one queue, or out of it."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import click

import queueduct
from queueduct.cli.live.keys import Stopped, stopping_on_signals
from queueduct.cli.live.top import silence
from queueduct.cli.options import IN, QUEUE, complete_readers
from queueduct.cli.outcome import end_by_signal
from queueduct.cli.units import COUNT, Duration

__all__ = ["hz"]


class Beat(NamedTuple):
    """One line: the rate of the last interval, and of the intervals of the window."""

    at: float
    items: int
    """In the last interval."""
    rate: float
    mean: float
    least: float
    most: float
    window_seconds: float


@click.command(
    epilog="\b\nExamples:\n"
    "  queueduct hz ticks\n"
    "  queueduct hz ticks --reader archive --window 60\n"
    "  queueduct hz jobs --out -n 5 --json | jq .rate\n"
)
@QUEUE
@click.option("--out", "is_out", is_flag=True, help="Count items that were got, not those that were put.")
@click.option(
    "--reader", shell_complete=complete_readers, help="Count how a durable reader of an event queue moves on."
)
@click.option(
    "-d",
    "--interval",
    "seconds",
    default="1s",
    show_default=True,
    type=Duration(0.01, 3600),
    help="The time between lines.",
)
@click.option(
    "--window",
    default="10s",
    show_default=True,
    type=Duration(0.01, 86400),
    help="The time of which mean, least and most are.",
)
@click.option("-n", "lines", type=COUNT, help="End after so many lines.")
@click.option("--duration", type=Duration(0.01), help="End after so long.")
@IN
@click.option("--json", "as_json", is_flag=True, help="Print lines of JSON.")
def hz(
    name: str,
    is_out: bool,
    reader: str | None,
    seconds: float,
    window: float,
    lines: int | None,
    duration: float | None,
    directory: Path | None,
    as_json: bool,
) -> None:
    """Show how many items a second go into a queue: now, and the mean, least and most over a window.

    Goes on until Ctrl-C, or as long as -n or --duration say: then it ends with 0, and stopped before with 130.
    Looking changes nothing in the queue.
    """
    if is_out and reader is not None:
        raise click.UsageError("--out and --reader exclude each other: all consumers are meant, or one reader")
    what = f"reader {reader}" if reader is not None else "out" if is_out else "in"
    try:
        with stopping_on_signals(), queueduct.watch(name, directory=directory) as watch:
            until = time.monotonic() + duration if duration is not None else float("inf")
            for number, beat in enumerate(beats(watch, counter(watch, is_out, reader), seconds, window, until), 1):
                click.echo(as_object(name, what, beat) if as_json else as_line(what, beat))
                if number == lines:
                    break
    except Stopped as stopped:
        end_by_signal(stopped.number, is_the_end=lines is None and duration is None)
    except BrokenPipeError:
        silence()


def beats(
    watch: queueduct.Watch, count: Callable[[], int], seconds: float, window: float, until: float
) -> Iterator[Beat]:
    """Yields a beat after each interval, the last of which may be shorter."""
    rates: deque[tuple[float, float]] = deque(maxlen=max(1, round(window / seconds)))  # seconds, rate
    before, last = time.monotonic(), count()
    due = before
    while before < until:
        due = min(max(due + seconds, before), until)
        time.sleep(max(0.0, due - time.monotonic()))
        now, counted = time.monotonic(), count()
        items = max(0, counted - last)
        rates.append((now - before, items / (now - before)))
        total = sum(length for length, _ in rates)
        mean = sum(length * rate for length, rate in rates) / total
        each = [rate for _, rate in rates]
        yield Beat(time.time(), items, each[-1], mean, min(each), max(each), total)
        if not watch.exists:
            raise queueduct.QueueNotFound(f"the queue {watch.name!r} was removed, or replaced by another")
        before, last = now, counted


def counter(watch: queueduct.Watch, is_out: bool, reader: str | None) -> Callable[[], int]:
    """Returns what says how many items there were so far."""
    if reader is not None:
        position_of(watch, reader)
        return lambda: position_of(watch, reader)
    if is_out:
        return lambda: int(watch.stats().items_got)
    return lambda: int(watch.stats().items_put)


def position_of(watch: queueduct.Watch, reader: str) -> int:
    names = []
    for each in watch.readers():
        if each.name == reader:
            return each.committed
        names.append(repr(each.name) if each.name is not None else "ephemeral ones")
    there = ", ".join(dict.fromkeys(names)) or "none"
    raise ValueError(
        f"the reader must be one of the durable ones of {watch.name!r}: --reader {reader!r}; there are {there}"
    )


def as_line(what: str, beat: Beat) -> str:
    window = f"over {beat.window_seconds:.3g} s"
    return (
        f"{what} {figure(beat.rate):>11}/s    mean {figure(beat.mean)}  least {figure(beat.least)}  "
        f"most {figure(beat.most)}  {window}"
    )


def figure(rate: float) -> str:
    """A rate below 10 with its fractions, since some queues get an item a minute."""
    return f"{rate:.3g}" if 0 < rate < 10 else f"{rate:,.0f}"


def as_object(name: str, what: str, beat: Beat) -> str:
    return json.dumps({"queue": name, "what": what, **beat._asdict()})
