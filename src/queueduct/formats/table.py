"""A table of aligned columns, for a terminal. Widths come from what was written so far, and only grow."""

from __future__ import annotations

import unicodedata
from typing import Any, BinaryIO

import numpy as np

from queueduct.formats.json_lines import as_line, values_of
from queueduct.formats.rows import dtype_of

__all__ = ["TableWriter", "printable"]

LEAST_WIDTH = 8
GAP = "  "


class TableWriter:
    """Writes records below a header, each in a line; other items as they are, without a header."""

    def __init__(self, stream: BinaryIO, item: Any, width: int | None) -> None:
        self.stream = stream
        self.item = item
        self.limit = width
        dtype = dtype_of(item)
        kinds = [] if dtype is None else [dtype[name] for name in dtype.names or ()]
        self.names = [] if dtype is None else list(dtype.names or ())
        self.is_right = [kind.subdtype is None and kind.kind in "iuf" for kind in kinds]
        self.widths: list[int] = []

    def write(self, items: Any) -> None:
        if not self.names:
            texts = [cell(value) for value in plain_values(items, self.item)]
            self.stream.write("".join(f"{self.cut(text)}\n" for text in texts).encode())
            return
        records = np.asarray(items)
        columns = [[cell(value) for value in plain_values(records[name], records.dtype[name])] for name in self.names]
        is_first = not self.widths
        before = self.widths or [min(columns_of(name), 40) for name in self.names]
        self.widths = [max(width, *map(columns_of, column)) for width, column in zip(before, columns, strict=True)]
        rows = ([self.names] if is_first else []) + [list(row) for row in zip(*columns, strict=True)]
        self.stream.write("".join(f"{self.line(row)}\n" for row in rows).encode())

    def line(self, row: list[str]) -> str:
        cells = zip(row, self.widths, self.is_right, strict=True)
        return self.cut(GAP.join(padded(text, width, is_right) for text, width, is_right in cells).rstrip())

    def cut(self, text: str) -> str:
        if self.limit is None or columns_of(text) <= self.limit:
            return text
        room = max(LEAST_WIDTH, self.limit) - 1
        while columns_of(text) > room:
            text = text[:room] if len(text) > room else text[:-1]
        return text + "…"

    def flush(self) -> None:
        self.stream.flush()

    def close(self) -> None:
        self.stream.flush()


def plain_values(items: Any, item: Any) -> list[Any]:
    """Returns what JSON would have; of types that it has no value for, numpy's text."""
    try:
        return values_of(items, item)
    except (TypeError, ValueError):
        return [str(value) for value in items]


def cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict) and value.keys() == {"base64"}:
        return f"base64:{value['base64']}"
    return printable(as_line(value).decode(errors="replace").rstrip("\n"))


def printable(text: str) -> str:
    """Returns the text with escapes in place of what a terminal would obey."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape", "replace").decode() for one in text)


def columns_of(text: str) -> int:
    """Returns how many columns of a terminal it takes."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(one) else 1 + (unicodedata.east_asian_width(one) in "WF") for one in text)


def padded(text: str, width: int, is_right: bool) -> str:
    filling = " " * (width - columns_of(text))
    return filling + text if is_right else text + filling
