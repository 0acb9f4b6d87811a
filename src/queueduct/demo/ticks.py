"""The producers: each is a process that puts the ticks of its own symbols, and keeps count of them."""

from __future__ import annotations

import multiprocessing
import signal
import time
from multiprocessing import resource_tracker
from typing import Any

import numpy as np

from queueduct import EventQueue, ShutDown

__all__ = ["PRODUCERS", "SYMBOLS", "TICK", "Producers", "symbols_of"]

TICK = np.dtype([("sym", "S8"), ("px", "f8"), ("qty", "i4"), ("ts", "M8[us]"), ("producer", "i4"), ("sequence", "i8")])
PRODUCERS = 4
SYMBOLS = [b"ACME", b"BOLT", b"CORE", b"DUNE", b"ECHO", b"FLUX", b"GRID", b"HALO"]
ROUND_SECONDS = 0.02
FIRST = 10  # ticks of each producer before the opening: Spark's first batch takes seconds, and is done with them


def symbols_of(producer: int) -> list[bytes]:
    """Returns a producer's symbols: two each, so that one producer has all ticks of a symbol."""
    share = len(SYMBOLS) // PRODUCERS
    return SYMBOLS[producer * share : (producer + 1) * share]


def batch_of(producer: int, first: int, count: int, generator: np.random.Generator) -> np.ndarray[Any, Any]:
    """Returns ticks with consecutive sequence numbers, stamped with the current time."""
    ticks = np.zeros(count, TICK)
    symbols = symbols_of(producer)
    which = (first + np.arange(count)) % len(symbols)
    ticks["sym"] = np.array(symbols)[which]
    ticks["px"] = np.round(100 + 10 * which + generator.standard_normal(count), 2)
    ticks["qty"] = generator.integers(1, 100, count)
    ticks["producer"] = producer
    ticks["sequence"] = first + np.arange(count)
    ticks["ts"] = np.datetime64(time.time_ns() // 1000, "us")
    return ticks


def produce(queue: EventQueue, producer: int, rate: float, counts: Any, is_open: Any, is_over: Any) -> None:
    """Puts a few ticks, waits for the opening, then puts ``rate`` a second, or fewer if the queue is full."""
    generator = np.random.default_rng(producer)
    counts[producer] = sequence = queue.put_many(batch_of(producer, 0, FIRST, generator))
    while not is_open.value and not is_over.value:
        time.sleep(ROUND_SECONDS)
    began = time.monotonic()
    while not is_over.value:
        due = (time.monotonic() - began) * rate
        count = min(FIRST + int(due) - sequence, int(rate * 0.2))  # after a wait it catches up step by step
        if count > 0:
            try:
                sequence += queue.put_many(batch_of(producer, sequence, count, generator))
            except ShutDown:
                return
            counts[producer] = sequence
        time.sleep(ROUND_SECONDS)


class Producers:
    """The four producers, and the ticks that they have put."""

    def __init__(self, queue: EventQueue, rate: float) -> None:
        context = multiprocessing.get_context("spawn")
        self.counts = context.RawArray("q", PRODUCERS)
        self.is_open = context.RawValue("b", 0)
        self.is_over = context.RawValue("b", 0)
        self.processes = [
            context.Process(
                target=produce, args=(queue, number, rate / PRODUCERS, self.counts, self.is_open, self.is_over)
            )
            for number in range(PRODUCERS)
        ]

    @property
    def total(self) -> int:
        return sum(self.counts)

    def start(self) -> None:
        """Starts them with Ctrl-C blocked: the parent decides when they end."""
        resource_tracker.ensure_running()  # else the first start would do it, and unblock Ctrl-C
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            for process in self.processes:
                process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def stop(self) -> None:
        """Lets each producer finish its put, and waits for it."""
        self.is_over.value = 1
        for process in self.processes:
            process.join(30)

    def kill(self) -> None:
        for process in self.processes:
            if process.pid is not None:
                process.kill()
                process.join()

    def failures(self) -> list[str]:
        return [
            f"producer {number} ended with exit code {process.exitcode}"
            for number, process in enumerate(self.processes)
            if process.exitcode != 0
        ]
