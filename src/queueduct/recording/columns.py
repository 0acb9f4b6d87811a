"""The columns of an archive: those of the queue's items, the position, and when the item was recorded."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from queueduct.arrow.schema import schema_of
from queueduct.arrow.tables import ColumnPlan, Columns

__all__ = ["POSITION", "RECORDED", "Part", "Shape"]

POSITION = "position"  # as Spark's archive has it
RECORDED = "recorded_at"
RECORDED_TYPE = pa.timestamp("us", tz="UTC")


class Part(NamedTuple):
    """Items that were taken from the queue."""

    items: Any
    """An array of records, or a list of bytes."""
    positions: np.ndarray[Any, Any]
    recorded_us: np.ndarray[Any, Any]
    """When each was taken, in microseconds since 1970."""
    bytes: int

    @classmethod
    def of(cls, items: Any, positions: np.ndarray[Any, Any]) -> Part:
        """Returns items that were taken just now."""
        size = int(items.nbytes) if isinstance(items, np.ndarray) else sum(map(len, items))
        return cls(items, positions, np.full(len(positions), time.time_ns() // 1000), size)

    @classmethod
    def merged(cls, parts: Sequence[Part]) -> Part:
        if len(parts) == 1:
            return parts[0]
        is_array = isinstance(parts[0].items, np.ndarray)
        return cls(
            np.concatenate([part.items for part in parts])
            if is_array
            else [one for part in parts for one in part.items],
            np.concatenate([part.positions for part in parts]),
            np.concatenate([part.recorded_us for part in parts]),
            sum(part.bytes for part in parts),
        )


class Shape:
    """The columns of one archive's files."""

    def __init__(self, item: Any, *, strings: str, position_column: str, recorded_column: str | None) -> None:
        self.item = item
        self.items = schema_of(item, strings=strings)
        self.position_column = position_column
        self.recorded_column = recorded_column
        own = [pa.field(position_column, pa.int64(), nullable=False)]
        if recorded_column is not None:
            own.append(pa.field(recorded_column, RECORDED_TYPE, nullable=False))
        names = [*self.items.names, *(field.name for field in own)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(
                f"each column of an archive needs a name of its own: {', '.join(twice)} is there twice; name the "
                "position's otherwise with position_column (--position-column), or the time's with recorded_column "
                "(--recorded-column)"
            )
        self.schema = pa.schema([*self.items, *own])
        self.plan = ColumnPlan(item, self.items)

    def batch(self, parts: Sequence[Part]) -> pa.RecordBatch:
        """Returns the parts as one batch. Raises ValueError for a value that its column cannot hold."""
        positions = parts[0].positions if len(parts) == 1 else np.concatenate([part.positions for part in parts])
        is_whole = positions[-1] - positions[0] == len(positions) - 1
        columns = Columns(self.plan, len(positions), int(positions[0]) if is_whole else None)
        for part in parts:
            columns.add(part.items)
        arrays = [*columns.batch().columns, numbers(positions, pa.int64())]
        if self.recorded_column is not None:
            times = parts[0].recorded_us if len(parts) == 1 else np.concatenate([part.recorded_us for part in parts])
            arrays.append(numbers(times, RECORDED_TYPE))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def dictionary_columns(self) -> list[str]:
        """Returns the paths of the columns that get dictionaries: those whose values often come again."""
        return [path for path, kind in self.leaves() if is_text(kind) or is_short(kind)]

    def difference_columns(self) -> dict[str, str]:
        """Returns the paths of the columns that are kept as differences of neighbours: times, numbers of orders.

        That takes a quarter of a dictionary's time to write and to read, and where values rise a quarter of its bytes.
        """
        found = [path for path, kind in self.leaves() if is_long(kind)]
        return dict.fromkeys(found, "DELTA_BINARY_PACKED")

    def leaves(self) -> Iterator[tuple[str, pa.DataType]]:
        for field in self.schema:
            yield from leaves(field.type, field.name)


def numbers(values: np.ndarray[Any, Any], kind: pa.DataType) -> pa.Array:
    """Returns the array without a copy. pa.array would import pandas first."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values, np.int64))])


def leaves(kind: pa.DataType, path: str) -> Iterator[tuple[str, pa.DataType]]:
    """Yields the paths of a column's innermost values, as Parquet names them, and their types."""
    if pa.types.is_struct(kind):
        for field in kind:
            yield from leaves(field.type, f"{path}.{field.name}")
    elif pa.types.is_fixed_size_list(kind):
        yield from leaves(kind.value_type, f"{path}.list.element")
    else:
        yield path, kind


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def is_short(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind)) and kind.bit_width <= 16


def is_long(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_temporal(kind)) and kind.bit_width >= 32
