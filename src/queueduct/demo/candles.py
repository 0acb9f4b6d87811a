"""Candles without Spark: a process that reads the ticks, and puts one record for each second and symbol, exactly once.

The records of a second are put together, with ``put_once`` under the number of the second, when a tick has come that is
a second later than its end. The durable reader is then moved to the first tick of the seconds that are still open. A
process that is killed loses what it had in memory; the next one reads the ticks of the open seconds again, and the
queue knows the seconds that it has.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from queueduct import Empty, EventQueue, ShutDown
from queueduct.demo.ticks import SYMBOLS

__all__ = ["CANDLE", "READER", "make_candles"]

CANDLE = np.dtype(
    [
        ("start", "M8[us]"),
        ("sym", "S8"),
        *((name, "f8") for name in ("open", "high", "low", "close")),
        ("volume", "i8"),
        ("ticks", "i8"),
    ]
)
READER = "candles"
PRODUCER = "candles"
SECOND_US = 1_000_000
LATE_US = 1_000_000  # how late a tick may come, as the watermark of the aggregate
TAKE = 1 << 16
PATIENCE_SECONDS = 0.5

Records = np.ndarray[Any, Any]


class Part(NamedTuple):
    """A second of one symbol, as far as it is known."""

    open: float
    high: float
    low: float
    close: float
    volume: int
    ticks: int

    def followed_by(self, later: Part) -> Part:
        return Part(
            self.open,
            max(self.high, later.high),
            min(self.low, later.low),
            later.close,
            self.volume + later.volume,
            self.ticks + later.ticks,
        )


class Seconds:
    """The seconds that are not closed yet."""

    def __init__(self, names: Records, done: int) -> None:
        """``done`` is the last second whose candles are put: its ticks may come again, and not all of them."""
        self.names = np.sort(names)
        self.done = done
        self.parts: dict[int, dict[int, Part]] = {}
        self.first: dict[int, int] = {}
        """Where the first tick of each second is."""
        self.latest_us = 0

    def add(self, ticks: Records, at: int) -> None:
        """Adds ticks of these positions. Those of a symbol come in the order of their sequence numbers."""
        stamps = ticks["ts"].astype("i8")
        seconds = stamps // SECOND_US
        if int(seconds.min()) <= self.done:  # come late, or again
            open_ones = np.flatnonzero(seconds > self.done)
            ticks, stamps, seconds = ticks[open_ones], stamps[open_ones], seconds[open_ones]
            at += int(open_ones[0]) if len(open_ones) else 0
        if not len(ticks):
            return
        base = int(seconds.min())
        keys = (seconds - base) * len(self.names) + np.searchsorted(self.names, ticks["sym"])
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        stops = np.append(starts[1:], len(keys)) - 1
        prices, volumes = ticks["px"][order], ticks["qty"][order].astype("i8")
        columns = (
            prices[starts],
            np.maximum.reduceat(prices, starts),
            np.minimum.reduceat(prices, starts),
            prices[stops],
            np.add.reduceat(volumes, starts),
            stops - starts + 1,
        )
        firsts = np.minimum.reduceat(order, starts)
        for key, first, *values in zip(
            keys[starts].tolist(), firsts.tolist(), *(c.tolist() for c in columns), strict=True
        ):
            second, name = divmod(key, len(self.names))
            parts, part = self.parts.setdefault(base + second, {}), Part(*values)
            parts[name] = parts[name].followed_by(part) if name in parts else part
            self.first[base + second] = min(self.first.get(base + second, at + first), at + first)
        self.latest_us = max(self.latest_us, int(stamps.max()))

    def closed(self, *, is_end: bool = False) -> list[tuple[int, Records]]:
        """Removes the seconds that no further tick belongs to, or all. Returns each with its candles."""
        found = sorted(
            second for second in self.parts if is_end or (second + 1) * SECOND_US + LATE_US <= self.latest_us
        )
        for second in found:
            del self.first[second]
        self.done = max([self.done, *found])
        return [(second, self.candles(second, self.parts.pop(second))) for second in found]

    def candles(self, second: int, parts: dict[int, Part]) -> Records:
        start = np.datetime64(second * SECOND_US, "us")
        return np.array([(start, self.names[name], *parts[name]) for name in sorted(parts)], CANDLE)

    def kept_from(self, end: int) -> int:
        """Returns the position of the first tick that is needed again after a kill."""
        return min(self.first.values(), default=end)


def make_candles(ticks: EventQueue, candles: EventQueue) -> None:
    """Runs until the ticks are shut down and all are read."""
    seconds = Seconds(np.array(SYMBOLS, "S8"), last_done(candles))
    with ticks.subscribe(READER, start="earliest") as reader:
        while True:
            at = reader.position
            try:
                new = reader.get_many(TAKE, timeout=PATIENCE_SECONDS)
            except Empty:
                continue
            except ShutDown:
                break
            seconds.add(new, at)
            if put_all(candles, seconds.closed()):
                reader.commit(seconds.kept_from(reader.position))
        put_all(candles, seconds.closed(is_end=True))
        reader.commit(reader.position)


def last_done(candles: EventQueue) -> int:
    """Returns the last second whose candles are all in the queue; of one that was begun, all ticks come again."""
    for known in candles.producers():
        if known.name == PRODUCER:
            return known.sequence - (known.done < known.total)
    return -1


def put_all(candles: EventQueue, closed: list[tuple[int, Records]]) -> int:
    for second, records in closed:
        candles.put_once(records, PRODUCER, second)
    return len(closed)
