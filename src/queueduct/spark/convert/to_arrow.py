"""Items and their positions to a batch with Spark's schema."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from queueduct.arrow.columns import BadValue, columns_of

__all__ = ["to_batch"]


def to_batch(items: Any, at: int | np.ndarray[Any, Any], schema: pa.Schema) -> pa.RecordBatch:
    """Returns items as a batch with exactly this schema. ``at`` is their first position, or all of them."""
    numbers = np.arange(at, at + len(items)) if isinstance(at, int) else np.ascontiguousarray(at)
    positions = pa.array(numbers, pa.int64())
    if isinstance(items, list):  # of bytes
        columns = [pa.array(items, pa.binary())]
    else:
        try:
            columns = columns_of(items, [schema.field(index) for index in range(len(schema) - 1)])
        except BadValue as bad:
            raise ValueError(f"{bad}, at position {numbers[bad.row]}; {bad.remedy}") from None
    return pa.RecordBatch.from_arrays([*columns, positions], schema=schema)
