"""The command: ``python -m benchmarks.spark``."""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks import machine, results
from benchmarks.units import digits, written

EXAMPLES = """\b
Examples:
  python -m benchmarks.spark --quick          a few minutes
  python -m benchmarks.spark                  five rounds of twenty million rows
  python -m benchmarks.spark --only stream    one row
"""


@dataclass(frozen=True)
class Row:
    """Ours against one of Spark's own, in one unit."""

    name: str
    title: str
    other: str
    unit: str
    wanted: float
    at_least: bool = True
    own_limit: float | None = None
    """The goal in the unit itself, if it is none of the ratio."""

    def ratio(self, ours: float, theirs: float) -> float:
        return ours / theirs

    def is_reached(self, ours: list[float], ratio: float) -> bool:
        if self.own_limit is not None:
            return statistics.median(ours) <= self.own_limit
        return ratio >= self.wanted if self.at_least else ratio <= self.wanted

    def goal(self) -> str:
        if self.own_limit is not None:
            return f"≤ {self.own_limit:g} {self.unit}"
        return f"{'≥' if self.at_least else '≤'} {self.wanted:g}x"


WARM_UPS = 2  # Java compiles what it has seen often enough
ROWS = {
    "stream": Row("stream", "streaming read into noop", "Parquet stream", "rows/s", 0.85),
    "batch": Row("batch", "batch read into noop", "Parquet scan", "rows/s", 0.65),
    "socket": Row("socket", "streaming read into noop", "socket source", "rows/s", 20.0),
    "floor": Row("floor", "micro-batch of one row", "rate-micro-batch", "s", 1.2, at_least=False),
    "archive": Row("archive", "archive", "Parquet stream to Parquet", "rows/s", 0.9),
    "latency": Row("latency", "put to foreachBatch, p50", "rate source", "s", 1.0, at_least=False, own_limit=0.12),
    "sink": Row("sink", "batch write", "Parquet writer", "rows/s", 0.5),
}


@click.command(epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--quick", is_flag=True, help="Three rounds of five million rows.")
@click.option("--only", multiple=True, type=click.Choice(list(ROWS)), help="Only this row; may be repeated.")
@click.option("--rows", type=click.IntRange(min=1000), help="How many rows; 20 million, or 5 with --quick.")
@click.option("--rounds", type=click.IntRange(min=1), help="Rounds; 5, or 3 with --quick.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("build/bench-spark"), show_default=True)
def main(quick: bool, only: tuple[str, ...], rows: int | None, rounds: int | None, out: Path) -> None:
    """Measure source and sink beside Spark's own, in one session, in turn, with every row counted."""
    console = Console()
    about: dict[str, Any] = {
        "machine": machine.machine(),
        "commit": machine.commit(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "rows": rows or (5_000_000 if quick else 20_000_000),
        "rounds": rounds or (3 if quick else 5),
    }
    chosen = [ROWS[name] for name in only or ROWS]
    directory = tempfile.mkdtemp(prefix="queueduct-bench-", dir="/dev/shm")
    os.environ["QUEUEDUCT_DIR"] = directory
    try:
        measured = measure(chosen, about["rows"], about["rounds"], console)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    show(console, measured, about)
    content = {"schema": 1, **about, "rows_measured": [as_json(row, *values) for row, *values in measured]}
    results.write_whole(out / "results.json", content)
    console.print(f"{out / 'results.json'} written", highlight=False)


Measured = tuple[Row, list[float], list[float]]


def measure(chosen: list[Row], rows: int, rounds: int, console: Console) -> list[Measured]:
    """Warm-ups of each, then round by round, ours and theirs in turn."""
    with console.status("starting Spark, and making the rows"):
        from benchmarks.spark import measures
        from benchmarks.spark.place import Place

        place = Place(rows)
    runs: dict[str, tuple[Callable[[Place], float], Callable[[Place], float]]] = {
        "stream": (measures.ours_stream, measures.parquet_stream),
        "batch": (measures.ours_batch, measures.parquet_batch),
        "socket": (measures.ours_stream, measures.socket_stream),
        "floor": (measures.ours_floor, measures.rate_floor),
        "archive": (measures.ours_archive, measures.parquet_to_parquet),
        "latency": (measures.ours_latency, measures.rate_latency),
        "sink": (measures.ours_sink, measures.parquet_sink),
    }
    measured: list[Measured] = [(row, [], []) for row in chosen]
    try:
        with Progress(console=console, transient=True) as bar:
            task = bar.add_task("warming up", total=len(chosen) * (WARM_UPS + rounds))
            for number in range(1 - WARM_UPS, rounds + 1):
                for row, ours, theirs in measured:
                    bar.update(task, description=f"{row.name}, " + (f"round {number}" if number > 0 else "warm-up"))
                    pair = [run(place) for run in runs[row.name]]
                    if number > 0:
                        ours.append(pair[0])
                        theirs.append(pair[1])
                    bar.advance(task)
    finally:
        place.close()
    return measured


def show(console: Console, measured: list[Measured], about: dict[str, Any]) -> None:
    facts = about["machine"]
    console.print(
        f"{facts['cpu']}, {facts['cores']} cores, {facts['kernel']}, load {facts['load_before']} before; "
        f"commit {about['commit']}; {about['rows']:,} rows of 24 bytes, {about['rounds']} rounds",
        highlight=False,
    )
    table = Table()
    for column in ("row", "what", "beside"):
        table.add_column(column)
    for column in ("ours", "theirs", "ratio (min .. max)", "goal"):
        table.add_column(column, justify="right")
    for row, ours, theirs in measured:
        ratios = [row.ratio(*pair) for pair in zip(ours, theirs, strict=True)]
        middle = statistics.median(ratios)
        word = "[green]reached[/]" if row.is_reached(ours, middle) else "[red]not reached[/]"
        table.add_row(
            row.name,
            row.title,
            row.other,
            written(statistics.median(ours), row.unit.replace("rows/s", "items/s")),
            written(statistics.median(theirs), row.unit.replace("rows/s", "items/s")),
            f"{digits(middle)} ({digits(min(ratios))} .. {digits(max(ratios))})",
            f"{row.goal()} {word}",
        )
    console.print(table)


def as_json(row: Row, ours: list[float], theirs: list[float]) -> dict[str, Any]:
    ratios = [row.ratio(*pair) for pair in zip(ours, theirs, strict=True)]
    return {
        "row": row.name,
        "title": row.title,
        "beside": row.other,
        "unit": row.unit,
        "ours": ours,
        "theirs": theirs,
        "ratio": statistics.median(ratios),
        "least": min(ratios),
        "most": max(ratios),
        "wanted": row.wanted if row.own_limit is None else row.own_limit,
        "kind": "at least" if row.at_least else "at most",
        "reached": row.is_reached(ours, statistics.median(ratios)),
    }


if __name__ == "__main__":
    sys.exit(main(prog_name="python -m benchmarks.spark"))
