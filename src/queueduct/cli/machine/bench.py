"""The subcommand ``bench``: a kind of queue between two processes, beside multiprocessing.Queue, in turns in one run.

It is short, and says how this machine does. ``make bench`` of the repository measures with care.
"""

from __future__ import annotations

import multiprocessing
import secrets
import signal
import statistics
import time
from pathlib import Path
from typing import Any

import click
import numpy as np

import queueduct
from queueduct.cli.options import IN, as_json
from queueduct.cli.output import echo_json, table
from queueduct.cli.units import Duration
from queueduct.segments.kinds import KINDS

__all__ = ["bench"]

ITEM = np.dtype([("number", "i8"), ("rest", "V56")])  # 64 bytes
CAPACITY = 4096
BATCH = 256
PEER = "multiprocessing.Queue"
PATIENCE_SECONDS = 60.0
LEAST_SECONDS, MOST_ITEMS = 0.08, 1 << 22


@click.command(
    epilog="\b\nExamples:\n  queueduct bench bounded --seconds 1\n  queueduct bench events --seconds 1 --json\n"
)
@click.argument("kind", type=click.Choice(list(KINDS)))
@click.option("--seconds", type=Duration(0.5, 600), default="5s", show_default=True, help="How long, about.")
@IN
@as_json("Print a JSON object.")
def bench(kind: str, seconds: float, directory: Path | None, as_json: bool) -> None:
    """Measure a kind of queue between two processes, beside multiprocessing.Queue.

    One process puts records of 64 bytes, another gets them: one a call, and in batches. The three take turns, round
    after round; the ratio is of the medians.
    """
    rounds = measure(kind, seconds, directory)
    speeds = {name: statistics.median(found) for name, found in rounds.items()}
    peer = speeds[PEER]
    if as_json:
        shown = {
            name: {
                "per_second": round(speed),
                "ratio": round(speed / peer, 2),
                "rounds": [round(x) for x in rounds[name]],
            }
            for name, speed in speeds.items()
        }
        echo_json({"kind": kind, "item_bytes": ITEM.itemsize, "batch": BATCH, "results": shown})
        return
    rows = [
        (name, f"{speed:,.0f}", f"{speed / peer:.1f}", f"{min(rounds[name]):,.0f} to {max(rounds[name]):,.0f}")
        for name, speed in speeds.items()
    ]
    click.echo(table([("", "items a second", "times", "rounds"), *rows], "<>>>"))


def measure(kind: str, seconds: float, directory: Path | None) -> dict[str, list[float]]:
    """Returns how many items a second each of the three carried in each round."""
    context = multiprocessing.get_context("spawn")
    ways = {f"{kind}, one a call": 1, f"{kind}, batches of {BATCH}": BATCH, PEER: 0}
    found: dict[str, list[float]] = {way: [] for way in ways}
    name = f"queueduct-bench-{secrets.token_hex(6)}"
    queue = KINDS[kind].create(name, CAPACITY, ITEM, 8, directory=directory)
    peer, orders, results = context.Queue(CAPACITY), context.Queue(), context.Queue()
    other = context.Process(target=consume, args=(name, str(queue.directory), peer, orders, results), daemon=True)
    try:
        start_deaf(other)
        with Crew(queue, peer, orders, results) as crew:
            crew.run(0, 100)  # both are awake and have imported what they need
            counts = {way: crew.enough(batch) for way, batch in ways.items()}
            until = time.monotonic() + seconds
            while time.monotonic() < until or len(found[PEER]) < 3:
                for way, batch in ways.items():
                    found[way].append(counts[way] / crew.run(batch, counts[way]))
    finally:
        if other.pid is not None:
            other.kill()  # before its queue is gone, which it would complain of
            other.join()
        for each in (peer, orders):
            each.cancel_join_thread()  # else what nobody gets any more would keep this process
        queue.close()
        queue.unlink(missing_ok=True)
    return found


def start_deaf(process: Any) -> None:
    """Starts a process that Ctrl-C in the terminal does not reach: this process ends it, without its words.

    A Ctrl-C of this moment is held back, not ignored: it ends this process as soon as the other one has started.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # which the other one inherits
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Crew:
    """The producer, which is this process, and what it tells the consumer."""

    def __init__(self, queue: Any, peer: Any, orders: Any, results: Any) -> None:
        self.queue = queue
        self.peer = peer
        self.orders = orders
        self.results = results

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        self.orders.put(None)

    def run(self, batch: int, count: int) -> float:
        """Returns how long it takes until the consumer has the last of so many items."""
        self.orders.put((batch, count))
        self.results.get(timeout=PATIENCE_SECONDS)  # it is ready
        began = time.perf_counter()
        produce(self.queue, self.peer, batch, count)
        total = self.results.get(timeout=PATIENCE_SECONDS)
        taken = time.perf_counter() - began
        if total != count:
            raise RuntimeError(f"every item must arrive: {count} were put, {total} came; run it again, and tell us")
        return taken

    def enough(self, batch: int) -> int:
        """Returns how many items take long enough to be measured."""
        count = 2000
        while (taken := self.run(batch, count)) < LEAST_SECONDS and count < MOST_ITEMS:
            count = int(count * min(8.0, 1.3 * LEAST_SECONDS / max(taken, 1e-4))) + 1
        return count


def produce(queue: Any, peer: Any, batch: int, count: int) -> None:
    """Puts so many items; into an overwriting queue only while there is room: none may be lost here."""
    if batch == 0:
        put, item = peer.put, bytes(ITEM.itemsize)  # of what it carries, bytes are the quickest
        for _ in range(count):
            put(item)
        return
    records = np.zeros(batch, ITEM)
    options = {"overwrite": False} if queue.kind == "overwriting" else {}
    if batch == 1:
        put, item = queue.put, records[0]
        for _ in range(count):
            put(item, **options)
        return
    for at in range(0, count, batch):
        queue.put_many(records[: min(batch, count - at)], **options)


def consume(name: str, directory: str, peer: Any, orders: Any, results: Any) -> None:
    """The other process: gets as it is told, and says how many it got."""
    queue = queueduct.open(name, directory=directory)
    source: Any = queue.subscribe() if isinstance(queue, queueduct.EventQueue) else queue
    while (order := orders.get()) is not None:
        batch, count = order
        results.put("ready")
        got = 0
        get = peer.get if batch == 0 else source.get
        while got < count:
            if batch > 1:
                got += len(source.get_many(min(batch, count - got)))
            else:
                get()
                got += 1
        results.put(got)
