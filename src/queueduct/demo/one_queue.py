"""The demonstration: processes at work on one queue, live, with every item accounted for.

Two producers and one consumer run to the end. A third producer is killed in the middle, wherever it happens to be.
At the end each producer's items are counted: all that were acknowledged must have come out, once.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.table import Table

import queueduct

TICK = np.dtype([("producer", "i4"), ("sequence", "i8"), ("price", "f8"), ("sent_ns", "i8")])
BATCH = 256
CAPACITY = 1 << 16
PRODUCERS = 3
VICTIM = 2


@dataclass
class Result:
    seconds: float
    items: int
    items_per_second: float
    killed: list[str]
    recovered_slots: int
    problems: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        return {"ok": self.ok, **asdict(self)}


class Board:
    """What the workers tell the parent, in memory they share: acknowledged puts, and what was received.

    For each producer, the consumer counts the items and sums their sequence numbers: the counts say whether any is
    missing or doubled, the sums whether they are the right ones.
    """

    def __init__(self) -> None:
        self.acknowledged = multiprocessing.RawArray("q", PRODUCERS)
        self.received = multiprocessing.RawArray("q", PRODUCERS)
        self.sums = multiprocessing.RawArray("Q", PRODUCERS)
        self.disorder = multiprocessing.RawValue("q", 0)


def produce(queue: queueduct.BoundedQueue, number: int, board: Board) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    batch = np.zeros(BATCH, TICK)
    batch["producer"] = number
    step = np.arange(BATCH)
    sequence = 0
    generator = np.random.default_rng(number)
    with contextlib.suppress(queueduct.ShutDown):
        while True:
            batch["sequence"] = sequence + step
            batch["price"] = 100 + generator.standard_normal(BATCH).cumsum() / 100
            batch["sent_ns"] = time.monotonic_ns()
            sequence += queue.put_many(batch)
            board.acknowledged[number] = sequence


def consume(queue: queueduct.BoundedQueue, board: Board) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    last = np.full(PRODUCERS, -1)
    with contextlib.suppress(queueduct.ShutDown):
        while True:
            ticks = queue.get_many(4 * BATCH)
            for producer in np.unique(ticks["producer"]):
                sequences = ticks["sequence"][ticks["producer"] == producer]
                board.received[producer] += len(sequences)
                board.sums[producer] = (board.sums[producer] + int(sequences.sum())) % (1 << 64)
                if sequences[0] <= last[producer] or np.any(np.diff(sequences) <= 0):
                    board.disorder.value += 1
                last[producer] = sequences[-1]


def run(seconds: float, console: Console) -> Result:
    """Runs for that long. The console shows it live."""
    name = f"demo-{os.getpid()}"
    with queueduct.BoundedQueue.create(name, capacity=CAPACITY, item=TICK) as queue:
        try:
            return Demonstration(queue, console).run(seconds)
        finally:
            queue.unlink()


class Demonstration:
    def __init__(self, queue: queueduct.BoundedQueue, console: Console) -> None:
        self.queue = queue
        self.console = console
        self.board = Board()
        context = multiprocessing.get_context("spawn")
        self.producers = [context.Process(target=produce, args=(queue, n, self.board)) for n in range(PRODUCERS)]
        self.consumer = context.Process(target=consume, args=(queue, self.board))
        self.killed: list[str] = []

    def run(self, seconds: float) -> Result:
        workers = [*self.producers, self.consumer]
        with self.running(workers), Live(console=self.console, refresh_per_second=8, transient=True) as live:
            started = time.monotonic()
            while (elapsed := time.monotonic() - started) < seconds:
                live.update(self.picture(elapsed, seconds))
                if elapsed > seconds / 2 and not self.killed:
                    self.producers[VICTIM].kill()
                    self.killed.append(f"producer {VICTIM}, pid {self.producers[VICTIM].pid}")
                time.sleep(0.1)
            self.queue.shutdown()
            for worker in workers:
                worker.join(30)
        result = self.judge(time.monotonic() - started)
        self.report(result)
        return result

    @contextlib.contextmanager
    def running(self, workers: list[Any]) -> Iterator[None]:
        with self.console.status("starting four processes"):
            for worker in workers:
                worker.start()
            while not all(self.board.acknowledged) and all(worker.is_alive() for worker in workers):
                time.sleep(0.01)
        try:
            yield
        finally:
            for worker in workers:
                worker.kill()
                worker.join()

    def picture(self, elapsed: float, seconds: float) -> Table:
        received = sum(self.board.received)
        stats = self.queue.stats()
        table = Table(title=f"queueduct demo: {elapsed:.0f} of {seconds:.0f} s", title_justify="left")
        table.add_column("process")
        table.add_column("items", justify="right")
        table.add_column("million/s", justify="right")
        for number, done in enumerate(self.board.acknowledged):
            dead = number == VICTIM and bool(self.killed)
            label = f"producer {number}" + (" [red]killed -9[/]" if dead else "")
            table.add_row(label, f"{done:,}", "" if dead else f"{done / max(elapsed, 0.1) / 1e6:.2f}")
        table.add_row("consumer", f"{received:,}", f"{received / max(elapsed, 0.1) / 1e6:.2f}")
        filled = round(30 * stats.size / stats.capacity)
        table.add_row("queue", f"{stats.size:,} waiting", "█" * filled + "░" * (30 - filled))
        return table

    def judge(self, seconds: float) -> Result:
        items = sum(self.board.received)
        result = Result(seconds, items, items / seconds, self.killed, self.queue.stats().tombstones)
        for producer, acknowledged in enumerate(self.board.acknowledged):
            received = self.board.received[producer]
            # a killed producer may have put one batch more than it lived to acknowledge
            most = acknowledged + (BATCH if producer == VICTIM else 0)
            if not acknowledged <= received <= most:
                result.problems.append(f"producer {producer}: put {acknowledged:,}, received {received:,}")
            elif self.board.sums[producer] != received * (received - 1) // 2 % (1 << 64) and producer != VICTIM:
                result.problems.append(f"producer {producer}: the received items are not the ones that were put")
        if self.board.disorder.value:
            result.problems.append("a producer's items came out of order")
        return result

    def report(self, result: Result) -> None:
        self.console.print(
            f"{result.items:,} items of {TICK.itemsize} bytes in {result.seconds:.1f} s between four processes: "
            f"{result.items_per_second / 1e6:.2f} million/s, {result.items_per_second * TICK.itemsize / 1e9:.2f} GB/s"
        )
        for victim in self.killed:
            self.console.print(f"killed -9 on the way: {victim}; {result.recovered_slots} of its slots were recovered")
        for problem in result.problems:
            self.console.print(f"[red]{problem}[/]")
        if result.ok:
            self.console.print("[green]every acknowledged item came out exactly once, in order[/]")
