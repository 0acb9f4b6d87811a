"""JSON lines: a row is a line. Records are objects; other items are a value without an object around it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import numpy as np

from queueduct.formats.rows import BadRow, Batch, arriving_lines, dtype_of
from queueduct.formats.values import bytes_to_json, check_type, from_json, to_json

__all__ = ["JsonLinesWriter", "as_line", "item_from", "read_json_lines"]


class JsonLinesWriter:
    """Writes each item as a line."""

    def __init__(self, stream: BinaryIO, item: Any) -> None:
        self.stream = stream
        self.item = item
        dtype = dtype_of(item)
        if dtype is not None:
            check_type(dtype, "", "JSON")

    def write(self, items: Any) -> None:
        self.stream.write(b"".join([as_line(value) for value in values_of(items, self.item)]))

    def flush(self) -> None:
        self.stream.flush()

    def close(self) -> None:
        self.stream.flush()


def values_of(items: Any, item: Any) -> list[Any]:
    """Returns what json.dumps takes for each item."""
    if item is bytes:
        return [bytes_to_json(one) for one in items]
    if item is object:
        return list(items)
    return to_json(np.asarray(items))


def as_line(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, default=shown)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair, which only an escape can write
        return json.dumps(value, default=shown).encode() + b"\n"


def shown(value: Any) -> Any:
    """What an object of Python's that JSON has no value for is shown as. It does not come back."""
    return bytes_to_json(value) if isinstance(value, bytes) else {"repr": repr(value)}


def item_from(item: Any) -> Callable[[str | bytes], Any]:
    """Returns the function that makes an item of a text of JSON. It raises ValueError for one that is none."""
    dtype = dtype_of(item)
    if dtype is not None:
        check_type(dtype, "", "JSON")
    convert: Callable[[Any], Any] = as_it_is if item is object else from_json(dtype)

    def made(text: str | bytes) -> Any:
        try:
            value = json.loads(text)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        except ValueError as error:
            shown = text[:80].decode(errors="replace") if isinstance(text, bytes) else text[:80]
            remedy = "; put each line as it is with --format lines" if item is bytes else ""
            raise ValueError(f"it is no JSON ({error}): {shown!r}{remedy}") from None
        if item is bytes and not isinstance(value, (str, dict)):
            raise ValueError(f"an item of bytes must be text: {value!r}; put each line as it is with --format lines")
        return convert(value)

    return made


def as_it_is(value: Any) -> Any:
    return value


def remedy_for(line: bytes) -> str:
    """Returns what to do about rows that take several lines, or are together in one list."""
    text = line.strip()
    if text in (b"{", b"[", b"[{") or text.startswith((b"[{", b"[[")):
        return "; each row is a line of its own, as jq -c . writes them, and of a list jq -c '.[]'"
    return ""


def read_json_lines(stream: BinaryIO, item: Any, rows: int) -> Iterator[Batch]:
    made = item_from(item)
    number = 0
    for lines in arriving_lines(stream, rows):
        items: list[Any] = []
        places: list[int] = []
        for line in lines:
            number += 1
            if not line.strip():
                continue
            try:
                items.append(made(line))
            except ValueError as error:
                if items:
                    yield Batch(items, places, "line")
                raise BadRow(f"line {number}", f"{error}{remedy_for(line)}") from None
            places.append(number)
        if items:
            yield Batch(items, places, "line")
