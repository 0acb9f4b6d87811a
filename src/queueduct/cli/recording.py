"""The subcommands ``record`` and ``replay``: a queue to Parquet files and back. They need pyarrow, and no Spark."""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

import queueduct
from queueduct.cli.options import IN, complete_queues, complete_readers
from queueduct.cli.outcome import TIME_IS_UP, Failure, code_of_signal
from queueduct.cli.stopping import stopping
from queueduct.cli.units import COUNT, SIZE, Duration
from queueduct.segments.kinds import KINDS

if TYPE_CHECKING:
    from queueduct.recording import Recorded, Replayed

__all__ = ["record", "replay"]

COMPRESSIONS = ("snappy", "zstd", "lz4", "gzip", "brotli", "none")  # as recording.files, which imports pyarrow
LINE_SECONDS = 0.25
BEHIND_SECONDS = 0.05

AS_JSON = click.option("--json", "as_json", is_flag=True, help="No progress; print the summary as JSON.")


class Line:
    """One line on stderr that changes; without a terminal there is none."""

    def __init__(self, *, is_quiet: bool) -> None:
        self.is_on = not is_quiet and sys.stderr.isatty()
        self.shown_at = 0.0

    def show(self, text: str) -> None:
        now = time.monotonic()
        if self.is_on and now - self.shown_at >= LINE_SECONDS:
            self.shown_at = now
            click.echo(f"\r\x1b[K{text}", err=True, nl=False)

    def clear(self) -> None:
        if self.is_on and self.shown_at:
            click.echo("\r\x1b[K", err=True, nl=False)


def place(context: click.Context, option: click.Parameter, given: str) -> str | int:
    """earliest, latest, or a position."""
    if given in ("earliest", "latest"):
        return given
    if not given.isdecimal():
        raise click.BadParameter(f"{given!r} is neither earliest nor latest nor a position")
    return int(given)


@click.command(
    epilog="\b\nExamples:\n"
    "  queueduct record ticks --to rec\n"
    "  queueduct record ticks --to rec --seconds-per-file 60 --compression zstd\n"
    "  queueduct record ticks --to rec --available-now --json\n"
    "  queueduct record ticks --to rec -n 1M --duration 30\n"
    "\n\b\nExit codes:\n"
    "  0    done; without -n, --duration and --available-now Ctrl-C is how it ends\n"
    "  1    failed\n"
    "  2    wrong usage\n"
    "  3    --duration was over before -n items came\n"
    "  130  stopped by Ctrl-C before that end; what it has is written and committed\n"
)
@click.argument("queue", shell_complete=complete_queues)
@click.option("--to", required=True, type=click.Path(path_type=Path), help="The directory of Parquet files.")
@click.option(
    "--reader",
    shell_complete=complete_readers,
    help="The durable reader of a log; by default one of the directory's own.",
)
@click.option(
    "--from", "start", callback=place, default="earliest", show_default=True, help="Where a new reader starts."
)
@click.option("--rows-per-file", type=COUNT, default="1M", show_default=True, help="A file has, at most.")
@click.option("--bytes-per-file", type=SIZE, default="128M", show_default=True, help="Of items, before compression.")
@click.option(
    "--seconds-per-file",
    type=Duration(1e-3),
    default="10s",
    show_default=True,
    help="From a file's first item on.",
)
@click.option("--compression", type=click.Choice(COMPRESSIONS), default="snappy", show_default=True)
@click.option(
    "--strings",
    type=click.Choice(["string", "binary"]),
    default="string",
    show_default=True,
    help="What fields of bytes become; binary need not be UTF-8.",
)
@click.option("--position-column", default="position", show_default=True, help="The column of positions.")
@click.option("--recorded-column", default="recorded_at", show_default=True, help="The column of recorded times.")
@click.option("--no-recorded-time", is_flag=True, help="Leave that column out.")
@click.option("-n", "--max-rows", type=COUNT, help="End after so many items.")
@click.option("--duration", "seconds", type=Duration(1e-3), help="End after so long.")
@click.option("--available-now", is_flag=True, help="Record what is there, and end.")
@IN
@AS_JSON
def record(
    queue: str,
    to: Path,
    directory: Path | None,
    as_json: bool,
    recorded_column: str,
    no_recorded_time: bool,
    **options: Any,
) -> None:
    """Write every item of QUEUE to Parquet files, each position exactly once.

    Goes on until the queue is shut down or Ctrl-C; started again, it goes on after the last complete file. The names
    of the files have the positions, and are the only state: it may be killed at any moment.
    """
    with stopping() as stop, queueduct.open(queue, directory=directory, allow_pickle=False) as opened:
        from queueduct import recording

        line = Line(is_quiet=as_json)
        rate = Rate()

        def on_progress(found: Recorded) -> None:
            rows = found.rows + found.open_rows
            line.show(
                f"{queue} to {to}: {rows:,} rows, {found.bytes / 1e6:,.1f} MB in {found.files} files, "
                f"{rate.of(rows):,.0f} rows/s, {found.lag:,} to go; Ctrl-C ends it"
            )

        try:
            done = recording.record(
                opened,
                to,
                recorded_column=None if no_recorded_time else recorded_column,
                stop=stop,
                on_progress=on_progress,
                **options,
            )
        finally:
            line.clear()
    if as_json:
        click.echo(json.dumps(done._asdict() | {"rows_per_second": round(done.rows / max(done.seconds, 1e-9), 1)}))
    else:
        click.echo(f"{queue} to {to}: {told(done)}")
    if done.ended == recording.TIME_IS_UP and options["max_rows"] is not None:
        sys.exit(TIME_IS_UP)
    if done.ended == recording.STOPPED:
        has_end = options["available_now"] or options["max_rows"] is not None or options["seconds"] is not None
        sys.exit(code_of_signal(stop.number, is_the_end=not has_end))


def told(done: Recorded) -> str:
    rows = f"{done.rows:,} rows in {done.files} files, {done.bytes / 1e6:,.1f} MB, {done.seconds:.1f} s"
    missed = f"; {done.missed:,} items were dropped by the queue before they were recorded" if done.missed else ""
    skipped = f"; {done.skipped:,} came again, and were there already" if done.skipped else ""
    return f"{rows}: {done.rows / max(done.seconds, 1e-9):,.0f} a second; {done.ended}{missed}{skipped}"


class Rate:
    """Rows a second, over the last seconds."""

    def __init__(self) -> None:
        self.seen = [(time.monotonic(), 0)]

    def of(self, rows: int) -> float:
        now = time.monotonic()
        self.seen = [one for one in self.seen if now - one[0] < 3] or self.seen[-1:]
        began, before = self.seen[0]
        self.seen.append((now, rows))
        return (rows - before) / max(now - began, 1e-3)


def speed_of(context: click.Context, option: click.Parameter, given: str) -> float:
    """1, 10, 0.5 or max."""
    if given == "max":
        return math.inf
    try:
        speed = float(given)
    except ValueError:
        speed = math.nan
    if not 0 < speed < math.inf:
        raise click.BadParameter(f"{given!r} is no speed; 1, 10, 0.5 and max are")
    return speed


def moment(context: click.Context, option: click.Parameter, given: str | None) -> int | np.datetime64 | None:
    """A position, or a time as in 2026-01-05T09:30."""
    if given is None or given.isdecimal():
        return None if given is None else int(given)
    found: np.datetime64
    try:
        found = np.datetime64(given, "ns")
    except ValueError:
        found = np.datetime64("NaT")
    if np.isnat(found):
        raise click.BadParameter(f"{given!r} is neither a position nor a time; 1000 and 2026-01-05T09:30 are")
    return found


@click.command(
    epilog="\b\nExamples:\n"
    "  queueduct replay rec --to ticks --create events\n"
    "  queueduct replay rec --to ticks --speed max\n"
    "  queueduct replay rec --to ticks --speed 10 --time ts --from 2026-01-05T09:30\n"
    "  queueduct replay rec --to ticks --exactly-once --producer replay-1\n"
    "\n\b\nExit codes:\n"
    "  0    done; with --loop Ctrl-C is how it ends\n"
    "  1    failed\n"
    "  2    wrong usage\n"
    "  130  stopped by Ctrl-C before everything was replayed\n"
)
@click.argument("recording", type=click.Path(path_type=Path))
@click.option("--to", required=True, metavar="QUEUE", shell_complete=complete_queues, help="The queue to put into.")
@click.option("--speed", callback=speed_of, default="1", show_default=True, help="1, a multiple of it, or max.")
@click.option("--time", "time_field", metavar="FIELD", help="The time to go by; by default when it was recorded.")
@click.option("--from", "start", callback=moment, help="A position or a time (UTC), of the same kind as --time.")
@click.option("--until", "end", callback=moment, help="The same; what is there is not replayed any more.")
@click.option("--loop", is_flag=True, help="Begin anew at the end.")
@click.option("--create", "kind", type=click.Choice(list(KINDS)), help="Create the queue, of this kind.")
@click.option("--capacity", type=COUNT, help="Of the created queue: bounded, overwriting or slots.")
@click.option("--max-bytes", type=SIZE, help="Of the created queue: events or growing.")
@click.option("--exactly-once", is_flag=True, help="Put by put_once: a repeated replay puts only what is missing.")
@click.option("--producer", help="The name under which put_once counts; needed with --exactly-once.")
@click.option("--position-column", help="The column of positions, if another program has written the files.")
@IN
@AS_JSON
def replay(
    recording: Path,
    to: str,
    kind: str | None,
    capacity: int | None,
    max_bytes: int | None,
    exactly_once: bool,
    producer: str | None,
    position_column: str | None,
    directory: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Put the items of RECORDING into a queue, in their order, at the speed at which they were recorded.

    RECORDING is a directory that `queueduct record` or `queueduct archive` has filled.
    """
    if exactly_once != (producer is not None):
        raise click.UsageError("--exactly-once and --producer go together: put_once counts under the producer's name")
    sizes = {name: size for name, size in (("capacity", capacity), ("max_bytes", max_bytes)) if size is not None}
    if kind is None and sizes:
        raise click.UsageError("--capacity and --max-bytes are of a queue that is created: give --create a kind")
    with stopping() as stop:
        from queueduct import recording as recordings

        found = recordings.Recording(recording, position_column)
        if kind is None:
            queue = existing(to, directory)
        else:
            check_sizes(kind, sizes)
            queue = recordings.create_for(found, to, kind, directory=directory, **sizes)
        line = Line(is_quiet=as_json)
        rate = Rate()
        title = f"{recording} to {to}"

        def on_progress(now: Replayed) -> None:
            behind = f", {now.behind:.1f} s behind: the queue is full" if now.behind > BEHIND_SECONDS else ""
            line.show(
                f"{recording} to {to}: {now.rows:,} rows, {rate.of(now.rows):,.0f} rows/s{behind}; Ctrl-C ends it"
            )

        try:
            with queue:
                done = recordings.replay(found, queue, producer=producer, stop=stop, on_progress=on_progress, **options)
        finally:
            line.clear()
    if as_json:
        click.echo(json.dumps(done._asdict()))
    else:
        skipped = f"; {done.skipped:,} were in already" if done.skipped else ""
        late = "" if options["speed"] == math.inf else f"; late by {done.late_p99 * 1e3:.1f} ms (p99)"
        click.echo(
            f"{title}: {done.rows:,} rows, {done.seconds:.1f} s: "
            f"{done.rows / max(done.seconds, 1e-9):,.0f} a second{late}; {done.ended}{skipped}"
        )
    if done.ended == recordings.STOPPED:
        sys.exit(code_of_signal(stop.number, is_the_end=options["loop"]))


def existing(name: str, directory: Path | None) -> Any:
    try:
        return queueduct.open(name, directory=directory, allow_pickle=False)
    except queueduct.QueueNotFound as error:
        raise Failure(f"{error}; --create events makes one for these items, or --create another kind") from error


def check_sizes(kind: str, sizes: dict[str, int]) -> None:
    wanted = "capacity" if KINDS[kind].has_capacity else "max_bytes"
    for name in sizes:
        if name != wanted:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"a queue of kind {kind} has no {option}; give it --{wanted.replace('_', '-')}")
