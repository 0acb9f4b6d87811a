"""The subcommand ``put``: items from the command line, from files and from pipes into a queue."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

import queueduct
from queueduct.cli.items.inputs import BATCH_ROWS, Part, parts, size_of
from queueduct.cli.options import IN, QUEUE, as_json
from queueduct.cli.outcome import Failure, Stopped, TimeIsUp, held_back
from queueduct.cli.output import Progress, echo_json
from queueduct.cli.units import AMOUNT, RATE, SECONDS
from queueduct.formats import FORMATS, BadRow

__all__ = ["put"]

TURN_SECONDS = 0.1  # that a put waits for room before Ctrl-C and the time are looked at


@click.command(
    epilog="\b\nExamples:\n"
    "  queueduct put jobs resize-1.png resize-2.png\n"
    '  queueduct put ticks \'{"sym": "ACME", "px": 101.5, "ts": "2026-01-05T09:30"}\'\n'
    "  queueduct put ticks ticks.csv more.jsonl\n"
    "  jq -c . ticks.json | queueduct put ticks --format jsonl --rate 1k/s\n"
    "  ls | queueduct put jobs --format lines\n"
    "  queueduct put ticks ticks.csv --producer feed-1 --sequence 17\n"
)
@QUEUE
@click.argument("words", nargs=-1, metavar="[ITEM | FILE]...")
@click.option("--format", "format_name", type=click.Choice(FORMATS[:-1]), help="All words are files of this format.")
@click.option("--text", "is_text", is_flag=True, help="All words are items, also those that look like files.")
@click.option("--rate", type=RATE, help="Items a second, as in 250/s, 1k/s or 10/m.")
@click.option("--timeout", type=SECONDS, help="Give up when there was no room for so long; 0 never waits.")
@click.option("--producer", help="Put exactly once: under this name, with --sequence.")
@click.option("--sequence", type=AMOUNT, help="The number of this input, higher for each new one.")
@IN
@as_json("Print what was put as a JSON object.")
def put(
    name: str,
    words: tuple[str, ...],
    format_name: str | None,
    is_text: bool,
    rate: float | None,
    timeout: float | None,
    producer: str | None,
    sequence: int | None,
    directory: Path | None,
    as_json: bool,
) -> None:
    """Put items, files or what a pipe brings into QUEUE.

    A word is a file if its name ends as one (.jsonl .csv .parquet .arrow .raw .txt), or if --format is given; - is the
    pipe. Any other word is an item: text for a queue of bytes, JSON for others. Without words the pipe is read, as
    lines of JSON unless --format says otherwise.

    A row that is none ends the command with its file and line; what was put before stays. With --producer and
    --sequence all rows are read first, and a repeated command puts nothing twice.
    """
    if (producer is None) != (sequence is None):
        raise click.UsageError("--producer and --sequence belong together: a sequence numbers a producer's inputs")
    if producer is not None and rate is not None:
        raise click.UsageError("--rate spreads items over time, and --producer puts them at once: leave one out")
    with queueduct.open(name, directory=directory) as queue:
        if producer is not None and not hasattr(queue, "put_once"):
            raise click.UsageError(
                f"a queue of kind {queue.kind} has no exactly-once puts: {name!r}; leave --producer and --sequence out"
            )
        work = Putting(queue, name, rate, timeout, size_of(words, format_name, is_text=is_text))
        rows = BATCH_ROWS if rate is None else min(BATCH_ROWS, max(1, int(rate / 10)))
        found = parts(words, queue.item, format_name, is_text=is_text, rows=rows)
        try:
            if producer is None or sequence is None:
                work.put_all(found)
            else:
                work.put_all_once(found, producer, sequence)
        except KeyboardInterrupt:
            raise Stopped(work.so_far) from None
        except BadRow as bad:
            raise Failure(f"{bad}; {work.so_far}") from bad
        except queueduct.ShutDown:
            raise Failure(f"the queue {name!r} is shut down, and takes nothing more; {work.so_far}") from None
        finally:
            work.progress.end()
    row = {"name": name, "items": work.count, "seconds": round(time.monotonic() - work.began, 3)}
    if as_json:
        echo_json(row if producer is None else {**row, "producer": producer, "sequence": sequence})
    elif producer is not None and work.count == 0:
        click.echo(f"sequence {sequence} of {producer} is in {name} already: nothing was put")
    else:
        click.echo(f"put {counted(work.count)} into {name}")


def of_one(error: Exception) -> str:
    """Returns the text of an error without the item's number in its batch: its place in the file is said instead."""
    return re.sub(r" of item \d+", "", str(error), count=1)


def counted(items: int) -> str:
    return f"{items:,} item" if items == 1 else f"{items:,} items"


class Putting:
    """Puts, and counts to the item what is in."""

    def __init__(
        self, queue: Any, name: str, rate: float | None, timeout: float | None, total_bytes: int | None
    ) -> None:
        self.queue = queue
        self.name = name
        self.rate = rate
        self.timeout = timeout
        self.progress = Progress(f"putting into {name}", total_bytes)
        self.count = 0
        self.is_once = False
        self.source = ""
        self.read_bytes = [0, 0]
        self.began = time.monotonic()

    @property
    def so_far(self) -> str:
        """What is in, to be said at an end before the end."""
        if self.is_once:
            return "the same command goes on where it stopped"
        return f"{counted(self.count)} {'is' if self.count == 1 else 'are'} in {self.name} by this command"

    def put_all(self, found: Iterable[Part]) -> None:
        for part in found:
            self.put_part(part)
            self.note(part)

    def note(self, part: Part) -> None:
        """Shows how far the files are read: those before this one, and this one."""
        if part.source != self.source:
            self.source, self.read_bytes = part.source, [sum(self.read_bytes), 0]
        if part.stream is not None and part.stream.seekable():
            self.read_bytes[1] = part.stream.tell()
        self.progress.show(self.count, sum(self.read_bytes))

    def put_part(self, part: Part) -> None:
        at, waited_since = 0, time.monotonic()
        while at < len(part.items):
            if self.rate is not None:
                self.keep_pace(self.rate)
            most = None if self.rate is None else at + self.due(self.rate)
            try:
                done = self.put_some(part.items[at:most])
            except (ValueError, TypeError) as error:
                if len(part.items) == 1:
                    raise BadRow(part.place(0), of_one(error)) from error
                for index in range(at, len(part.items)):  # puts what comes before the bad item, and finds that
                    self.put_part(part.single(index))
                return
            at += done
            now = time.monotonic()
            waited_since = now if done else waited_since
            if at < len(part.items) and self.timeout is not None and now - waited_since >= self.timeout:
                raise TimeIsUp(f"{self.name} had no room for {self.timeout:g} s; {self.so_far}")
            self.progress.show(self.count, sum(self.read_bytes))

    def put_some(self, items: Any) -> int:
        """Puts what there is room for now, or soon. Returns how many."""
        wait = TURN_SECONDS if self.timeout is None else min(TURN_SECONDS, self.timeout)
        began = time.monotonic()
        done = 0
        with held_back():
            try:
                done = int(self.queue.put_many(items, timeout=wait))
            except queueduct.Full as full:
                if time.monotonic() - began < wait / 2:  # a log that raises when it is full, and does not wait
                    raise Failure(f"{str(full) or f'{self.name} is full'}; {self.so_far}") from full
            self.count += done
        return done

    def due(self, rate: float) -> int:
        """Returns how many items the rate allows by now."""
        return max(1, int((time.monotonic() - self.began) * rate) + 1 - self.count)

    def keep_pace(self, rate: float) -> None:
        while (pause := self.began + self.count / rate - time.monotonic()) > 0:
            time.sleep(min(pause, 1.0))
            self.progress.show(self.count, sum(self.read_bytes))

    def put_all_once(self, found: Iterable[Part], producer: str, sequence: int) -> None:
        items: list[Any] = []
        places: list[str] = []
        for part in found:
            items += list(part.items)
            places += [part.place(index) for index in range(len(part.items))]
        self.is_once = True
        try:
            self.count = self.queue.put_once(items, producer, sequence, timeout=self.timeout)
        except queueduct.Full as full:
            raise TimeIsUp(f"{str(full) or f'{self.name} is full'}; {self.so_far}") from full
        except queueduct.UnfitItem as error:
            self.is_once = False
            raise BadRow(places[self.first_unfit(items)], of_one(error)) from error

    def first_unfit(self, items: list[Any]) -> int:
        """Returns which item does not fit: a queue of its own tries each."""
        with queueduct.BoundedQueue.create(None, 1, item=self.queue.item) as scratch:
            for index, item in enumerate(items):
                try:
                    scratch.put(item)
                except (ValueError, TypeError):
                    return index
                scratch.get()
        return 0
