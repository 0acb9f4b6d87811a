"""Arrow: records as columns and columns as records, for pyarrow, polars, DuckDB and pandas. Needs queueduct[arrow]."""

try:
    import pyarrow as _pyarrow  # noqa: F401
except ImportError as _error:
    raise ImportError(
        "queueduct.arrow needs pyarrow, which is not installed: pip install 'queueduct[arrow]'", name="pyarrow"
    ) from _error

from queueduct.arrow.schema import schema_of
from queueduct.arrow.sources import records_from
from queueduct.arrow.tables import get_table, table_from

__all__ = ["get_table", "records_from", "schema_of", "table_from"]
