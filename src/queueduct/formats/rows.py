"""What the formats share: batches of rows, rows that are none, and what writes them."""

from __future__ import annotations

import select
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple, Protocol

import numpy as np

__all__ = ["BadRow", "Batch", "RowWriter", "arriving_lines", "dtype_of", "no_such_type"]

CHUNK_BYTES = 1 << 16


class BadRow(ValueError):
    """A row that no item can be made of. ``place`` says where it is: ``line 3``, or ``row 3``."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(f"{place}: {problem}")
        self.place = place
        self.problem = problem


class Batch(NamedTuple):
    """Some rows, as ``put_many`` takes them."""

    items: Any
    """A list, or an array of records."""
    places: range | list[int]
    """The number of each row in its file: of its line, or of the row itself; both begin with 1."""
    unit: str
    """What these numbers count: ``line`` or ``row``."""

    def place(self, index: int) -> str:
        return f"{self.unit} {self.places[index]}"


class RowWriter(Protocol):
    """Writes items into a stream."""

    def write(self, items: Any) -> None:
        """Writes items: an array of records, or a list."""
        ...

    def flush(self) -> None:
        """Hands on all that was written, as far as the format can before its end."""
        ...

    def close(self) -> None:
        """Writes the end of the format. The stream stays open."""
        ...


def dtype_of(item: Any) -> np.dtype[Any] | None:
    """Returns the dtype of records; None for bytes and objects."""
    return None if item is bytes or item is object else np.dtype(item)


def no_such_type(path: str, dtype: object, format_name: str) -> TypeError:
    where = f"field {path!r}" if path else "the item"
    return TypeError(f"{where} has a type that {format_name} has no value for: {dtype}; use the format raw")


def arriving_lines(stream: BinaryIO, most: int) -> Iterator[list[bytes]]:
    """Yields lists of whole lines without their ends: what has come by now, and of a file as many as ``most``.

    A line ends with a newline, and the last one need not have it.
    """
    unbuffered: BinaryIO = getattr(stream, "raw", stream)
    waits = is_pipe(stream)
    rest = b""
    lines: list[bytes] = []
    while True:
        chunk = unbuffered.read(CHUNK_BYTES)
        if not chunk:
            break
        first, *others = chunk.split(b"\n")
        if others:
            lines.append(rest + first)
            lines += others[:-1]
            rest = others[-1]
        else:
            rest += first
        while len(lines) >= most:
            yield lines[:most]
            lines = lines[most:]
        if lines and waits and not select.select([unbuffered], [], [], 0)[0]:
            yield lines
            lines = []
    if rest:
        lines.append(rest)
    for at in range(0, len(lines), most):
        yield lines[at : at + most]


def is_pipe(stream: BinaryIO) -> bool:
    try:
        return not stream.seekable() and stream.fileno() >= 0
    except (OSError, ValueError):
        return False
