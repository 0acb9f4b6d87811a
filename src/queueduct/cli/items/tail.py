"""The subcommand ``tail``: shows items of a log, and follows it. It reads by position, so it disturbs nobody."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np

import queueduct
from queueduct.cli.items.outputs import Output, format_options
from queueduct.cli.options import IN, QUEUE, complete_readers
from queueduct.cli.outcome import Failure, Stopped, TimeIsUp, held_back
from queueduct.cli.units import AMOUNT, SECONDS

__all__ = ["tail"]

BATCH = 4096
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.002, 0.05
TURN_SECONDS = 0.2


@click.command(
    epilog="\b\nExamples:\n"
    "  queueduct tail ticks\n"
    "  queueduct tail ticks -n 1000 --fields sym,px --format csv\n"
    "  queueduct tail ticks --from 2 --to 4 -o part.parquet\n"
    "  queueduct tail ticks --follow --timeout 0.2 | jq .px\n"
    "  queueduct tail ticks --reader lake --from earliest -o first.parquet\n"
)
@QUEUE
@click.option("-n", "count", type=AMOUNT, help="The last N items (10); with --reader or --from, at most N.")
@click.option("-f", "--follow", is_flag=True, help="Then what comes, until the log is shut down or Ctrl-C.")
@click.option("--from", "start", metavar="POS", help="From this position: a number, earliest or latest.")
@click.option("--to", "stop", metavar="POS", help="Up to this position, without it: a number or latest.")
@click.option("--fields", metavar="A,B", help="Only these fields; of a nested record as in at.x.")
@click.option(
    "--reader", "reader", metavar="NAME", shell_complete=complete_readers, help="Go on as this durable reader."
)
@click.option("--timeout", type=SECONDS, help="End --follow, or --reader, when nothing came for so long.")
@format_options
@IN
def tail(
    name: str,
    count: int | None,
    follow: bool,
    start: str | None,
    stop: str | None,
    fields: str | None,
    reader: str | None,
    timeout: float | None,
    directory: Path | None,
    to: Path | None,
    format_name: str | None,
    as_json: bool,
    overwrite: bool,
    strings: str,
) -> None:
    """Show the last items of a log, and follow it.

    It reads by position: no reader of the log notices, and no memory is held back.
    With --reader it goes on as a durable reader: what was written is committed, and does not come again; --from makes
    the reader if it is not there.
    """
    if timeout is not None and not (follow or reader is not None):
        raise click.UsageError("--timeout is for --follow and --reader: the others never wait")
    if stop is not None and (follow or reader is not None):
        raise click.UsageError("--to is an end, and --follow and --reader have none: leave one of them out")
    with queueduct.open(name, directory=directory) as log:
        if not isinstance(log, queueduct.EventQueue):
            raise click.UsageError(
                f"only a log (events) is read by position: {name!r} is of kind {log.kind}; queueduct get {name} takes "
                "items out of it"
            )
        select = Selection(log.item, fields)
        with Output(select.item, to, format_name, as_json=as_json, overwrite=overwrite, strings=strings) as output:
            work = Tail(log, name, output, select, timeout)
            if reader is not None:
                work.as_reader(reader, start, count, follow)
            else:
                first, last = span(log, count, start, stop, follow)
                work.by_position(first, last, follow, count if start is not None else None)


class Selection:
    """Some fields of the records, or all."""

    def __init__(self, item: Any, fields: str | None) -> None:
        self.item = item
        self.columns: list[tuple[str, ...]] | None = None
        if fields is None:
            return
        if not isinstance(item, np.dtype) or item.names is None:
            raise click.UsageError(f"--fields is for records: this log has items of {item}; leave it out")
        self.columns = [tuple(name.strip().split(".")) for name in fields.split(",")]
        names = [".".join(path) for path in self.columns]
        if len(set(names)) < len(names):
            raise click.UsageError(f"--fields names each field once: {fields}")
        self.item = np.dtype([(name, inner(item, path)) for name, path in zip(names, self.columns, strict=True)])

    def of(self, items: Any) -> Any:
        if self.columns is None:
            return items
        chosen = np.empty(len(items), self.item)
        for name, path in zip(self.item.names or (), self.columns, strict=True):
            values = items
            for step in path:
                values = values[step]
            chosen[name] = values
        return chosen


def inner(item: np.dtype[Any], path: tuple[str, ...]) -> np.dtype[Any]:
    """Returns the type of a field of the record, or of a record in it."""
    found = item
    for step in path:
        if found.names is None or step not in found.names:
            raise click.UsageError(
                f"there is no field {'.'.join(path)!r}; the records have {', '.join(item.names or ())}"
            )
        found = found[step]
    return found


def position(text: str, log: queueduct.EventQueue, option: str) -> int:
    if text in ("earliest", "latest"):
        return log.earliest if text == "earliest" else log.end
    if not text.isdecimal():
        raise click.UsageError(f"{option} is a position, earliest or latest: {text!r}")
    return int(text)


def span(
    log: queueduct.EventQueue, count: int | None, start: str | None, stop: str | None, follow: bool
) -> tuple[int, int]:
    """Returns the positions that are asked for: from the first, up to and without the second."""
    end = log.end
    last = end if stop is None else position(stop, log, "--to")
    if start is None:
        first = max(log.earliest, last - (10 if count is None else count))
    else:
        first = position(start, log, "--from")
        last = last if count is None or follow else min(last, first + count)
    if last > end:
        raise click.UsageError(f"--to is at most the end of the log, {end}: {stop}")
    if first > last and not follow:
        raise click.UsageError(f"--from is at most --to, and at most the end of the log, {end}: {start or first}")
    return first, max(first, last)


class Tail:
    """Writes items of a log."""

    def __init__(
        self, log: queueduct.EventQueue, name: str, output: Output, select: Selection, timeout: float | None
    ) -> None:
        self.log = log
        self.name = name
        self.output = output
        self.select = select
        self.timeout = timeout

    def by_position(self, first: int, last: int, follow: bool, count: int | None) -> None:
        """Writes these positions, and then what comes: up to ``count`` items, if it is not None."""
        stop = None if count is None or not follow else first + count
        is_late = False
        try:
            for start, end in self.spans(first, last, follow, stop):
                self.output.write(self.select.of(self.read(start, end, follow)))
        except TimeIsUp:
            is_late = True
        except KeyboardInterrupt:
            with held_back():
                self.output.finish()
            raise Stopped(f"{self.output.items:,} items written", is_the_end=follow and stop is None) from None
        self.output.finish()
        if is_late:
            raise TimeIsUp(f"nothing came for {self.timeout:g} s; {self.output.items:,} items written")

    def spans(self, first: int, last: int, follow: bool, stop: int | None) -> Iterator[tuple[int, int]]:
        """Yields positions that can be read now."""
        at, quiet_since, pause = first, time.monotonic(), FIRST_PAUSE_SECONDS
        while stop is None or at < stop:
            is_over = self.log.is_shut_down  # asked before the end: nothing comes after it
            last = self.log.end if follow else last
            last = last if stop is None else min(last, stop)
            if at < last:
                end = min(last, at + BATCH)
                yield at, end
                at, quiet_since, pause = end, time.monotonic(), FIRST_PAUSE_SECONDS
                continue
            if not follow or is_over:
                return
            if self.timeout is not None and time.monotonic() - quiet_since >= self.timeout:
                raise TimeIsUp("")
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    def read(self, start: int, stop: int, follow: bool) -> Any:
        """Reads a span; what is no longer kept is left out when it follows, and said."""
        while True:
            try:
                return self.log.read(start, stop)
            except queueduct.DataLost as lost:
                if not follow:
                    raise Failure(
                        f"{self.name} no longer keeps position {start}; --from earliest begins at {lost.earliest}"
                    ) from lost
                gone = min(stop, lost.earliest) - start
                click.echo(f"{gone:,} items from position {start} were freed before they could be read", err=True)
                start += gone

    def as_reader(self, name: str, start: str | None, count: int | None, follow: bool) -> None:
        """Goes on as a durable reader, and commits what is written."""
        there = any(each.name == name for each in self.log.readers())
        if not there and start is None:
            others = ", ".join(each.name for each in self.log.readers() if each.name is not None) or "none"
            raise click.UsageError(
                f"{self.name} has no durable reader {name!r}, it has {others}; --from earliest or latest makes it"
            )
        if there and start is not None:
            raise click.UsageError(f"the reader {name!r} goes on where it has committed: leave --from out")
        begin = start if start in (None, "earliest", "latest") else position(str(start), self.log, "--from")
        is_late = False
        with self.log.subscribe(name, start=begin or "latest") as reader:  # type: ignore[arg-type]  # it was checked
            try:
                is_late = self.follow_reader(reader, count, follow)
            except KeyboardInterrupt:
                with held_back():
                    self.finish_reader(reader)
                done = f"{self.output.items:,} items written, and committed by {name}"
                raise Stopped(done, is_the_end=follow and count is None) from None
            self.finish_reader(reader)
        if is_late and follow:
            raise TimeIsUp(f"nothing came for {self.timeout:g} s; {self.output.items:,} items written")

    def follow_reader(self, reader: queueduct.Reader, count: int | None, follow: bool) -> bool:
        """Writes what the reader gets. Returns true if it has waited in vain."""
        quiet_since = time.monotonic()
        waits = follow or self.timeout is not None
        while count is None or self.output.items < count:
            most = BATCH if count is None else min(BATCH, count - self.output.items)
            turn = TURN_SECONDS if self.timeout is None else min(TURN_SECONDS, self.timeout)
            try:
                items = reader.get_many(most, timeout=turn) if waits else reader.get_many(most, block=False)
            except queueduct.ShutDown:
                return False
            except queueduct.Empty:
                if not waits or (self.timeout is not None and time.monotonic() - quiet_since >= self.timeout):
                    return waits
                continue
            self.output.write(self.select.of(items))
            quiet_since = time.monotonic()
            if not self.output.is_whole:
                reader.commit()
        return False

    def finish_reader(self, reader: queueduct.Reader) -> None:
        self.output.finish()
        reader.commit()
