"""Rows from elsewhere, as records: Arrow tables and streams, and the data frames of polars and pandas."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from queueduct.arrow.records import UnfitValue, chosen_columns, fill_items, fitted, to_items
from queueduct.arrow.scatter.fields import blank
from queueduct.arrow.schema import VALUE, dtype_of, given_dtype, schema_of
from queueduct.errors import UnfitItem

__all__ = ["records_from", "rows_of"]

BATCH_ROWS = 1 << 16  # so many rows of text have room in an array with offsets of 4 bytes


def records_from(data: Any, dtype: Any) -> Any:
    """Returns rows as one array of records of this dtype; with ``bytes``, as a list of bytes.

    ``data`` is a pyarrow Table or RecordBatch, a data frame of polars or pandas, or anything that has
    ``__arrow_c_stream__`` or ``__arrow_c_array__``. The columns are found by name, in any order. A missing or an
    unknown column, a null, and a value that would change in its field raise UnfitItem, a ValueError, which names the
    column, the row and the value. The index of a pandas frame is no column.

    >>> import pyarrow, queueduct.arrow
    >>> queueduct.arrow.records_from(pyarrow.table({"price": [1.5, 2.5]}), np.dtype([("price", "f8")]))
    array([(1.5,), (2.5,)], dtype=[('price', '<f8')])
    """
    item = dtype if dtype is bytes or dtype is object else given_dtype("dtype", dtype)
    if item is not object:  # which chosen_columns refuses
        schema_of(item)
    table = rows_of(data)
    try:
        columns = chosen_columns(table.schema.names, item)
    except UnfitItem as error:
        raise with_index_named(error, data, item) from None
    if item is bytes:
        values: list[bytes] = []
        for row, batch in numbered(table):
            with naming_the_row(batch, row, columns, item):
                values += to_items(batch, columns, item)
        return values
    records = blank(table.num_rows, dtype_of(item))
    for row, batch in numbered(table):
        with naming_the_row(batch, row, columns, item):
            fill_items(records[row : row + batch.num_rows], batch, columns)
    return records


def numbered(table: pa.Table) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yields the batches of a table, each with the number of its first row."""
    row = 0
    for batch in table.to_batches(BATCH_ROWS):
        yield row, batch
        row += batch.num_rows


@contextlib.contextmanager
def naming_the_row(batch: pa.RecordBatch, row: int, columns: Sequence[str], item: object) -> Iterator[None]:
    """Raises what a conversion of the batch raises. The error names the first row that does not fit, and its value."""
    try:
        yield
    except UnfitValue:
        at, column, error = first_unfit(batch, columns, item)
        value = shown(batch.column(column).slice(at, 1))
        raise UnfitItem(f"{error.problem}, in row {row + at}: {value}; {error.remedy}") from error


def first_unfit(batch: pa.RecordBatch, columns: Sequence[str], item: Any) -> tuple[int, str, UnfitValue]:
    """Returns the first row that does not fit, its column, and that row's own error. There is such a row."""
    fits, fails = 0, batch.num_rows  # the rows before `fits` all fit, and of those before `fails` one does not
    while fails - fits > 1:
        middle = (fits + fails) // 2
        try:
            to_items(batch.slice(fits, middle - fits), columns, item)
            fits = middle
        except UnfitValue:
            fails = middle
    one = batch.slice(fits, 1)
    for name in columns:
        try:
            fitted(one.column(name), name, item if item is bytes or item.names is None else item[name])
        except UnfitValue as error:
            return fits, name, error
    raise AssertionError(f"row {fits} fits alone, and not with others")


def shown(one: pa.Array) -> str:
    """Returns the only value of an array as text, also a time that is beyond the reach of Python's types."""
    try:
        text = repr(one[0].as_py())
    except (ValueError, OverflowError):
        text = " ".join(str(one).split())
    return text if len(text) <= 80 else text[:77] + "..."


def with_index_named(error: UnfitItem, data: Any, item: Any) -> UnfitItem:
    """Returns the error with its remedy if what is missing is the index of a pandas frame."""
    index = getattr(getattr(data, "index", None), "names", ())
    wanted = [name for name in index if item is not bytes and name in (item.names or ()) and name not in data.columns]
    if not wanted:
        return error
    return UnfitItem(f"{error}; an index is not put: reset_index() makes a column of {', '.join(map(repr, wanted))}")


def rows_of(data: Any) -> pa.Table:
    """Returns the data as a table, without a copy where its memory is Arrow's."""
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, pa.RecordBatchReader):
        return data.read_all()  # an exception of its own code comes through
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(data, pandas.DataFrame):
        return pandas_table(data)
    if hasattr(data, "__arrow_c_stream__"):
        return table_of(pa.chunked_array(data))
    if hasattr(data, "__arrow_c_array__"):
        return table_of(pa.chunked_array([pa.array(data)]))
    raise TypeError(
        f"rows must come from an Arrow table, a data frame or an Arrow stream: {type(data).__name__}; "
        "for lists, dicts and arrays use put_many"
    )


def table_of(rows: pa.ChunkedArray) -> pa.Table:
    """Returns the fields of structs as columns, as tables are streamed; other values as the one column ``value``."""
    if not pa.types.is_struct(rows.type):
        return pa.table({VALUE: rows})
    if rows.null_count:
        row = rows.is_null().index(True).as_py()
        raise UnfitItem(f"a row must be no null: row {row} of {len(rows)} is one; filter them first")
    return pa.Table.from_struct_array(rows)


def pandas_table(frame: Any) -> pa.Table:
    """Returns the columns without the index. NaN of a float stays NaN: pyarrow would make it a null."""
    names = [str(name) for name in frame.columns]
    columns = [frame.iloc[:, at] for at in range(len(names))]
    arrays = [
        pa.array(one.to_numpy())
        if isinstance(one.dtype, np.dtype) and one.dtype.kind == "f"
        else pandas_column(one, name)
        for name, one in zip(names, columns, strict=True)
    ]
    return pa.Table.from_arrays(arrays, names=names)


def pandas_column(series: Any, name: str) -> Any:
    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise UnfitItem(
            f"column {name!r} has values of several types, or of one that Arrow has not; {error}"
        ) from error
