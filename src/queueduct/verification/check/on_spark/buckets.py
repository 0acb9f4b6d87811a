"""Which bucket a position, or a moment, belongs to: the same on every pass and every machine."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as fn

__all__ = ["bucket_of"]


def bucket_of(position: Column, width: int) -> Column:
    """Rounded down; nothing is sampled."""
    return ((position - fn.pmod(position, fn.lit(width))) / fn.lit(width)).cast("long")
