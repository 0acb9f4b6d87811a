"""The display of the demonstration: a live table of ticks and candles, the account at its end, and the plot."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console, Group
from rich.table import Table

from queueduct import Empty, ShutDown
from queueduct.demo.check import Account
from queueduct.demo.ticks import SYMBOLS, Producers
from queueduct.spark.pipelines.progress import Progress

__all__ = ["Display", "draw_plot", "report"]


@dataclass
class Display:
    """The live display, and all numbers that it has shown."""

    candles: Any
    producers: Producers
    progress: Progress
    queries: tuple[StreamingQuery, StreamingQuery]
    opened: float = 0.0
    put: list[tuple[float, int]] = field(default_factory=list)
    taken: list[np.ndarray[Any, Any]] = field(default_factory=list)
    newest: dict[bytes, Any] = field(default_factory=dict)

    def take_candles(self) -> None:
        """Updates the display with what is new."""
        self.put.append((time.time(), self.producers.total))
        try:
            while True:
                candles = self.candles.get_many(1000, block=False)
                self.taken.append(candles)
                for candle in candles:
                    known = self.newest.get(bytes(candle["sym"]))
                    if known is None or candle["start"] > known["start"]:
                        self.newest[bytes(candle["sym"])] = candle
        except (Empty, ShutDown):
            return

    def draw(self, elapsed: float, seconds: float) -> Group:
        return Group(self.flow(elapsed, seconds), self.latest())

    def flow(self, elapsed: float, seconds: float) -> Table:
        table = Table(title=f"queueduct demo: {elapsed:.0f} of {seconds:.0f} s", title_justify="left")
        table.add_column("")
        for column in ("ticks", "a second", "waiting", "last batch"):
            table.add_column(column, justify="right")
        total = self.producers.total
        table.add_row("four producers", f"{total:,}", f"{total / max(elapsed, 0.1):,.0f}", "", "")
        for name, query in zip(("Spark: archive", "Spark: candles"), self.queries, strict=True):
            batches = self.progress.batches(query)
            rows = sum(batch.rows for batch in batches)
            last = f"{batches[-1].rows:,} in {batches[-1].seconds:.2f} s" if batches else "the first takes longest"
            table.add_row(name, f"{rows:,}", f"{rows / max(elapsed, 0.1):,.0f}", f"{max(0, total - rows):,}", last)
        return table

    def latest(self) -> Table:
        table = Table(title="newest candles, from the second queue", title_justify="left")
        for column in ("symbol", "second"):
            table.add_column(column)
        for column in ("open", "high", "low", "close", "volume", "ticks"):
            table.add_column(column, justify="right")
        for symbol in SYMBOLS:
            candle = self.newest.get(symbol)
            if candle is None:
                table.add_row(symbol.decode(), "…")
                continue
            prices = [f"{candle[name]:.2f}" for name in ("open", "high", "low", "close")]
            second = str(candle["start"])[11:19]
            table.add_row(symbol.decode(), second, *prices, f"{candle['volume']:,}", f"{candle['ticks']:,}")
        return table


def report(account: Account, out: Path, console: Console) -> None:
    """The account of every tick, and where everything is."""
    table = Table(title="every tick accounted for, by symbol", title_justify="left")
    table.add_column("symbol")
    for column in ("put", "archived", "missing", "doubled", "in candles"):
        table.add_column(column, justify="right")
    for row in account.symbols:
        wrong = "red" if row.missing or row.doubled else ""
        cells = (row.put, row.archived, row.missing, row.doubled, row.in_candles)
        table.add_row(row.symbol, *(f"{value:,}" for value in cells), style=wrong)
    console.print(table)
    console.print(
        f"{account.rows:,} ticks in {account.seconds:.0f} s: {account.rows_per_second:,.0f} a second "
        f"from four processes through the queue and Spark to Parquet"
    )
    console.print(
        f"from a tick's stamp to its archived row: p50 {account.latency_p50:.2f} s, p99 {account.latency_p99:.2f} s; "
        f"{account.candles:,} candles, each compared with the archive"
    )
    for problem in account.problems:
        console.print(f"[red]{problem}[/]")
    if account.ok:
        console.print("[green]every tick is in the archive exactly once, and every candle is right[/]")
    console.print(f"{out}/: archive/ (Parquet), summary.json, plot.png", highlight=False)


def draw_plot(account: Account, path: Path) -> None:
    """Ticks put and archived, and how long each batch took them, over time."""
    import matplotlib

    matplotlib.use("Agg")  # a file, no window
    from matplotlib import pyplot

    figure, (flow, latency) = pyplot.subplots(2, 1, figsize=(9, 7), sharex=True, layout="constrained")
    for label, points in (("put", account.put_over_time), ("archived", account.archived_over_time)):
        flow.plot([moment for moment, _ in points], [rows / 1e3 for _, rows in points], label=label)
    flow.set_ylabel("thousand ticks")
    flow.set_title(f"{account.rows:,} ticks, {account.rows_per_second:,.0f} a second", loc="left")
    flow.legend(frameon=False)
    moments = [moment for moment, _, _ in account.latency_over_time]
    latency.plot(moments, [half for _, half, _ in account.latency_over_time], label="p50")
    latency.plot(moments, [most for _, _, most in account.latency_over_time], label="p99")
    latency.set_ylim(bottom=0)
    latency.set_ylabel("seconds from tick to archive")
    latency.set_xlabel("seconds")
    latency.legend(frameon=False)
    for axes in (flow, latency):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
