"""The producers: each is a process that puts the ticks of its own symbols, exactly once, and keeps count of them.

A producer writes down what it is about to put, then puts it with ``put_once`` under the number of the batch. The
process that comes after a killed one repeats what is written down: the queue takes what it does not have yet.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from queueduct import EventQueue, ShutDown
from queueduct.demo.workers import CONTEXT, Worker

__all__ = ["PRODUCERS", "SYMBOLS", "TICK", "Plan", "Producers", "batch_of", "symbols_of"]

TICK = np.dtype([("sym", "S8"), ("px", "f8"), ("qty", "i4"), ("ts", "M8[us]"), ("producer", "i4"), ("sequence", "i8")])
PRODUCERS = 4
SYMBOLS = [b"ACME", b"BOLT", b"CORE", b"DUNE", b"ECHO", b"FLUX", b"GRID", b"HALO"]
ROUND_SECONDS = 0.02
BEHIND_SECONDS = 0.2  # what a producer that was held up makes good; the rest of its schedule moves


def symbols_of(producer: int) -> list[bytes]:
    """Returns a producer's symbols: two each, so that one producer has all ticks of a symbol."""
    share = len(SYMBOLS) // PRODUCERS
    return SYMBOLS[producer * share : (producer + 1) * share]


def batch_of(producer: int, number: int, first: int, count: int, end_us: int, rate: float) -> np.ndarray[Any, Any]:
    """Returns the ticks of one batch: the same ones for the same arguments.

    Their sequence numbers follow each other, and their stamps lie as far apart as they are due, the last at ``end_us``.
    """
    generator = np.random.default_rng((producer, number))
    ticks = np.zeros(count, TICK)
    symbols = symbols_of(producer)
    sequence = first + np.arange(count)
    which = sequence % len(symbols)
    ticks["sym"] = np.array(symbols, "S8")[which]
    ticks["px"] = np.round(100 + 10 * which + generator.standard_normal(count), 2)
    ticks["qty"] = generator.integers(1, 100, count)
    ticks["producer"] = producer
    ticks["sequence"] = sequence
    ticks["ts"] = (end_us - (np.arange(count)[::-1] * (1e6 / rate)).astype("i8")).astype("M8[us]")
    return ticks


class Plan:
    """What a producer is about to put, in memory that outlives its process.

    Two places take turns, and the number that is written last says which of them holds: a kill on the way leaves the
    batch before.
    """

    def __init__(self) -> None:
        self.fields = CONTEXT.RawArray("q", 6)
        self.number = CONTEXT.RawValue("q", 0)
        self.acknowledged = CONTEXT.RawValue("q", 0)
        """Ticks that are known to be in the queue."""

    def write(self, first: int, count: int, end_us: int) -> int:
        """Writes the next batch down. Returns its number."""
        number = self.number.value + 1
        at = 3 * (number % 2)
        self.fields[at : at + 3] = [first, count, end_us]
        self.number.value = number
        return int(number)

    def read(self) -> tuple[int, int, int, int]:
        """Returns the number, the first sequence, the count and the stamp of the last batch."""
        number = int(self.number.value)
        at = 3 * (number % 2)
        first, count, end_us = self.fields[at : at + 3]
        return number, first, count, end_us


def produce(queue: EventQueue, producer: int, rate: float, plan: Plan, is_over: Any) -> None:
    """Puts ``rate`` ticks a second, or fewer if the queue is full."""

    def put(number: int, first: int, count: int, end_us: int) -> int:
        queue.put_once(batch_of(producer, number, first, count, end_us, rate), f"producer {producer}", number)
        plan.acknowledged.value = first + count
        return first + count

    try:
        sequence = put(*plan.read()) if plan.number.value else 0
        began, done = time.monotonic(), 0
        while not is_over.value:
            now = time.monotonic()
            began = max(began, now - BEHIND_SECONDS - done / rate)
            count = int((now - began) * rate) - done
            if count > 0:
                sequence = put(plan.write(sequence, count, now_us()), sequence, count, plan.read()[3])
                done += count
            time.sleep(ROUND_SECONDS)
    except ShutDown:
        return


def now_us() -> int:
    return time.time_ns() // 1000


class Producers:
    """The four producers, and the ticks that they have put."""

    def __init__(self, queue: EventQueue, rate: float) -> None:
        self.plans = [Plan() for _ in range(PRODUCERS)]
        self.is_over = CONTEXT.RawValue("b", 0)
        self.workers = [
            Worker(
                f"producer {number}",
                produce,
                *(queue, number, rate / PRODUCERS, self.plans[number], self.is_over),
            )
            for number in range(PRODUCERS)
        ]

    @property
    def counts(self) -> list[int]:
        return [int(plan.acknowledged.value) for plan in self.plans]

    @property
    def total(self) -> int:
        return sum(self.counts)

    def start(self) -> None:
        for worker in self.workers:
            worker.start()

    def check(self) -> None:
        for worker in self.workers:
            worker.check()

    def stop(self) -> None:
        """Lets each producer finish its put, and waits for it."""
        self.is_over.value = 1
        for worker in self.workers:
            worker.join()

    def end(self) -> None:
        for worker in self.workers:
            worker.end()
