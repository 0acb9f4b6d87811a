"""A history of any length: Spark reads it part by part, and carries rows to the task that judges them.

Nothing is judged by Spark: its workers run the same numpy functions as a check in memory. So rows never become rows of
Spark's own. A part is read by pyarrow in a worker, and arrays travel as they are, one object a task that wants some.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from pyspark import RDD, StorageLevel
from pyspark.sql import SparkSession

from queueduct.verification.check.part import Part
from queueduct.verification.check.table import Carried, Piece, Pieces, Result
from queueduct.verification.history.format import DataFile, History
from queueduct.verification.history.reader import read_parts

__all__ = ["SparkTable", "read_by_parts"]


def read_by_parts(spark: SparkSession, history: History) -> SparkTable[Part]:
    """One task for each row group. Each work on the table reads the files again."""
    groups = [(file, group) for file in history.files for group in range(file.row_groups)]

    def parts(group: tuple[DataFile, int]) -> Iterator[Part]:
        return (Part.of(batch, history) for batch in read_parts(group[0], [group[1]]))

    return SparkTable(spark.sparkContext.parallelize(groups, max(1, len(groups))).flatMap(parts))


class SparkTable(Pieces[Piece]):
    def __init__(self, pieces: RDD[Piece]) -> None:
        self.pieces = pieces

    def each(self, work: Callable[[Piece], Iterable[Result]]) -> list[Result]:
        return self.pieces.flatMap(work).collect()

    def mapped(self, work: Callable[[Piece], Iterable[Result]]) -> SparkTable[Result]:
        return SparkTable(self.pieces.flatMap(work))

    def carried(
        self, split: Callable[[Piece], Iterable[tuple[int, Carried]]], tasks: int
    ) -> SparkTable[tuple[int, list[Carried]]]:
        def numbered(group: int, pieces: Iterable[Piece]) -> Iterator[tuple[int, Any]]:
            for number, (task, carried) in enumerate(chain.from_iterable(map(split, pieces))):
                yield task, (group, number, carried)

        def collected(task: int, arrived: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, list[Carried]]]:
            ordered = sorted((each for _, each in arrived), key=lambda each: each[:2])
            yield task, [carried for _, _, carried in ordered]

        keyed = self.pieces.mapPartitionsWithIndex(numbered)
        return SparkTable(keyed.partitionBy(tasks, int).mapPartitionsWithIndex(collected))

    @contextlib.contextmanager
    def kept(self) -> Iterator[SparkTable[Piece]]:
        self.pieces.persist(StorageLevel.DISK_ONLY)
        try:
            yield self
        finally:
            self.pieces.unpersist()
