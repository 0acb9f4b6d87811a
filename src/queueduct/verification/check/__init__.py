"""The check of a history: could a correct queue have produced it? Exact conditions, in n log n.

A history that fits in memory is checked by this process, with numpy and pyarrow. A longer one is checked on Spark, by
the same functions: Spark only carries rows to the task that judges them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from queueduct.verification.check.decide import decide
from queueduct.verification.check.in_memory import read_whole
from queueduct.verification.check.report.figures import figures_of
from queueduct.verification.check.report.html import page
from queueduct.verification.check.table import Table
from queueduct.verification.check.verdict import Verdict, Violation
from queueduct.verification.history.format import History, HistoryError, read_history

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["HistoryError", "Verdict", "Violation", "check", "needs_spark", "write_report"]

WIDTH = 1 << 20


def check(
    directory: str | Path,
    *,
    spark: SparkSession | None = None,
    width: int = WIDTH,
    progress: Callable[[str], None] = lambda step: None,
) -> Verdict:
    """The verdict on the history in ``directory``: ``.ok``, ``.operations``, ``.proved``, ``.violations``.

    ``width`` is how many positions, or about how many moments, one task holds in memory at a time. A history of at most
    twice as many operations is checked by this process; a longer one needs ``spark``, a session.
    Raises HistoryError, a ValueError, if the history cannot be checked as it is.
    """
    if width < 1:
        raise ValueError(f"width must be at least 1: width={width}; try {WIDTH}")
    progress("reading the manifest and the ends of the files")
    history = read_history(directory)
    with opened(history, spark, width) as table:
        return decide(history, table, width, progress)


def write_report(
    directory: str | Path, verdict: Verdict, path: str | Path, *, spark: SparkSession | None = None
) -> None:
    """The verdict as one HTML file: throughput, latency, occupancy, and a timeline of the first violations."""
    history = read_history(directory)
    with opened(history, spark, WIDTH) as table:
        figures = figures_of(table, verdict)
    whole = Path(path)
    unfinished = whole.with_name(f".{whole.name}.{os.getpid()}.tmp")  # a reader of the report never sees half of it
    try:
        unfinished.write_text(page(history, verdict, figures), encoding="utf-8")
        os.replace(unfinished, whole)
    finally:
        unfinished.unlink(missing_ok=True)


@contextlib.contextmanager
def opened(history: History, spark: SparkSession | None, width: int) -> Iterator[Table]:
    if not needs_spark(history, width):
        yield read_whole(history)
        return
    if spark is None:
        raise ValueError(
            f"a history of more than {2 * width:,} operations is checked on Spark: {history.directory} has "
            f"{history.operations:,}; give check a session as spark=…, as queueduct.spark.session() makes one"
        )
    from queueduct.verification.check.on_spark import opened_on_spark

    with opened_on_spark(spark, history) as table:
        yield table


def needs_spark(history: History, width: int = WIDTH) -> bool:
    """Returns true if the history is longer than one bucket with a put and a get at every position."""
    return history.operations > 2 * width
