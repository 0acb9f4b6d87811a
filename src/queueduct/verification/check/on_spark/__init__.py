"""A history that does not fit in memory, in a session of Spark; and Spark's errors as one line that says why."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from queueduct.verification.check.on_spark.table import SparkTable, read_by_parts
from queueduct.verification.check.part import Part
from queueduct.verification.history.format import History, HistoryError

__all__ = ["opened_on_spark"]


@contextlib.contextmanager
def opened_on_spark(spark: SparkSession, history: History) -> Iterator[SparkTable[Part]]:
    try:
        with own_python(spark):
            yield read_by_parts(spark, history)
    except (PySparkException, Py4JError) as error:
        kind, words = cause_of(str(error))
        if kind == "HistoryError":
            raise HistoryError(words) from error
        raise RuntimeError(f"{kind}: {words}" if kind else words) from error


def cause_of(text: str) -> tuple[str, str]:
    """Returns the class and the text of the last Python error in a message with the stacks of two languages.

    Without one it returns no class, and the last cause of Java's, or the first line.
    """
    _, found, stack = text.rpartition("Traceback (most recent call last):")
    line = next((line for line in stack.splitlines() if line and not line.startswith(" ")), "") if found else ""
    if line:
        name, _, words = line.partition(": ")
        return name.rpartition(".")[2], words
    causes = re.findall(r"^Caused by: (?:[\w.$]+: )?(.+)$", text, re.MULTILINE)
    return "", str(causes[-1]) if causes else text.partition("\n")[0]


@contextlib.contextmanager
def own_python(spark: SparkSession) -> Iterator[None]:
    """Workers on this machine run this Python, which has queueduct, unless a setting says which."""
    context = spark.sparkContext
    is_told = "PYSPARK_PYTHON" in os.environ or context.getConf().contains("spark.pyspark.python")
    if is_told or not str(context.master).startswith("local"):
        yield
        return
    before, context.pythonExec = context.pythonExec, sys.executable
    try:
        yield
    finally:
        context.pythonExec = before
