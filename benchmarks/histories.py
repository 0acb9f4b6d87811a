"""Long histories of a queue that is right, to measure the checker with: made, not run.

python -m benchmarks.histories /tmp/history --operations 10M
python -m benchmarks.histories /tmp/history --operations 1M --kind unbounded --no-tickets

A queue of C places is simulated C items at a time: each put waits for the get C before it, each get for its put. Who is
faster changes, so that the queue is sometimes full and sometimes empty, and some answers say so.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

Longs = NDArray[np.int64]

CAPACITY = 1024
WORKERS = 8
ROWS_A_FILE = 4_000_000
PHASE = 40  # chunks until somebody else is faster


def times_of(items: int, chance: np.random.Generator) -> tuple[Longs, Longs]:
    """When each item was put, and when it was got."""
    puts, gets = np.empty(items, np.int64), np.empty(items, np.int64)
    room = np.zeros(CAPACITY, np.int64)  # when the places of the last lap became free
    last_put = last_get = np.int64(0)
    for start in range(0, items, CAPACITY):
        stop = min(items, start + CAPACITY)
        slow_put, slow_get = ((60, 140), (140, 60), (100, 100))[start // CAPACITY // PHASE % 3]
        put = waited(last_put, chance.integers(2, 2 * slow_put, stop - start), room[: stop - start] + 1)
        get = waited(last_get, chance.integers(2, 2 * slow_get, stop - start), put + 1)
        puts[start:stop], gets[start:stop] = put, get
        room[: stop - start], last_put, last_get = get, put[-1], get[-1]
    return puts, gets


def waited(last: np.int64, steps: Longs, not_before: Longs) -> Longs:
    """Each is a step after the one before it, and not before its time."""
    reached = np.cumsum(steps)
    found: Longs = reached + np.maximum(np.maximum.accumulate(not_before - reached), last)
    return found


def answers_of(puts: Longs, gets: Longs) -> tuple[Longs, Longs, Longs, Longs]:
    """Positions and moments of empty and of full answers: in the middle of a wait that was long enough for one."""
    before = np.maximum(np.append(0, gets[:-1]), np.append(0, puts[:-1]))
    empty = np.flatnonzero(puts - before > 40)
    held = np.arange(len(puts) - CAPACITY) if len(puts) > CAPACITY else np.empty(0, np.int64)
    filled = np.maximum(puts[held + CAPACITY - 1], np.append(0, gets)[held])
    full = held[gets[held] - filled > 40]
    return empty, (puts[empty] + before[empty]) // 2, full, (gets[full] + filled[held[full]]) // 2


def write(folder: Path, kind: str, operations: int, has_tickets: bool, seed: int) -> int:
    """Returns how many operations there are: about as many as were asked for."""
    chance = np.random.default_rng(seed)
    puts, gets = times_of(operations // 2, chance)
    empty, empty_at, full, full_at = answers_of(puts, gets)
    if kind in ("unbounded", "growing"):
        full, full_at = full[:0], full_at[:0]
    positions = np.arange(len(puts))
    parts = [("put", "ok", positions, puts), ("get", "ok", positions, gets)]
    parts += [("get", "empty", empty, empty_at), ("put", "full", full, full_at)]
    folder.mkdir(parents=True)
    rows = number = 0
    for op, outcome, tickets, moments in parts:
        for start in range(0, len(tickets), ROWS_A_FILE):
            chosen = slice(start, start + ROWS_A_FILE)
            table = table_of(op, outcome, tickets[chosen], moments[chosen], has_tickets, chance)
            pq.write_table(table, folder / f"part-{number:05}.parquet", compression="zstd")
            rows, number = rows + len(table), number + 1
    limit = None if kind in ("unbounded", "growing") else CAPACITY
    manifest = {"kind": kind, "capacity": limit, "clock": "made", "host": "none", "versions": {}, "operations": rows}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return rows


def table_of(
    op: str, outcome: str, tickets: Longs, moments: Longs, has_tickets: bool, chance: np.random.Generator
) -> pa.Table:
    rows = len(tickets)
    is_item = outcome == "ok"
    columns: dict[str, Any] = {
        "worker": pa.array((tickets % WORKERS + (WORKERS if op == "get" else 0)).astype(np.int32)),
        "op": pa.array([op] * rows, pa.string()),
        "outcome": pa.array([outcome] * rows, pa.string()),
        "value": pa.array((tickets % WORKERS << 48) | tickets) if is_item else pa.nulls(rows, pa.int64()),
        "ticket": pa.array(tickets) if has_tickets else pa.nulls(rows, pa.int64()),
        "invoke_ns": pa.array(moments - chance.integers(0, 400, rows)),
        "return_ns": pa.array(moments + chance.integers(0, 400, rows)),
        "reader": pa.nulls(rows, pa.int32()),
        "redelivered": pa.array(np.zeros(rows, bool)),
        "weak": pa.array(np.zeros(rows, bool)),
    }
    return pa.table(columns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--operations", default="1M", help="as in 100k, 10M, 1G")
    parser.add_argument("--kind", default="bounded", choices=("bounded", "slots", "growing", "unbounded"))
    parser.add_argument("--no-tickets", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    letter = given.operations[-1:]
    number = float(given.operations.rstrip("kMG")) * {"k": 1e3, "M": 1e6, "G": 1e9}.get(letter, 1)
    rows = write(given.directory, given.kind, int(number), not given.no_tickets, given.seed)
    print(f"{rows:,} operations in {given.directory}")


if __name__ == "__main__":
    main()
