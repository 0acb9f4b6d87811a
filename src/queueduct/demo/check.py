"""The account: ticks put against ticks archived, one by one, and the candles against the archive."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset

from queueduct.demo.ticks import PRODUCERS, Producers, symbols_of
from queueduct.spark.pipelines.progress import Batch

if TYPE_CHECKING:
    from queueduct.demo.display import Display

__all__ = ["Account", "settle"]


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
    candles: int
    symbols: list[Symbol]
    problems: list[str]
    put_over_time: list[tuple[float, int]] = field(default_factory=list)
    archived_over_time: list[tuple[float, int]] = field(default_factory=list)
    latency_over_time: list[tuple[float, float, float]] = field(default_factory=list)
    """When a batch was done, and the p50 and p99 of its ticks."""

    @property
    def ok(self) -> bool:
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        return {"ok": self.ok, **asdict(self)}


def settle(archive: Path, producers: Producers, display: Display, batches: list[Batch]) -> Account:
    """Compares ticks, archive and candles."""
    rows = read_archive(archive)
    candles = np.concatenate(display.taken) if display.taken else None
    problems = producers.failures()
    symbols = [
        account_for(rows, producer, int(producers.counts[producer]), index, symbol, candles)
        for producer in range(PRODUCERS)
        for index, symbol in enumerate(symbols_of(producer))
    ]
    for one in symbols:
        if one.missing or one.doubled:
            problems.append(f"{one.symbol}: {one.missing:,} ticks are missing and {one.doubled:,} doubled")
    problems += wrong_candles(rows, candles)
    began = display.opened
    batches = [batch for batch in batches if batch.done_at > began]
    latencies = [latency_of(rows, batch, began) for batch in batches]
    every = np.concatenate([*latencies, np.zeros(0)])
    every = every if len(every) else np.zeros(1)
    seconds = max(batches[-1].done_at - began, 1e-9) if batches else 1e-9
    return Account(
        rows=len(rows["ts"]),
        seconds=round(seconds, 3),
        rows_per_second=round(len(rows["ts"]) / seconds, 1),
        latency_p50=float(np.percentile(every, 50)),
        latency_p99=float(np.percentile(every, 99)),
        candles=0 if candles is None else len(candles),
        symbols=symbols,
        problems=problems,
        put_over_time=[(moment - began, total) for moment, total in display.put],
        archived_over_time=[(batch.done_at - began, batch.stop) for batch in batches],
        latency_over_time=[
            (batch.done_at - began, float(np.percentile(some, 50)), float(np.percentile(some, 99)))
            for batch, some in zip(batches, latencies, strict=True)
            if len(some)
        ],
    )


def read_archive(archive: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Returns every row in the order of positions, read without Spark, as any reader of Parquet can."""
    columns = ["position", "producer", "sequence", "ts", "sym", "px", "qty"]
    files = sorted(archive.glob("*.parquet"))
    if not files:
        return {name: np.zeros(0, "M8[us]" if name == "ts" else "i8") for name in columns}
    table = pa.dataset.dataset(files, format="parquet").to_table(columns=columns).sort_by("position")
    return {name: table.column(name).to_numpy() for name in columns}


def account_for(
    rows: dict[str, np.ndarray[Any, Any]], producer: int, put: int, index: int, symbol: bytes, candles: Any
) -> Symbol:
    """A producer's ticks of one symbol have every nth sequence number: each must be there, once."""
    share = len(symbols_of(producer))
    wanted = np.arange(index, put, share)
    mine = (rows["producer"] == producer) & (rows["sequence"] % share == index)
    found, counts = np.unique(rows["sequence"][mine], return_counts=True)
    return Symbol(
        symbol=symbol.decode(),
        put=len(wanted),
        archived=int(counts.sum()),
        missing=len(np.setdiff1d(wanted, found)),
        doubled=int(counts.sum() - len(found)) + len(np.setdiff1d(found, wanted)),
        in_candles=0 if candles is None else int(candles["ticks"][candles["sym"] == symbol].sum()),
    )


def wrong_candles(rows: dict[str, np.ndarray[Any, Any]], candles: Any) -> list[str]:
    """Each candle must have the ticks, the volume, the high and the low that the archive has for its second."""
    if candles is None:
        return ["no candle has come"]
    problems = []
    keys = [(bytes(candle["sym"]), int(candle["start"].astype("i8"))) for candle in candles]
    if doubled := len(keys) - len(set(keys)):
        problems.append(f"{doubled} candles came twice")
    seconds = rows["ts"].astype("M8[us]").astype("i8") // 1_000_000
    symbols = rows["sym"].astype("S8")
    order = np.lexsort((seconds, symbols))
    edges = np.flatnonzero((np.diff(seconds[order]) != 0) | (symbols[order][1:] != symbols[order][:-1])) + 1
    expected = {}
    for group in np.split(order, edges):
        key = (bytes(symbols[group[0]]), int(seconds[group[0]]) * 1_000_000)
        prices = rows["px"][group]
        expected[key] = (len(group), int(rows["qty"][group].sum()), prices.max(), prices.min())
    wrong = sum(
        expected.get(key) != (int(candle["ticks"]), int(candle["volume"]), candle["high"], candle["low"])
        for key, candle in zip(keys, candles, strict=True)
    )
    if wrong:
        problems.append(f"{wrong} candles differ from the archive")
    return problems


def latency_of(rows: dict[str, np.ndarray[Any, Any]], batch: Batch, since: float) -> np.ndarray[Any, Any]:
    """Returns the seconds from each tick's stamp to the end of its batch, for ticks stamped since then."""
    inside = slice(*np.searchsorted(rows["position"], [batch.start, batch.stop]))
    stamps = rows["ts"][inside].astype("M8[us]").astype("i8") / 1e6
    return np.asarray(batch.done_at - stamps[stamps >= since])
