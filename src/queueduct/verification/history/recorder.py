"""Histories: every operation of a run as Parquet files, and a manifest that says what was run.

While a run goes on its workers write rows into files of their own (_rows.pyx), in a hidden directory beside the one
that was asked for. Afterwards the rows become Parquet, the manifest is written last, and the directory gets its name:
what has that name is complete. docs/stress.md says what the columns mean.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from queueduct._version import __version__
from queueduct.verification.history import COLUMNS as READ_COLUMNS
from queueduct.verification.history._rows import (
    LOST,
    OPS,
    OUTCOMES,
    OVER,
    REDELIVERED,
    WEAK,
    RowReader,
    has_cycles,
    read_clocks,
    read_header,
)

if TYPE_CHECKING:
    import pyarrow

__all__ = ["COLUMNS", "Clock", "Timing", "UnfinishedHistory", "ticking"]

COLUMNS = READ_COLUMNS | {"worker": "int32", "reader": "int32"}
Columns = tuple[NDArray[Any], ...]
"""op, outcome, flags, value, ticket, invoke, returned"""
ROWS_AT_ONCE = 1 << 20
THREADS = 2
UNKNOWN = np.uint64(0xFFFFFFFFFFFFFFFF)
PENDING = OUTCOMES.index("pending")


class Clock(NamedTuple):
    """The clock of the times in a worker's rows."""

    is_counter: bool
    """True for the processor's counter, false for nanoseconds of CLOCK_MONOTONIC."""
    tick_step: int
    """How many ticks are at least a nanosecond."""

    @property
    def name(self) -> str:
        return "CLOCK_MONOTONIC, read through the time stamp counter" if self.is_counter else "CLOCK_MONOTONIC"


def ticking() -> Clock:
    """Returns the cheapest clock of this host that all its processors agree on."""
    source = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    try:
        is_counter = has_cycles() and source.read_text().strip() == "tsc"
    except OSError:
        is_counter = False
    # 8 ticks are a nanosecond on a processor of at most 8 GHz
    return Clock(is_counter, 8 if is_counter else 1)


class Timing:
    """From ticks to nanoseconds: two readings of both clocks, as far apart as the run was long."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.first = read_clocks()
        self.last = self.first

    def stop(self) -> None:
        self.last = read_clocks()

    @property
    def end(self) -> np.uint64:
        """Of the run, in ticks."""
        return np.uint64(self.last[0] if self.clock.is_counter else self.last[1])

    def ns(self, ticks: NDArray[np.uint64]) -> NDArray[np.int64]:
        if not self.clock.is_counter:
            return ticks.astype(np.int64)
        (first_ticks, first_ns), (last_ticks, last_ns) = self.first, self.last
        scale = (last_ns - first_ns) / (last_ticks - first_ticks)
        since = ticks.astype(np.int64) - np.int64(first_ticks)
        # ticks of a day have 48 bits: exact as a float, and a product that never falls keeps their order
        found: NDArray[np.int64] = np.int64(first_ns) + np.floor(since * scale).astype(np.int64)
        return found


class UnfinishedHistory:
    def __init__(self, target: Path, run: str) -> None:
        self.target = target.absolute()
        is_empty = self.target.is_dir() and not any(self.target.iterdir())
        if self.target.is_symlink() or (self.target.exists() and not is_empty):
            raise FileExistsError(
                f"a history needs a directory of its own: {target} exists; give another, or remove it"
            )
        self.folder = self.target.parent / f".{self.target.name}.unfinished-{run}"
        self.rows = self.folder / "rows"
        self.rows.mkdir(parents=True)

    def convert(self, timing: Timing, told: Callable[[int], None] = lambda rows: None) -> int:
        """Every worker's rows to a Parquet file. Returns the number of operations; ``told`` hears of each block."""
        files = sorted(self.rows.glob("worker-*.rows"))
        converter = Converter(self.folder, timing, len(files), told)
        with ThreadPoolExecutor(THREADS) as pool:
            # a list, so that an error is raised
            return sum(list(pool.map(converter.convert, files)))

    def finish(self, manifest: dict[str, Any]) -> None:
        """Removes the rows, writes the manifest, and gives the directory its name."""
        shutil.rmtree(self.rows)
        unnamed = self.folder / "manifest.json.tmp"
        with unnamed.open("w") as file:
            json.dump(manifest, file, indent=2)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        unnamed.rename(self.folder / "manifest.json")
        self.folder.rename(self.target)

    def abandon(self) -> None:
        """Removes all files of the run."""
        shutil.rmtree(self.folder, ignore_errors=True)


def machine() -> dict[str, str]:
    return {"name": platform.node(), "machine": platform.machine(), "kernel": platform.release()}


def versions() -> dict[str, str]:
    found = {"queueduct": __version__, "python": platform.python_version(), "numpy": np.__version__}
    import pyarrow

    return found | {"pyarrow": pyarrow.__version__}


@dataclass
class Converter:
    """Writes rows to Parquet, one file for each worker."""

    folder: Path
    timing: Timing
    next_worker: int
    told: Callable[[int], None]
    lock: threading.Lock = field(default_factory=threading.Lock)

    def convert(self, path: Path) -> int:
        from pyarrow import parquet

        words = np.memmap(path, dtype=np.uint64, mode="r")
        header = read_header(words)
        if header is None:
            return 0
        worker, reader = header
        rows = 0
        target = self.folder / f"{path.stem}.parquet"
        # a worker that did nothing has a file, too; the types as they are in it, not as pyarrow had them in memory
        with parquet.ParquetWriter(
            target,
            schema(),
            compression="zstd",
            use_dictionary=["op", "outcome"],
            store_schema=False,
            write_page_checksum=True,
        ) as writer:
            for columns in iter(partial(RowReader(words).read, ROWS_AT_ONCE), None):
                table = self.table_of(columns, worker, reader)
                writer.write_table(table)
                rows += len(table)
                self.told(len(table))
        return rows

    def table_of(self, columns: Columns, worker: int, reader: int) -> pyarrow.Table:
        import pyarrow as pa

        op, outcome, flags, value, ticket, invoke, returned = columns
        is_lost = (flags & LOST) != 0
        workers = np.full(len(op), worker, np.int32)
        if is_lost.any():
            workers[is_lost] = self.numbers_for(int(is_lost.sum()))
        none = np.zeros(len(op), bool)
        arrays = {
            "worker": pa.array(workers),
            "op": named(op, OPS),
            "outcome": named(outcome, OUTCOMES),
            "value": pa.array(value.view(np.int64), mask=value == UNKNOWN),
            "ticket": pa.array(ticket.view(np.int64), mask=ticket == UNKNOWN),
            "invoke_ns": pa.array(self.timing.ns(invoke)),
            # ended without a time: its worker was killed before it read the clock, so the end of the run counts
            "return_ns": pa.array(
                self.timing.ns(np.where(returned == OVER, self.timing.end, returned)), mask=outcome == PENDING
            ),
            "reader": pa.array(np.full(len(op), reader, np.int32), mask=none if reader >= 0 else ~none),
            "redelivered": pa.array((flags & REDELIVERED) != 0),
            "weak": pa.array((flags & WEAK) != 0),
        }
        return pa.table(arrays, schema=schema())

    def numbers_for(self, count: int) -> NDArray[np.int32]:
        """Returns a worker number for each operation that never returned although its worker went on with others."""
        with self.lock:
            first = self.next_worker
            self.next_worker += count
        return np.arange(first, first + count, dtype=np.int32)


def schema() -> pyarrow.Schema:
    import pyarrow as pa

    return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in COLUMNS.items()])


def named(codes: NDArray[np.uint8], names: tuple[str, ...]) -> pyarrow.Array:
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(pa.array(codes.view(np.int8)), pa.array(names)).cast(pa.string())
