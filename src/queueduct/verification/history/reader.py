"""The rows of a record with the types of the record, part by part: a file may be longer than memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from queueduct.verification.history.format import COLUMNS, FARTHEST, OPTIONAL, DataFile, History, HistoryError

__all__ = ["SCHEMA", "read_parts", "with_defaults"]

NAMES = pa.dictionary(pa.int32(), pa.string())
"""Of the columns of text: few words, many times."""
SCHEMA = pa.schema(
    [(name, NAMES if kind == "string" else pa.type_for_alias(kind)) for name, kind in (COLUMNS | OPTIONAL).items()]
)
ROWS_A_PART = 1 << 17


def read_parts(file: DataFile, row_groups: Iterable[int] | None = None) -> Iterator[pa.RecordBatch]:
    """Of these row groups; of all if none are named."""
    wanted = [name for name in SCHEMA.names if name not in file.untyped]
    texts = [name for name in wanted if SCHEMA.field(name).type == NAMES]
    try:
        with pq.ParquetFile(file.path, read_dictionary=texts) as opened:
            for part in opened.iter_batches(ROWS_A_PART, row_groups=row_groups, columns=wanted):
                columns = [
                    typed(part.column(name), name, file.path)
                    if name in wanted
                    else pa.nulls(len(part), SCHEMA.field(name).type)
                    for name in SCHEMA.names
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise HistoryError(f"every Parquet file must be whole: {file.path}: {reason}; record the run again") from error


def typed(column: pa.Array, name: str, path: str) -> pa.Array:
    wanted = SCHEMA.field(name).type
    if pa.types.is_floating(column.type):
        return whole(column, name, path)
    if wanted == NAMES and not pa.types.is_dictionary(column.type):
        return column.cast(pa.string()).dictionary_encode()
    try:
        return column.cast(wanted)
    except pa.ArrowInvalid as error:
        raise HistoryError(
            f"the column {name} must be {wanted}: in {path} it is {column.type}, with values beyond; "
            f"write it as {wanted}"
        ) from error


def whole(column: pa.Array, name: str, path: str) -> pa.Array:
    """Floats that are whole numbers, up to where the next whole number is no float; NaN is null."""
    numbers = np.asarray(pc.fill_null(column, np.nan), np.float64)
    is_null = np.isnan(numbers)
    most = 2.0 ** (24 if pa.types.is_float32(column.type) else 53)
    bad = ~is_null & ((np.abs(numbers) > most) | (np.floor(numbers) != numbers))
    if bad.any():
        raise HistoryError(
            f"the column {name} must be {SCHEMA.field(name).type}: in {path} it is {column.type}, "
            f"and {float(numbers[bad][0])!r} may have lost digits; write it as {SCHEMA.field(name).type}"
        )
    return pa.array(np.where(is_null, 0.0, numbers).astype(np.int64), mask=is_null)


def with_defaults(table: pa.Table, history: History) -> pa.Table:
    """Flags that are null are false, tickets count from the first, and only a log has readers."""
    changed = {flag: pc.fill_null(table.column(flag), False) for flag in ("redelivered", "weak", "torn")}
    if history.first_ticket:
        ticket = pc.max_element_wise(table.column("ticket"), -FARTHEST, skip_nulls=False)
        changed["ticket"] = pc.subtract(ticket, history.first_ticket)
    if history.kind != "events":
        changed["reader"] = pa.nulls(len(table), pa.int64())
    for name, column in changed.items():
        table = table.set_column(table.schema.get_field_index(name), name, column)
    return table
