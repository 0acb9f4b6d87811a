"""CSV: a header with the names of the fields, and a line for each row. The standard library reads it.

The fields of a nested record are columns with a dot, as in ``at.x``; a sub-array is a cell of JSON; items that are no
records are the column ``value``. Bytes are text if they are UTF-8 and do not begin with ``base64:``, else they are
``base64:`` and the base64 of them. A time that is not known is an empty cell.
"""

from __future__ import annotations

import base64
import contextlib
import csv
import io
import json
import re
import select
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from queueduct.formats.rows import BadRow, Batch, dtype_of, is_pipe
from queueduct.formats.values import bytes_from, bytes_to_json, check_type, counted, from_json, time_from, to_json

__all__ = ["CsvWriter", "read_csv"]

VALUE = "value"
BASE64 = "base64:"
CELL_LIMIT = (1 << 31) - 1
INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")
TO_QUOTE = re.compile(r'[",\r\n]')
SIGNED = re.compile(r"[+-][0-9]+")
BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


class Leaf(NamedTuple):
    """A column: where its field is, and what it holds."""

    path: tuple[str, ...]
    dtype: np.dtype[Any] | None
    """None for bytes."""

    @property
    def name(self) -> str:
        return ".".join(self.path) or VALUE


def leaves_of(item: Any) -> list[Leaf]:
    dtype = dtype_of(item)
    if item is object:
        raise TypeError("Python objects have no columns: item=object; use the format jsonl")
    if dtype is None:
        return [Leaf((), None)]
    check_type(dtype, "", "CSV")
    found = list(inner_leaves(dtype, ()))
    names = [leaf.name for leaf in found]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise TypeError(f"each column of CSV needs a name of its own: two fields are {twice!r}; use the format jsonl")
    return found


def inner_leaves(dtype: np.dtype[Any], path: tuple[str, ...]) -> Iterator[Leaf]:
    if dtype.names is None:
        yield Leaf(path, dtype)
        return
    for name in dtype.names:
        yield from inner_leaves(dtype[name], (*path, name))


class CsvWriter:
    """Writes the header with the first items, and each item as a line."""

    def __init__(self, stream: BinaryIO, item: Any) -> None:
        self.leaves = leaves_of(item)
        self.stream = stream
        self.has_header = False

    def write(self, items: Any) -> None:
        self.write_header()
        if self.leaves[0].dtype is None:
            columns = [[bytes_cell(bytes_to_json(one)) for one in items]]
        else:
            records = np.asarray(items)
            columns = [cells_of(leaf, column_of(records, leaf.path)) for leaf in self.leaves]
        self.stream.write(b"".join(map(line_of, zip(*columns, strict=True))))

    def write_header(self) -> None:
        if not self.has_header:
            self.has_header = True
            self.stream.write(line_of([leaf.name for leaf in self.leaves]))

    def flush(self) -> None:
        self.stream.flush()

    def close(self) -> None:
        self.write_header()
        self.flush()


def line_of(cells: Sequence[str]) -> bytes:
    """Returns a line. The standard library's writer leaves a lone carriage return bare, and reads it as an end."""
    found = ",".join([quoted(cell) if TO_QUOTE.search(cell) else cell for cell in cells]) or '""'
    return f"{found}\n".encode("utf-8", "surrogatepass")


def quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


def column_of(records: np.ndarray[Any, Any], path: tuple[str, ...]) -> np.ndarray[Any, Any]:
    for name in path:
        records = records[name]
    return records


def cells_of(leaf: Leaf, values: np.ndarray[Any, Any]) -> list[str]:
    listed = to_json(values)
    assert leaf.dtype is not None
    if leaf.dtype.subdtype is not None:
        return [json.dumps(value, ensure_ascii=False) for value in listed]
    kind = leaf.dtype.kind
    if kind in "SV":
        return [bytes_cell(value) for value in listed]
    if kind == "U":
        return listed
    if kind == "b":
        return ["true" if value else "false" for value in listed]
    if kind == "f":
        return [value if isinstance(value, str) else repr(value) for value in listed]
    if kind == "M":  # the sign tells a number of units from a year
        return ["" if value is None else f"{value:+d}" if isinstance(value, int) else value for value in listed]
    return ["" if value is None else str(value) for value in listed]


def bytes_cell(value: Any) -> str:
    if isinstance(value, dict):
        return f"{BASE64}{value['base64']}"
    if value.startswith(BASE64):
        return BASE64 + base64.b64encode(value.encode()).decode()
    return str(value)


def cell_reader(leaf: Leaf) -> Callable[[str], Any]:
    """Returns the function that makes a value of a cell. It raises ValueError for one that is none."""
    if leaf.dtype is None or (leaf.dtype.subdtype is None and leaf.dtype.kind in "SV"):
        return bytes_of
    if leaf.dtype.subdtype is not None:
        convert = from_json(leaf.dtype)
        return lambda cell: convert(json_of(cell))
    dtype = leaf.dtype
    readers: dict[str, Callable[[str], Any]] = {
        "b": boolean_of,
        "i": integer_of,
        "u": integer_of,
        "f": float_of,
        "M": lambda cell: counted(dtype, int(cell)) if SIGNED.fullmatch(cell) else time_from(cell or None),
        "m": lambda cell: counted(dtype, integer_of(cell)) if cell else np.timedelta64("NaT"),
        "U": lambda cell: cell,
    }
    return readers[leaf.dtype.kind]


def bytes_of(cell: str) -> Any:
    if cell.startswith(BASE64):
        return bytes_from({"base64": cell.removeprefix(BASE64)})
    return cell.encode()


def json_of(cell: str) -> Any:
    try:
        return json.loads(cell)
    except ValueError as error:
        raise ValueError(f"an array must be a list of JSON: {cell[:80]!r} ({error})") from None


def boolean_of(cell: str) -> bool:
    found = BOOLEANS.get(cell.strip().lower())
    if found is None:
        raise ValueError(f"it is neither true nor false: {cell!r}")
    return found


def integer_of(cell: str) -> int:
    if not INTEGER.fullmatch(cell):
        raise ValueError(f"it is no whole number: {cell!r}")
    return int(cell)


def float_of(cell: str) -> float:
    try:
        if "_" in cell:
            raise ValueError
        return float(cell)
    except ValueError:
        raise ValueError(f"it is no number: {cell!r}") from None


def read_csv(stream: BinaryIO, item: Any, rows: int) -> Iterator[Batch]:
    csv.field_size_limit(CELL_LIMIT)
    leaves = leaves_of(item)
    text = io.TextIOWrapper(stream, "utf-8-sig", "surrogatepass", newline="")
    lines = csv.reader(text, strict=True)
    waits = is_pipe(stream)
    items: list[Any] = []
    places: list[int] = []
    problem: BadRow | None = None
    try:
        header = next(lines, None)
        if header is None:
            return
        order = column_order(header, leaves)
        readers = [(order[leaf.name], leaf, cell_reader(leaf)) for leaf in leaves]
        for cells in lines:
            if not cells:
                continue
            items.append(row_of(cells, len(header), readers, dtype_of(item), lines.line_num))
            places.append(lines.line_num)
            if len(items) >= rows or (waits and not select.select([stream], [], [], 0)[0]):
                yield Batch(items, places, "line")
                items, places = [], []
    except BadRow as bad:
        problem = bad
    except csv.Error as error:
        problem = BadRow(f"line {lines.line_num}", f"it is no CSV: {error}")
    except UnicodeDecodeError as error:
        problem = BadRow(f"line {lines.line_num + 1}", f"it is not UTF-8: {error.reason}")
    finally:
        with contextlib.suppress(ValueError):  # it is closed already
            text.detach()  # else the stream would be closed with it
    if items:
        yield Batch(items, places, "line")
    if problem is not None:
        raise problem


def column_order(header: list[str], leaves: list[Leaf]) -> dict[str, int]:
    names = [leaf.name for leaf in leaves]
    if sorted(header) != sorted(names):
        missing = ", ".join(name for name in names if name not in header) or "none"
        unknown = ", ".join(sorted({name for name in header if header.count(name) > names.count(name)})) or "none"
        raise BadRow(
            "line 1",
            f"the header must name exactly the columns of the queue: missing: {missing}; unknown: {unknown}; "
            f"write {','.join(names)}",
        )
    return {name: at for at, name in enumerate(header)}


def row_of(
    cells: list[str],
    width: int,
    readers: list[tuple[int, Leaf, Callable[[str], Any]]],
    dtype: np.dtype[Any] | None,
    line: int,
) -> Any:
    if len(cells) != width:
        raise BadRow(f"line {line}", f"a row must have {width} cells, as the header has: it has {len(cells)}")
    values = []
    for at, leaf, read in readers:
        try:
            values.append(read(cells[at]))
        except ValueError as error:
            raise BadRow(f"line {line}", f"column {leaf.name!r}: {error}") from None
    if dtype is None or dtype.names is None:
        return values[0]
    return nested(dtype, iter(values))


def nested(dtype: np.dtype[Any], values: Iterator[Any]) -> Any:
    if dtype.names is None:
        return next(values)
    return tuple([nested(dtype[name], values) for name in dtype.names])
