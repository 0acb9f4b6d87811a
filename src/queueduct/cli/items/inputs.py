"""Where items come from: the command line, files, a pipe."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import click

from queueduct.formats import BadRow, Batch, batches, format_of_file

__all__ = ["BATCH_ROWS", "Part", "parts", "size_of"]

BATCH_ROWS = 4096
STDIN = "-"


class Part(NamedTuple):
    """Some items, and where each comes from."""

    items: Any
    source: str
    places: list[str]
    """As in ``line 3``; with the source before it, it tells a person where to look."""
    stream: BinaryIO | None = None

    def place(self, index: int) -> str:
        return f"{self.source}, {self.places[index]}"

    def single(self, index: int) -> Part:
        return Part(self.items[index : index + 1], self.source, self.places[index : index + 1])


def parts(words: tuple[str, ...], item: Any, format_name: str | None, *, is_text: bool, rows: int) -> Iterator[Part]:
    """Yields the items of all words in turn; without words, of what stdin brings. Files are looked for first."""
    if not words:
        if is_text:
            raise click.UsageError("--text takes items from the command line: give some")
        if sys.stdin is None or sys.stdin.isatty():  # None: a shell has closed it, by <&-
            raise click.UsageError("there must be something to put: give items, or files, or pipe them in")
        words = (STDIN,)
    is_of_file = [not is_text and names_file(word, format_name) for word in words]
    for word, is_file in zip(words, is_of_file, strict=True):
        if is_file and word != STDIN and not Path(word).exists():
            raise click.UsageError(f"there is no file {word!r}; to put this text itself give --text")
    made: Callable[[str], Any] | None = None
    for number, (word, is_file) in enumerate(zip(words, is_of_file, strict=True), 1):
        if is_file:
            yield from parts_of_file(word, item, format_name or format_of_file(word) or "jsonl", rows)
            continue
        made = made or item_of_words(item)
        try:
            value = made(word)
        except ValueError as error:
            is_json = is_text or item is bytes or word.lstrip()[:1] in ("{", "[")
            hint = "" if is_json else "; a file is known by its ending, or by --format"
            raise BadRow(f"item {number}", f"{error}{hint}") from None
        yield Part([value], "the command line", [f"item {number}"])


def names_file(word: str, format_name: str | None) -> bool:
    return word == STDIN or format_name is not None or format_of_file(word) is not None


def item_of_words(item: Any) -> Callable[[str], Any]:
    """Returns the function that makes an item of a word: of bytes the word itself, else JSON."""
    if item is bytes:
        return os.fsencode
    from queueduct.formats.json_lines import item_from

    return item_from(item)


def parts_of_file(word: str, item: Any, format_name: str, rows: int) -> Iterator[Part]:
    name = "stdin" if word == STDIN else word
    with contextlib.ExitStack() as stack:
        stream: BinaryIO = sys.stdin.buffer if word == STDIN else stack.enter_context(Path(word).open("rb"))
        try:
            for batch in batches(format_name, stream, item, rows):
                yield Part(batch.items, name, places_of(batch), stream)
        except BadRow as bad:
            raise BadRow(f"{name}, {bad.place}", bad.problem) from bad.__cause__
        except TypeError as error:
            raise click.UsageError(str(error)) from error


def places_of(batch: Batch) -> list[str]:
    return [batch.place(index) for index in range(len(batch.places))]


def size_of(words: tuple[str, ...], format_name: str | None, *, is_text: bool) -> int | None:
    """Returns how many bytes the files have; None if a pipe is among them."""
    files = [word for word in words if not is_text and names_file(word, format_name)]
    if not files or STDIN in files:
        return None
    with contextlib.suppress(OSError):
        return sum(os.stat(word).st_size for word in files)
    return None
