"""Rows from elsewhere, as records: Arrow tables and streams, and the data frames of polars and pandas."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pyarrow as pa

from queueduct.arrow.records import chosen_columns, to_items
from queueduct.arrow.schema import schema_of

__all__ = ["records_from", "rows_of"]

BATCH_ROWS = 1 << 16  # so many rows of text have room in an array with offsets of 4 bytes


def records_from(data: Any, dtype: Any) -> Any:
    """Returns rows as one array of records of this dtype; with ``bytes``, as a list of bytes.

    ``data`` is a pyarrow Table or RecordBatch, a data frame of polars or pandas, or anything that has
    ``__arrow_c_stream__`` or ``__arrow_c_array__``. The columns are found by name, in any order. A missing or an
    unknown column, a null, and a value that would change in its field raise ValueError, which names the column.
    """
    item = dtype if dtype is bytes or dtype is object else np.dtype(dtype)
    if item is not object:  # which chosen_columns refuses
        schema_of(item)
    table = rows_of(data)
    columns = chosen_columns(table.schema.names, item)
    if item is bytes:
        return [value for batch in table.to_batches(BATCH_ROWS) for value in to_items(batch, columns, item)]
    records = np.zeros(table.num_rows, item)
    row = 0
    for batch in table.to_batches(BATCH_ROWS):
        records[row : row + batch.num_rows] = to_items(batch, columns, item)
        row += batch.num_rows
    return records


def rows_of(data: Any) -> pa.Table:
    """Returns the data as a table, without a copy where its memory is Arrow's."""
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(data, pandas.DataFrame):
        return pandas_table(data)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data).read_all()
    if hasattr(data, "__arrow_c_array__"):
        return pa.Table.from_batches([pa.record_batch(data)])
    raise TypeError(
        f"rows must come from an Arrow table, a data frame or an Arrow stream: {type(data).__name__}; "
        "for records of numpy use put_many"
    )


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
        raise ValueError(
            f"column {name!r} has values of several types, or of one that Arrow has not; {error}"
        ) from error
