"""Tables of items. A collector gathers the columns while the records are still in the memory of the queue."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from queueduct.arrow.columns import BadValue, column, no_text, too_far
from queueduct.arrow.gather._gatherer import Gatherer, GatherPlan
from queueduct.arrow.gather.plan import Leaf, Plan, Unplanned
from queueduct.arrow.schema import VALUE, schema_of

__all__ = ["ColumnPlan", "Columns", "get_table", "part_rows", "plan_of", "read_table", "table_from"]

BLOCK_BYTES = 1 << 18  # that are read at a time: they stay in the cache while they are gathered
PART_BYTES = 1 << 30  # the most that one batch gathers: the offsets of texts have 4 bytes
KEPT_PLANS = 64
allocate_buffer = pa.allocate_buffer
import_batch = pa.RecordBatch._import_from_c


class ColumnPlan:
    """How items become the columns of a schema. Never changes, so it is made once and used for many batches."""

    def __init__(self, item: Any, schema: pa.Schema) -> None:
        self.schema = schema
        self.most = part_rows(item)
        self.gathered: GatherPlan | None = None
        self.leaves: list[Leaf] = []
        self.others: list[tuple[int, str, np.dtype[Any], pa.DataType]] = []
        if item is bytes:
            return
        dtype = np.dtype(item)
        plan = Plan(dtype.itemsize)
        for at, (field, (name, inner, offset)) in enumerate(zip(schema, fields_of(dtype), strict=True)):
            try:
                plan.add(inner, offset, field.type, name)
            except Unplanned:
                self.others.append((at, name, inner, field.type))
        others = [at for at, *_ in self.others]
        self.gathered = plan.finished()
        self.gathered_schema = pa.schema([field for at, field in enumerate(schema) if at not in others])
        self.leaves = [leaf for leaf in plan.leaves if leaf.kind in ("texts", "days")]


PLANS: dict[tuple[Any, str], ColumnPlan] = {}


def plan_of(item: Any, strings: str) -> ColumnPlan:
    """Returns a plan that is kept: to make one takes longer than to gather a thousand records."""
    plan = PLANS.get((item, strings))
    if plan is None:
        plan = ColumnPlan(item, schema_of(item, strings=strings))
        if len(PLANS) >= KEPT_PLANS:
            PLANS.clear()
        PLANS[item, strings] = plan
    return plan


class Columns:
    """Collects items and makes one batch of them: made for at most ``rows`` items, then ``add`` and ``batch``.

    ``add`` only copies, and never refuses what it reads: a reader learns after it whether the records were still kept.
    ``position`` is that of the first item, for errors; None if the items have none. All columns of a batch share one
    block of memory, which goes with the last of them.
    """

    __slots__ = ("gatherer", "others", "plan", "position", "rows", "values")

    def __init__(self, plan: ColumnPlan, rows: int, position: int | None = None) -> None:
        self.plan = plan
        self.position = position
        self.rows = 0
        self.values: list[bytes] = []
        self.gatherer = None if plan.gathered is None else Gatherer(plan.gathered, rows, allocate_buffer)
        self.others: list[np.ndarray[Any, Any]] = []
        if plan.others:
            self.others = [np.empty(rows, dtype) for _, _, dtype, _ in plan.others]

    def add(self, items: Any) -> None:
        """Copies items: an array of records, or a list of bytes."""
        if self.gatherer is None:
            self.values += items
            return
        self.gatherer.gather(items if items.ndim == 1 else whole_items(items))
        if self.others:
            is_record = items.ndim == 1 and items.dtype.names is not None  # else one value, perhaps an array of records
            for (_, name, _, _), values in zip(self.plan.others, self.others, strict=True):
                values[self.rows : self.rows + len(items)] = items[name] if is_record else items
        self.rows += len(items)

    def batch(self, rows: int | None = None) -> pa.RecordBatch:
        """Returns the first ``rows`` items, or all. Raises ValueError for a value that its column cannot hold."""
        plan, gatherer = self.plan, self.gatherer
        if gatherer is None:
            return pa.RecordBatch.from_arrays([bytes_array(self.values[:rows])], schema=plan.schema)
        count = self.rows if rows is None else rows
        others: list[pa.Array] = []
        try:
            if gatherer.has_doubts():
                for leaf in plan.leaves:
                    check_leaf(gatherer, leaf, count)
            if plan.others:
                others = self.other_columns(count)
        except BadValue as bad:
            place = f"row {bad.row}" if self.position is None else f"position {self.position + bad.row}"
            raise ValueError(f"{bad}, at {place}; {bad.remedy}") from None
        batch = import_batch(gatherer.batch_address(count), plan.gathered_schema)
        if not others:
            return batch
        arrays = batch.columns
        for (at, _, _, _), array in zip(plan.others, others, strict=True):
            arrays.insert(at, array)
        return pa.RecordBatch.from_arrays(arrays, schema=plan.schema)

    def other_columns(self, rows: int) -> list[pa.Array]:
        """Returns the columns that numpy makes, of the first rows."""
        return [
            column(values[:rows], target, name)
            for values, (_, name, _, target) in zip(self.others, self.plan.others, strict=True)
        ]


def check_leaf(gatherer: Gatherer, leaf: Leaf, rows: int) -> None:
    """Raises unless all values of the first rows are what their column can hold."""
    if leaf.kind == "texts":
        bad = gatherer.bad_text(leaf.column, rows * leaf.values, leaf.is_utf8)
        if bad >= 0:
            value = None if leaf.is_points else gatherer.text_at(leaf.column, bad)
            raise no_text(leaf.path, bad // leaf.values, value)
        return
    element, day = gatherer.too_far(leaf.column)
    if 0 <= element < rows * leaf.values:
        raise too_far(leaf.path, np.datetime64(day, "D"), "D", element // leaf.values)


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
    plan = plan_of(item, strings)
    most = plan.most
    step = 1 << 14 if item is bytes else max(1, BLOCK_BYTES // np.dtype(item).itemsize)
    batches = []
    for first in range(start, stop, most):
        last = min(first + most, stop)
        columns = Columns(plan, last - first, first)
        for at in range(first, last, step):
            columns.add(queue.read(at, min(at + step, last)))
        batches.append(columns.batch())
    return pa.Table.from_batches(batches, plan.schema)


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
    return array_table(records, item, plan_of(item, strings))


def array_table(records: np.ndarray[Any, Any], item: np.dtype[Any], plan: ColumnPlan) -> pa.Table:
    schema = plan.schema
    if item.kind in "iuf" and item.subdtype is None and item.isnative and records.flags.c_contiguous:
        array = pa.Array.from_buffers(schema.field(0).type, len(records), [None, pa.py_buffer(records)])
        return pa.table([array], schema=schema)
    batches = []
    for first in range(0, len(records), plan.most):
        part = records[first : first + plan.most]
        columns = Columns(plan, len(part))
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
