"""Prove a history correct: could a correct queue have produced it? Exact conditions, in n log n, on Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.spark.pipelines.checking.deciding import decide
from penstock.spark.pipelines.checking.figures import figures_of
from penstock.spark.pipelines.checking.one_piece import InOnePiece, read_rows
from penstock.spark.pipelines.checking.page import page
from penstock.spark.pipelines.checking.reading import OnSpark
from penstock.spark.pipelines.checking.record import History, read_history
from penstock.spark.pipelines.checking.verdict import HistoryError, Verdict, Violation

__all__ = ["HistoryError", "Verdict", "Violation", "check", "needs_spark", "write_report"]

WIDTH = 1 << 20


def check(
    spark: SparkSession | None,
    directory: str | Path,
    *,
    width: int = WIDTH,
    progress: Callable[[str], None] = lambda step: None,
) -> Verdict:
    """The verdict on the history in ``directory``: ``.ok``, ``.operations``, ``.proved``, ``.violations``.

    ``width`` is how many positions, or about how many moments, one task holds in memory at a time; a history of at
    most twice as many operations is checked in one piece, by this process, and needs no session.
    Raises HistoryError, a ValueError, if the history cannot be checked as it is.
    """
    if width < 1:
        raise ValueError(f"width must be at least 1: width={width}; try {WIDTH}")
    progress("reading the manifest and the ends of the files")
    history = read_history(directory)
    try:
        return decide(history, table_of(spark, history, width), width, progress)
    except PySparkException as error:
        raise unreadable(directory, str(error)) from error


def write_report(spark: SparkSession | None, directory: str | Path, verdict: Verdict, path: str | Path) -> None:
    """The verdict as one HTML file: throughput, latency, occupancy, and a timeline of the first violations."""
    history = read_history(directory)
    figures = figures_of(table_of(spark, history, WIDTH), verdict)
    Path(path).write_text(page(history, verdict, figures), encoding="utf-8")


def table_of(spark: SparkSession | None, history: History, width: int) -> InOnePiece | OnSpark:
    if needs_spark(history, width):
        if spark is None:
            raise ValueError(f"a history of {history.operations:,} operations needs a session of Spark: it is None")
        return OnSpark(spark, history)
    try:
        return InOnePiece(history, read_rows(history))
    except (pa.ArrowException, OSError) as error:
        raise unreadable(history.directory, f"Parquet: {error}") from error


def needs_spark(history: History, width: int = WIDTH) -> bool:
    """Is it longer than one bucket of a put and a get at every position?"""
    return history.operations > 2 * width


def unreadable(directory: str | Path, text: str) -> Exception:
    """Spark's word for a file that is damaged inside; anything else stays what it is."""
    if "FAILED_READ_FILE" in text or "CANNOT_READ_FILE" in text or "Parquet" in text:
        return HistoryError(
            f"every Parquet file must be whole: one in {directory} cannot be read; record the run again"
        )
    return RuntimeError(text.partition("\n")[0])
