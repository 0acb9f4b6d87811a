"""Prove a history correct: could a correct queue have produced it? Exact conditions, in n log n, on Spark."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from queueduct.spark.pipelines.running import cause
from queueduct.verification.check.decide import decide
from queueduct.verification.check.in_memory import InOnePiece, read_rows
from queueduct.verification.check.on_spark.table import OnSpark
from queueduct.verification.check.report.figures import figures_of
from queueduct.verification.check.report.html import page
from queueduct.verification.check.verdict import HistoryError, Verdict, Violation
from queueduct.verification.history.format import History, read_history

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
    with named_errors(history), own_python(spark):
        return decide(history, table_of(spark, history, width), width, progress)


def write_report(spark: SparkSession | None, directory: str | Path, verdict: Verdict, path: str | Path) -> None:
    """The verdict as one HTML file: throughput, latency, occupancy, and a timeline of the first violations."""
    history = read_history(directory)
    with named_errors(history), own_python(spark):
        figures = figures_of(table_of(spark, history, WIDTH), verdict)
    whole = Path(path)
    unfinished = whole.with_name(f".{whole.name}.{os.getpid()}.tmp")  # a reader of the report never sees half of it
    try:
        unfinished.write_text(page(history, verdict, figures), encoding="utf-8")
        os.replace(unfinished, whole)
    finally:
        unfinished.unlink(missing_ok=True)


def table_of(spark: SparkSession | None, history: History, width: int) -> InOnePiece | OnSpark:
    if needs_spark(history, width):
        if spark is None:
            raise ValueError(f"a history of {history.operations:,} operations needs a session of Spark: it is None")
        return OnSpark(spark, history)
    return InOnePiece(history, read_rows(history))


def needs_spark(history: History, width: int = WIDTH) -> bool:
    """Is it longer than one bucket of a put and a get at every position?"""
    return history.operations > 2 * width


@contextlib.contextmanager
def named_errors(history: History) -> Iterator[None]:
    """Of Spark's errors the one line that says what went wrong; and its cause is kept."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = str(error)
        refused = re.search(r"^(?:\S*\.)?HistoryError: (.*)$", text, re.MULTILINE)
        if refused:
            raise HistoryError(refused[1]) from error
        damaged = re.search(r"(?:FAILED|CANNOT)_READ_FILE.* (?:file:/*)?(/.*?)\.? +SQLSTATE", text)
        if damaged:
            reason = f"every Parquet file must be whole: {damaged[1]}: {cause_of(text)}; record the run again"
            raise HistoryError(reason) from error
        raise RuntimeError(cause_of(text)) from error


def cause_of(text: str) -> str:
    """The last cause of an error with the stacks of two languages; else its first line."""
    if "Traceback (most recent call last)" in text:
        return cause(text)
    causes = re.findall(r"^Caused by: (?:[\w.$]+: )?(.+)$", text, re.MULTILINE)
    return str(causes[-1]) if causes else text.partition("\n")[0]


def says_its_python(context: SparkContext) -> bool:
    return "PYSPARK_PYTHON" in os.environ or context.getConf().contains("spark.pyspark.python")


@contextlib.contextmanager
def own_python(spark: SparkSession | None) -> Iterator[None]:
    """Workers on this machine run this Python, which has queueduct, unless somebody has said which."""
    context = None if spark is None else spark.sparkContext
    if context is None or not str(context.master).startswith("local") or says_its_python(context):
        yield
        return
    before, context.pythonExec = context.pythonExec, sys.executable
    try:
        yield
    finally:
        context.pythonExec = before
