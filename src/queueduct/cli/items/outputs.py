"""Where rows go: the terminal, a pipe, or a file that gets its name when it is complete."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import click

from queueduct.cli.outcome import Failure
from queueduct.cli.output import width
from queueduct.formats import ENDINGS, FORMATS, RowWriter, format_of_file, writer
from queueduct.formats.files import WholeFile

__all__ = ["Output", "format_options"]

AT_THE_END = ("parquet",)  # formats that nobody can read before their end is written


def format_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of a command that writes rows."""
    for option in (
        click.option(
            "--strings",
            type=click.Choice(["string", "binary"]),
            default="string",
            help="What fields of bytes become in Parquet and Arrow; binary need not be UTF-8.",
        ),
        click.option("--json", "as_json", is_flag=True, help="The same as --format jsonl."),
        click.option("--overwrite", is_flag=True, help="FILE may exist, and is replaced when all is written."),
        click.option(
            "--format", "format_name", type=click.Choice(FORMATS), help="By default what the name of FILE says."
        ),
        click.option(
            "-o",
            "--output",
            "to",
            metavar="FILE",
            type=click.Path(path_type=Path, dir_okay=False),
            help="Write into this file, which gets its name when it is complete.",
        ),
    ):
        command = option(command)
    return command


class Output:
    """Writes items. Leave it after ``finish``, or a file is discarded."""

    def __init__(
        self,
        item: Any,
        to: Path | None,
        format_name: str | None,
        *,
        as_json: bool = False,
        overwrite: bool = False,
        strings: str = "string",
    ) -> None:
        to = None if to == Path("-") else to
        if sys.stdout is None:  # a shell has closed it, by >&-
            raise Failure("there must be somewhere to write to: stdout is closed; give -o FILE, or leave >&- out")
        if as_json and format_name not in (None, "jsonl"):
            raise click.UsageError(f"--json is the format jsonl: --format {format_name}; leave one of them out")
        self.format = "jsonl" if as_json else format_name or chosen_format(to)
        self.to = to
        self.items = 0
        self.file: WholeFile | None = None
        self.stream: BinaryIO = sys.stdout.buffer
        is_terminal = to is None and sys.stdout.isatty()
        try:
            if to is not None:
                self.file = WholeFile(to, replace=overwrite)
                self.stream = self.file.stream
            self.writer: RowWriter = writer(
                self.format,
                self.stream,
                item,
                strings=strings,
                width=width() if is_terminal else None,
                is_file=to is not None,
            )
        except TypeError as error:
            self.discard()
            raise click.UsageError(str(error)) from error
        except BaseException:
            self.discard()
            raise

    @property
    def is_whole(self) -> bool:
        """True if nothing of it can be read before it is finished."""
        return (self.file is not None and self.file.hidden is not None) or self.format in AT_THE_END

    def write(self, items: Any) -> None:
        """Writes items, and hands them on, unless the format or the file must be complete first."""
        self.writer.write(items)
        self.items += len(items)
        if not self.is_whole:
            self.writer.flush()

    def finish(self) -> None:
        """Writes the end, and gives a file its name."""
        self.writer.close()
        if self.file is not None:
            self.file.commit()

    def discard(self) -> None:
        if self.file is not None:
            self.file.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and self.file is not None:
            with contextlib.suppress(Exception):  # else it would be closed when it is garbage, and complain
                self.writer.close()
        self.discard()


def chosen_format(to: Path | None) -> str:
    if to is None:
        return "table" if sys.stdout.isatty() else "jsonl"
    found = format_of_file(to)
    if found is None:
        raise click.UsageError(
            f"a file's name must say its format: {to.name!r}; end it with one of {', '.join(ENDINGS)}, or give --format"
        )
    return found
