"""The account, from the lake: ticks put against ticks archived, one by one, and the candles against the archive.

Every file is read once, so that memory does not grow with the ticks but for a few bytes each.
"""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from queueduct.demo.lake import files_of, ticks_of
from queueduct.demo.ticks import PRODUCERS, SYMBOLS, symbols_of

__all__ = ["Account", "Candles", "Tally", "settle"]

SECOND_US = 1_000_000
STEP_SECONDS = 0.1  # of the line of ticks put, in the plot

Column = np.ndarray[Any, Any]
Candle = tuple[int, int, float, float, float, float]
"""Ticks, volume, high, low, open, close."""


@dataclass
class Symbol:
    symbol: str
    put: int
    archived: int
    missing: int
    doubled: int
    in_candles: int


@dataclass
class Account:
    rows: int
    seconds: float
    rows_per_second: float
    latency_p50: float
    latency_p99: float
    """From a tick's stamp to the moment from which a reader finds it in the archive."""
    candles: int
    symbols: list[Symbol]
    problems: list[str]
    killed: list[tuple[float, str]] = field(default_factory=list)
    """When a process was killed on the way, and which."""
    put_over_time: list[tuple[float, int]] = field(default_factory=list)
    archived_over_time: list[tuple[float, int]] = field(default_factory=list)
    """Steps: all ticks of a batch are there from one moment on."""
    latency_over_time: list[tuple[float, float, float]] = field(default_factory=list)
    """When a batch was there, and the p50 and p99 of its ticks."""

    @property
    def ok(self) -> bool:
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        return {"ok": self.ok, **asdict(self)}


def settle(archive: Path, counts: list[int], candles: Column | None, opened: float, closed: float) -> Account:
    """Compares the ticks that the producers have put with the archive, and the candles with it.

    ``opened`` is from when on latencies and rates count: before it the consumers do their first batches. ``closed`` is
    when the producers ended.
    """
    tally, expected, timing = Tally(counts), Candles(), Timing(opened)
    for seen_at, files in itertools.groupby(files_of(archive), key=lambda file: file.seen_at):
        timing.begin(seen_at)
        for symbols, columns in itertools.chain.from_iterable(map(ticks_of, files)):
            tally.add(columns["producer"], columns["sequence"])
            expected.add(symbols, columns)
            timing.add(columns["ts"])
        timing.end()
    in_candles = dict.fromkeys(SYMBOLS, 0)
    for candle in () if candles is None else candles:
        in_candles[bytes(candle["sym"])] += int(candle["ticks"])
    symbols_told = [
        tally.of(producer, index, symbol, in_candles[symbol])
        for producer in range(PRODUCERS)
        for index, symbol in enumerate(symbols_of(producer))
    ]
    problems = [
        f"{one.symbol}: {one.missing:,} ticks are missing and {one.doubled:,} doubled"
        for one in symbols_told
        if one.missing or one.doubled
    ]
    if tally.strange:
        problems.append(f"{tally.strange:,} archived ticks were never put")
    every = timing.all_latencies()
    # until the last tick is in the lake: what is put and not yet archived does not count as done
    seconds = max(closed, timing.last_seen_at) - opened
    rows = timing.rows_since
    return Account(
        rows=timing.rows,
        seconds=round(seconds, 3),
        rows_per_second=round(rows / max(seconds, 1e-9), 1),
        latency_p50=float(np.percentile(every, 50)),
        latency_p99=float(np.percentile(every, 99)),
        candles=0 if candles is None else len(candles),
        symbols=symbols_told,
        problems=problems + expected.problems(candles),
        put_over_time=timing.put_over_time(),
        archived_over_time=timing.archived,
        latency_over_time=timing.latencies_over_time,
    )


class Tally:
    """How often the archive has each tick: a count for each sequence number of each producer."""

    def __init__(self, counts: list[int]) -> None:
        self.found = [np.zeros(count, "i4") for count in counts]
        self.strange = 0

    def add(self, producers: Column, sequences: Column) -> None:
        for producer, found in enumerate(self.found):
            mine = sequences[producers == producer]
            inside = mine[(mine >= 0) & (mine < len(found))]
            if len(inside):
                first = int(inside.min())
                times = np.bincount(inside - first)
                found[first : first + len(times)] += times.astype("i4")
            self.strange += len(mine) - len(inside)
        self.strange += int(((producers < 0) | (producers >= len(self.found))).sum())

    def of(self, producer: int, index: int, symbol: bytes, in_candles: int) -> Symbol:
        """Returns the account of a symbol: its producer gives it every nth sequence number."""
        times = self.found[producer][index :: len(symbols_of(producer))]
        return Symbol(
            symbol=symbol.decode(),
            put=len(times),
            archived=int(times.sum()),
            missing=int((times == 0).sum()),
            doubled=int(np.maximum(times - 1, 0).sum()),
            in_candles=in_candles,
        )


class Candles:
    """The candles that the archive's ticks make, by second and symbol."""

    def __init__(self) -> None:
        self.found: dict[tuple[int, int], tuple[Candle, int, int]] = {}
        """With the first and the last sequence number, which say what opens and what closes."""

    def add(self, symbols: Column, columns: dict[str, Column]) -> None:
        keys = columns["ts"] // SECOND_US * len(SYMBOLS) + symbols
        order = np.lexsort((columns["sequence"], keys))
        edges = np.flatnonzero(np.diff(keys[order])) + 1
        for rows in np.split(order, edges):
            if not len(rows):
                continue
            prices = columns["px"][rows]
            candle = (
                len(rows),
                int(columns["qty"][rows].sum()),
                float(prices.max()),
                float(prices.min()),
                float(prices[0]),
                float(prices[-1]),
            )
            second, symbol = divmod(int(keys[rows[0]]), len(SYMBOLS))
            new = (candle, int(columns["sequence"][rows[0]]), int(columns["sequence"][rows[-1]]))
            known = self.found.get((second, symbol))
            self.found[second, symbol] = new if known is None else joined(known, new)

    def problems(self, candles: Column | None) -> list[str]:
        """Each candle must be what the archive's ticks make, and up to the last one none may be missing."""
        if candles is None or not len(candles):
            return ["no candle has come"]
        problems = []
        seconds = candles["start"].astype("M8[us]").astype("i8") // SECOND_US
        keys = [
            (int(second), SYMBOLS.index(bytes(symbol))) for second, symbol in zip(seconds, candles["sym"], strict=True)
        ]
        if twice := len(keys) - len(set(keys)):
            problems.append(f"{twice} candles came twice")
        lacking = {key for key in self.found if key[0] <= int(seconds.max())} - set(keys)
        if lacking:
            problems.append(f"{len(lacking)} candles are missing")
        names = ("ticks", "volume", "high", "low", "open", "close")
        wrong = sum(
            key not in self.found or self.found[key][0] != tuple(candle[name].item() for name in names)
            for key, candle in zip(keys, candles, strict=True)
        )
        if wrong:
            problems.append(f"{wrong} candles differ from the archive")
        return problems


def joined(one: tuple[Candle, int, int], other: tuple[Candle, int, int]) -> tuple[Candle, int, int]:
    (a, first_a, last_a), (b, first_b, last_b) = one, other
    opening = a[4] if first_a < first_b else b[4]
    closing = a[5] if last_a > last_b else b[5]
    both = (a[0] + b[0], a[1] + b[1], max(a[2], b[2]), min(a[3], b[3]), opening, closing)
    return both, min(first_a, first_b), max(last_a, last_b)


class Timing:
    """When the ticks were stamped, and when they were seen in the archive."""

    def __init__(self, opened: float) -> None:
        self.opened = opened
        self.rows = self.rows_since = 0
        self.last_seen_at = opened
        self.put = np.zeros(1, "i8")
        """Ticks stamped within each step since the opening; those stamped before it are in the first."""
        self.archived: list[tuple[float, int]] = []
        self.latencies: list[Column] = []
        self.latencies_over_time: list[tuple[float, float, float]] = []
        self.of_batch: list[Column] = []
        self.seen_at = 0.0

    def begin(self, seen_at: float) -> None:
        """The ticks that follow came to be seen at that moment."""
        self.seen_at, self.of_batch = seen_at, []

    def add(self, stamps_us: Column) -> None:
        since = stamps_us / 1e6 - self.opened
        times = np.bincount(np.maximum(0, np.ceil(since / STEP_SECONDS)).astype("i8"))
        if len(times) > len(self.put):
            self.put = np.pad(self.put, (0, len(times) - len(self.put)))
        self.put[: len(times)] += times
        self.rows += len(since)
        self.of_batch.append((self.seen_at - self.opened - since[since >= 0]).astype("f4"))

    def end(self) -> None:
        latencies = np.concatenate([*self.of_batch, np.zeros(0, "f4")])
        self.rows_since += len(latencies)
        if self.seen_at >= self.opened:
            self.last_seen_at = self.seen_at
            self.archived.append((self.seen_at - self.opened, self.rows))
        if len(latencies):
            self.latencies.append(latencies)
            half, most = np.percentile(latencies, [50, 99])
            self.latencies_over_time.append((self.seen_at - self.opened, float(half), float(most)))

    def all_latencies(self) -> Column:
        return np.concatenate(self.latencies) if self.latencies else np.zeros(1, "f4")

    def put_over_time(self) -> list[tuple[float, int]]:
        """The number at each step counts all ticks that were stamped before it."""
        return [(step * STEP_SECONDS, int(total)) for step, total in enumerate(np.cumsum(self.put))]
