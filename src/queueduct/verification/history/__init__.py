"""Histories: the records of runs, written and read."""

from __future__ import annotations

__all__ = ["COLUMNS", "needs_pyarrow"]

COLUMNS = {
    "worker": "int64",
    "op": "string",
    "outcome": "string",
    "value": "int64",
    "ticket": "int64",
    "invoke_ns": "int64",
    "return_ns": "int64",
    "reader": "int64",
    "redelivered": "bool",
    "weak": "bool",
}


def needs_pyarrow() -> None:
    """Raises if pyarrow is missing. Called before a run: no history is written or read without it."""
    try:
        import pyarrow.parquet  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise ImportError(
            "a history is written and read with pyarrow, which is not installed; pip install 'queueduct[check]'"
        ) from error
