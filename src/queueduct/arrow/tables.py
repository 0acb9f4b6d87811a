"""Tables of items. A collector gathers the columns while the records are still in the memory of the queue."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from queueduct.arrow import _texts
from queueduct.arrow._gather import Gatherer
from queueduct.arrow.columns import BadValue, column, no_unicode, text_array
from queueduct.arrow.schema import VALUE, schema_of

__all__ = ["Columns", "get_table", "part_rows", "read_table", "table_from"]

BLOCK_BYTES = 1 << 18  # that are read at a time: they stay in the cache while they are gathered
PART_BYTES = 1 << 30  # the most that one batch gathers: the offsets of texts have 4 bytes


class Columns:
    """Collects items and makes one batch of them: made for at most ``rows`` items, then ``add`` and ``batch``.

    ``add`` only copies, and never refuses what it reads: a reader learns after it whether the records were still kept.
    ``position`` is that of the first item, for errors; None if the items have none.
    """

    def __init__(self, item: Any, schema: pa.Schema, rows: int, position: int | None = None) -> None:
        self.schema = schema
        self.position = position
        self.values: list[bytes] = []
        self.columns: list[Column] = []
        self.gatherer: Gatherer | None = None
        if item is bytes:
            return
        dtype = np.dtype(item)
        self.gatherer = Gatherer(dtype.itemsize, rows)
        for field, (path, inner, offset) in zip(schema, fields_of(dtype), strict=True):
            column_type = Texts if inner.subdtype is None and inner.kind in "SU" and inner.isnative else Column
            self.columns.append(column_type(self.gatherer, inner, offset, field.type, path, rows))

    def add(self, items: Any) -> None:
        """Copies items: an array of records, or a list of bytes."""
        if self.gatherer is None:
            self.values += items
        else:
            self.gatherer.gather(items if items.ndim == 1 else whole_items(items))

    def batch(self, rows: int | None = None) -> pa.RecordBatch:
        """Returns the first ``rows`` items, or all. Raises ValueError for a value that its column cannot hold."""
        if self.gatherer is None:
            return pa.RecordBatch.from_arrays([bytes_array(self.values[:rows])], schema=self.schema)
        try:
            arrays = [one.array(rows) for one in self.columns]
        except BadValue as bad:
            place = f"row {bad.row}" if self.position is None else f"position {self.position + bad.row}"
            raise ValueError(f"{bad}, at {place}; {bad.remedy}") from None
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def whole_items(items: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Returns items that are arrays as one value each: the gatherer copies items, and knows no dimensions."""
    item_bytes = items.dtype.itemsize * int(np.prod(items.shape[1:]))
    return np.ascontiguousarray(items).reshape(-1).view(np.dtype((np.void, item_bytes)))


def fields_of(dtype: np.dtype[Any]) -> list[tuple[str, np.dtype[Any], int]]:
    """Returns the name, dtype and offset of each field; of items that are no records, those of the one column."""
    if dtype.names is None:
        return [(VALUE, dtype, 0)]
    fields: dict[str, Any] = dict(dtype.fields or {})
    return [(name, fields[name][0], fields[name][1]) for name in dtype.names]


def allocated(size: int) -> np.ndarray[Any, Any]:
    """Returns memory of Arrow's own pool, which uses again what it has freed: new memory costs more than the copy."""
    return np.frombuffer(pa.allocate_buffer(max(size, 1)), np.uint8)[:size]


class Column:
    """One field, copied as numpy has it. Numbers are then an Arrow array as they are; others are converted."""

    def __init__(
        self, gatherer: Gatherer, dtype: np.dtype[Any], offset: int, target: pa.DataType, path: str, rows: int
    ) -> None:
        memory = allocated(rows * dtype.itemsize)
        self.values = np.ndarray(rows, dtype, memory)
        self.target = target
        self.path = path
        gatherer.add_values(offset, dtype.itemsize, memory)

    def array(self, rows: int | None) -> pa.Array:
        values = self.values[:rows]
        if values.ndim == 1 and values.dtype.kind in "iuf" and values.dtype.isnative:
            return pa.Array.from_buffers(self.target, len(values), [None, pa.py_buffer(values)])
        return column(values, self.target, self.path)


class Texts(Column):
    """Texts, packed as Arrow has them."""

    def __init__(
        self, gatherer: Gatherer, dtype: np.dtype[Any], offset: int, target: pa.DataType, path: str, rows: int
    ) -> None:
        self.target = target
        self.path = path
        self.gatherer = gatherer
        self.offsets = allocated((rows + 1) * 4).view(np.int32)
        self.offsets[0] = 0
        self.data = allocated(rows * dtype.itemsize + _texts.SPARE)
        self.number = gatherer.add_texts(offset, dtype.itemsize, dtype.kind == "U", self.offsets, self.data)

    def array(self, rows: int | None) -> pa.Array:
        count = len(self.offsets) - 1 if rows is None else rows
        is_ascii, bad_row = self.gatherer.packed(self.number)
        if 0 <= bad_row < count:
            raise no_unicode(self.path, bad_row)
        return text_array(self.target, count, self.offsets, self.data, is_ascii, self.path)


def bytes_array(values: list[bytes]) -> pa.Array:
    array = pa.array(values, pa.binary())
    if isinstance(array, pa.ChunkedArray):  # above 2 GB
        raise ValueError(f"{len(values)} items are more than one batch of 2 GB holds; take fewer with max_items")
    return array


def part_rows(item: Any) -> int:
    """Returns how many items one batch may have."""
    return 1 << 20 if item is bytes else max(1, PART_BYTES // np.dtype(item).itemsize)


def read_table(queue: Any, start: int, stop: int, strings: str) -> pa.Table:
    """Returns the items of these positions. The caller has checked these."""
    item = queue.item
    schema = schema_of(item, strings=strings)
    most = part_rows(item)
    step = 1 << 14 if item is bytes else max(1, BLOCK_BYTES // np.dtype(item).itemsize)
    batches = []
    for first in range(start, stop, most):
        last = min(first + most, stop)
        columns = Columns(item, schema, last - first, first)
        for at in range(first, last, step):
            columns.add(queue.read(at, min(at + step, last)))
        batches.append(columns.batch())
    return pa.Table.from_batches(batches, schema)


def table_from(records: Any, *, strings: str = "string") -> pa.Table:
    """Returns records as an Arrow table: one array, as get_many returns it, or a list of bytes.

    Single numbers are not copied. Raises TypeError for a type that Arrow has no column for, and ValueError for a value
    that its column cannot hold; both name the field.

    >>> import queueduct.arrow
    >>> queueduct.arrow.table_from(np.array([1.5, 2.5])).column("value").to_pylist()
    [1.5, 2.5]
    """
    if isinstance(records, (list, tuple)):
        wrong = next((one for one in records if not isinstance(one, bytes)), None)
        if wrong is not None:
            raise TypeError(f"a list must have bytes only: it has {wrong!r}; give records as one numpy array")
        return pa.table([pa.array(records, pa.binary())], schema=schema_of(bytes))
    if not isinstance(records, np.ndarray) or records.ndim == 0:
        raise TypeError(f"records must be a numpy array or a list of bytes: {records!r}; get_many returns either")
    records = np.asarray(records)
    item = records.dtype if records.ndim == 1 else np.dtype((records.dtype, records.shape[1:]))
    if item.hasobject:
        raise TypeError(f"an array of Python objects has no columns: dtype={item}; give it a dtype of numbers or text")
    return array_table(records, item, schema_of(item, strings=strings))


def array_table(records: np.ndarray[Any, Any], item: np.dtype[Any], schema: pa.Schema) -> pa.Table:
    if item.kind in "iuf" and item.subdtype is None and item.isnative and records.flags.c_contiguous:
        array = pa.Array.from_buffers(schema.field(0).type, len(records), [None, pa.py_buffer(records)])
        return pa.table([array], schema=schema)
    most = part_rows(item)
    batches = []
    for first in range(0, len(records), most):
        part = records[first : first + most]
        columns = Columns(item, schema, len(part))
        columns.add(part)
        batches.append(columns.batch())
    return pa.Table.from_batches(batches, schema)


def get_table(queue: Any, max_items: int, timeout: float | None = None, *, strings: str = "string") -> pa.Table:
    """Gets items as ``queue.get_many(max_items, timeout=timeout)`` does, and returns them as an Arrow table.

    Where the queue has leases, items that have no columns stay in it: the error names the field.

    >>> import queueduct.arrow
    >>> q = queueduct.BoundedQueue.create(None, item=[("price", "f8")])
    >>> q.put((1.5,))
    >>> queueduct.arrow.get_table(q, 100).column("price").to_pylist()
    [1.5]
    """
    if not (hasattr(queue, "get_many") and hasattr(queue, "item")):
        raise TypeError(f"get_table gets from a queue: {queue!r}; for a Reader use its to_arrow()")
    schema_of(queue.item, strings=strings)  # raises before anything is taken
    if not hasattr(queue, "lease"):
        return table_from(queue.get_many(max_items, timeout=timeout), strings=strings)
    with queue.lease(max_items, timeout=timeout) as lease:
        items = lease.items
        return table_from(items.copy() if isinstance(items, np.ndarray) else items, strings=strings)
