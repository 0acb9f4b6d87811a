"""What the report draws: how many operations when, how long they took, how full the queue was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as fn

from queueduct.verification.check.in_memory import InOnePiece
from queueduct.verification.check.on_spark.buckets import bucket_of
from queueduct.verification.check.on_spark.table import OnSpark
from queueduct.verification.check.operations import Longs
from queueduct.verification.check.verdict import Verdict, Violation
from queueduct.verification.check.witnesses import Row

__all__ = ["Figures", "Scene", "figures_of"]

BINS = 240
QUANTILES = (0.5, 0.9, 0.99, 0.999, 1.0)
SCENES, ROWS_IN_SCENE = 4, 40


@dataclass(frozen=True)
class Scene:
    """A violation, and what else went on at that time."""

    violation: Violation
    rows: list[Row]
    begin_ns: int
    end_ns: int


@dataclass(frozen=True)
class Figures:
    start_ns: int
    bin_ns: int
    ended: dict[str, Longs]
    """Operations that returned in each bin, by "put ok", "get empty", …"""
    latencies: dict[str, list[int]]
    """Nanoseconds at each of the quantiles."""
    scenes: list[Scene]

    @property
    def occupancy(self) -> Longs:
        """Items in the queue at the end of each bin; of a log with several readers, gets count for all of them."""
        nothing = np.zeros(BINS, np.int64)
        return np.cumsum(self.ended.get("put ok", nothing)) - np.cumsum(self.ended.get("get ok", nothing))


def figures_of(table: InOnePiece | OnSpark, verdict: Verdict) -> Figures:
    start, end = extent_in_one_piece(table) if isinstance(table, InOnePiece) else extent_on_spark(table)
    length = max(1, -(-(end - start + 1) // BINS))
    if isinstance(table, InOnePiece):
        ended, latencies = counted_in_one_piece(table, start, length)
    else:
        ended, latencies = counted_on_spark(table, start, length)
    scenes = [scene_of(table, violation) for violation in first_of_each_rule(verdict.violations)]
    return Figures(start, length, ended, latencies, scenes)


def first_of_each_rule(violations: Sequence[Violation]) -> list[Violation]:
    seen: dict[str, Violation] = {}
    for violation in violations:
        if any(witness.get("invoke_ns") is not None for witness in violation.witnesses):
            seen.setdefault(violation.rule, violation)
    return list(seen.values())[:SCENES]


def extent_in_one_piece(table: InOnePiece) -> tuple[int, int]:
    if not len(table.table):
        return 0, 0
    rows = table.rows()
    ends = table.longs("return_ns", 0)
    return int(rows.invoke.min()), int(max(ends.max(), rows.invoke.max()))


def extent_on_spark(table: OnSpark) -> tuple[int, int]:
    found = table.rows.agg(fn.min("invoke_ns"), fn.max("invoke_ns"), fn.max("return_ns")).collect()[0]
    return int(found[0]), int(max(found[1], found[2] or found[1]))


Counted = tuple[dict[str, Longs], dict[str, list[int]]]


def counted_in_one_piece(table: InOnePiece, start: int, length: int) -> Counted:
    ended: dict[str, Longs] = {}
    latencies: dict[str, list[int]] = {}
    names = np.asarray(table.table.column("op").to_pylist()), np.asarray(table.table.column("outcome").to_pylist())
    invoke, ret = table.longs("invoke_ns", 0), table.longs("return_ns", -1)
    for op in ("put", "get"):
        for outcome in ("ok", "full", "empty"):
            chosen = (names[0] == op) & (names[1] == outcome)
            if chosen.any():
                bins = (ret[chosen] - start) // length
                ended[f"{op} {outcome}"] = np.bincount(bins, minlength=BINS)[:BINS].astype(np.int64)
                took = np.quantile(ret[chosen] - invoke[chosen], QUANTILES, method="lower")
                latencies[f"{op} {outcome}"] = [int(each) for each in took]
    return ended, latencies


def counted_on_spark(table: OnSpark, start: int, length: int) -> Counted:
    done = table.rows.filter(fn.col("return_ns").isNotNull())
    bins = bucket_of(fn.col("return_ns") - start, length).alias("bin")
    ended: dict[str, Longs] = {}
    for row in done.groupBy("op", "outcome", bins).count().collect():
        series = ended.setdefault(f"{row['op']} {row['outcome']}", np.zeros(BINS, np.int64))
        series[min(int(row["bin"]), BINS - 1)] += row["count"]
    took = fn.percentile_approx(fn.col("return_ns") - fn.col("invoke_ns"), list(QUANTILES), 10_000)
    latencies = {
        f"{row['op']} {row['outcome']}": [int(each) for each in row["took"]]
        for row in done.groupBy("op", "outcome").agg(took.alias("took")).collect()
    }
    return ended, latencies


def scene_of(table: InOnePiece | OnSpark, violation: Violation) -> Scene:
    """Everything that overlaps the time of the witnesses, as far as there is room for it."""
    known = [witness for witness in violation.witnesses if witness.get("invoke_ns") is not None]
    begin = min(int(witness["invoke_ns"]) for witness in known)
    end = max(int(witness.get("return_ns") or witness["invoke_ns"]) for witness in known)
    margin = max(1, (end - begin) // 4)
    rows = overlapping(table, begin - margin, end + margin)
    return Scene(violation, rows[:ROWS_IN_SCENE], begin - margin, end + margin)


def overlapping(table: InOnePiece | OnSpark, begin: int, end: int) -> list[Row]:
    most = ROWS_IN_SCENE * 10
    if isinstance(table, InOnePiece):
        chosen = (table.longs("invoke_ns", 0) <= end) & (table.longs("return_ns", end + 1) >= begin)
        places = np.flatnonzero(chosen)[:most]
        found: list[Any] = table.table.take(pa.array(places)).to_pylist()
        return sorted(found, key=lambda row: int(row["invoke_ns"]))
    is_near = (fn.col("invoke_ns") <= end) & (fn.coalesce("return_ns", fn.lit(end + 1)) >= begin)
    return sorted(table.listed(is_near, most), key=lambda row: int(row["invoke_ns"]))
