"""The display of the demonstration: a live table of ticks and candles, and the account at its end."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from queueduct import Empty, ShutDown
from queueduct.demo.check import Account
from queueduct.demo.consumers import Consumers, Shown
from queueduct.demo.ticks import SYMBOLS, Producers

__all__ = ["Display", "report"]

LATELY_SECONDS = 2.0  # over which a rate is computed
SAY_SECONDS = 5.0  # between lines where there is no terminal
LINES_OF_CANDLES = len(SYMBOLS) + 12  # of a terminal in which they have room
COLUMNS_OF_ALL = 70


@dataclass
class Display:
    """The live display, and all candles that have come."""

    candles: Any
    producers: Producers
    consumers: Consumers
    address: str
    seconds: float
    began: float = field(default_factory=time.monotonic)
    taken: list[np.ndarray[Any, Any]] = field(default_factory=list)
    newest: dict[bytes, Any] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)
    lately: deque[tuple[float, dict[str, int]]] = field(default_factory=deque)
    said: float = field(default_factory=time.monotonic)

    def take_candles(self) -> None:
        """Takes what is new in the queue of candles."""
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

    def draw(self, console: Console) -> Group:
        parts: list[Any] = [self.flow(is_narrow=console.width < COLUMNS_OF_ALL)]
        parts += [Text(text, style="yellow", overflow="ellipsis", no_wrap=True) for text in self.events[-3:]]
        if console.height >= LINES_OF_CANDLES and console.width >= COLUMNS_OF_ALL:
            parts.append(self.latest())
        return Group(*parts)

    def say(self, console: Console) -> None:
        """Prints a line now and then where there is no terminal."""
        if not console.is_terminal and time.monotonic() - self.said >= SAY_SECONDS:
            self.said = time.monotonic()
            done = ", ".join(f"{shown.name} {shown.rows:,}" for shown in self.consumers.shown())
            console.print(f"{self.elapsed:.0f} of {self.seconds:.0f} s: {self.producers.total:,} ticks put; {done}")

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.began

    def flow(self, *, is_narrow: bool) -> Table:
        elapsed = min(self.elapsed, self.seconds)
        table = Table(title=f"queueduct demo: {elapsed:.0f} of {self.seconds:.0f} s", title_justify="left")
        if self.address:
            table.caption, table.caption_justify = f"live page: {self.address}", "left"
        table.add_column("")
        for column in ("ticks", "a second") if is_narrow else ("ticks", "a second", "waiting", "last batch"):
            table.add_column(column, justify="right")
        total = self.producers.total
        lines = [Shown("four producers", total, ""), *self.consumers.shown()]
        rates = self.rates({line.name: line.rows for line in lines})
        for index, line in enumerate(lines):
            waiting = f"{max(0, total - line.rows):,}" if index else ""
            cells = (line.name, f"{line.rows:,}", f"{rates[line.name]:,.0f}", waiting, line.last)
            table.add_row(*(cells[:3] if is_narrow else cells))
        return table

    def rates(self, rows: dict[str, int]) -> dict[str, float]:
        """Returns rows a second, over the last seconds."""
        now = time.monotonic()
        self.lately.append((now, rows))
        while len(self.lately) > 2 and now - self.lately[1][0] >= LATELY_SECONDS:
            self.lately.popleft()
        since, before = self.lately[0]
        return {name: max(0.0, (count - before.get(name, 0)) / max(now - since, 0.1)) for name, count in rows.items()}

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


def report(account: Account, out: Path, console: Console, *, way: str, is_plotted: bool) -> None:
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
        f"from four processes through the queue and {way} to Parquet"
    )
    console.print(
        f"from a tick's stamp to its row in the archive: p50 {account.latency_p50:.2f} s, p99 "
        f"{account.latency_p99:.2f} s; {account.candles:,} candles, each compared with the archive"
    )
    for moment, name in account.killed:
        console.print(f"kill -9 at {moment:.1f} s: {name}; another process went on in its place")
    for problem in account.problems:
        console.print(f"[red]{problem}[/]")
    if account.ok:
        console.print("[green]every tick is in the archive exactly once, and every candle is right[/]")
    there = "archive/ (Parquet), summary.json" + (", plot.png" if is_plotted else "")
    console.print(f"{out}/: {there}", highlight=False)
    if not is_plotted:
        console.print("no plot: it needs matplotlib, as in pip install matplotlib")
