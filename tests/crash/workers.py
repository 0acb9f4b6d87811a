"""Workers that may be killed at any moment, and the logs by which they are judged afterwards.

A log is a mapped file: what was stored in it is there after a SIGKILL, as the queue's own memory is.
A producer stores what it is about to put, puts, and stores that it did.
A consumer gets, checks, and stores what it got.
"""

from __future__ import annotations

import mmap
import time
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import queueduct

WORKER_SHIFT = 40
LOG_BYTES = 256 << 20  # sparse


class Log:
    """Words of one worker: 0 trying, 1 done, 2 the longest call in ns, 3 how many numbers follow, 4… the numbers."""

    TRYING, DONE, LONGEST, COUNT, NUMBERS = range(5)

    def __init__(self, path: Path) -> None:
        with path.open("a+b") as file:
            file.truncate(LOG_BYTES)
            self.memory = mmap.mmap(file.fileno(), LOG_BYTES)
        self.words = memoryview(self.memory).cast("Q")

    def note_duration(self, start_ns: int) -> None:
        duration = time.monotonic_ns() - start_ns
        if duration > self.words[self.LONGEST]:
            self.words[self.LONGEST] = duration

    def note_numbers(self, numbers: list[int]) -> None:
        first = self.NUMBERS + self.words[self.COUNT]
        self.words[first : first + len(numbers)] = array("Q", numbers)
        self.words[self.COUNT] += len(numbers)

    def note_again(self, position: int, numbers: list[int]) -> None:
        """What stands at this position of a log that may be read twice: the second time it must be the same."""
        again = max(0, min(self.words[self.COUNT] - position, len(numbers)))
        first = self.NUMBERS + position
        assert position <= self.words[self.COUNT], f"read from {position} on, after {self.words[self.COUNT]}"
        assert self.words[first : first + again] == array("Q", numbers[:again]), "read twice, and not the same"
        self.words[first : first + len(numbers)] = array("Q", numbers)
        self.words[self.COUNT] = max(self.words[self.COUNT], position + len(numbers))

    def numbers(self) -> np.ndarray:
        return np.array(self.words[self.NUMBERS : self.NUMBERS + self.words[self.COUNT]], "<u8")

    @property
    def longest_seconds(self) -> float:
        return self.words[self.LONGEST] / 1e9

    def close(self) -> None:
        self.words.release()
        self.memory.close()


class Load(NamedTuple):
    """What goes through the queue: how numbers become items, and items, checked over their length, numbers again."""

    create: dict[str, Any]
    batch: int
    """Items that one call puts, or gets at most."""
    make: Callable[[list[int]], Any]
    """The items of these numbers, for put_many and its like."""
    put: Callable[[Any, list[int]], int]
    get: Callable[[Any, float], list[int]]


def of_bytes(lengths: tuple[int, ...], **create: Any) -> Load:
    """Bytes of several lengths, each item its own number again and again."""

    def make(numbers: list[int]) -> list[bytes]:
        return [number.to_bytes(8, "little") * (lengths[number % len(lengths)] // 8) for number in numbers]

    def put(q: Any, numbers: list[int]) -> int:
        (item,) = make(numbers)
        q.put(item)
        return 1

    def get(q: Any, timeout: float) -> list[int]:
        item = q.get(timeout=timeout)
        number = int.from_bytes(item[:8], "little")
        if item != item[:8] * (lengths[number % len(lengths)] // 8):
            raise AssertionError(f"a torn item of {len(item)} bytes: {item[:64]!r}…")
        return [number]

    return Load(create, 1, make, put, get)


def of_records(words: int, batch: int, **create: Any) -> Load:
    """Batches of records, each its own number in every word."""

    def make(numbers: list[int]) -> np.ndarray:
        return np.repeat(np.array(numbers, "<u8")[:, None], words, axis=1)

    def put(q: Any, numbers: list[int]) -> int:
        return int(q.put_many(make(numbers)))

    def get(q: Any, timeout: float) -> list[int]:
        items = q.get_many(batch, timeout=timeout)
        if not (items == items[:, :1]).all():
            raise AssertionError(f"a torn record: {items}")
        return items[:, 0].tolist()

    return Load({"item": np.dtype(("<u8", (words,))), **create}, batch, make, put, get)


def produce(q: Any, load: Load, log: Log, worker: int, stop: memoryview) -> None:
    """Until told to stop. Numbers below DONE are in; those up to TRYING may be."""
    done = 0
    while not stop[0]:
        numbers = [worker << WORKER_SHIFT | done + i for i in range(load.batch)]
        log.words[Log.TRYING] = done + load.batch
        start = time.monotonic_ns()
        done += load.put(q, numbers)
        log.note_duration(start)
        log.words[Log.DONE] = done


def consume(q: Any, load: Load, log: Log, stop: memoryview, note: Callable[[list[int]], None] | None = None) -> None:
    """Until told to stop and the queue is empty."""
    note = note or log.note_numbers
    start = time.monotonic_ns()
    while True:
        try:
            numbers = load.get(q, 1)
        except queueduct.Empty:
            if stop[0]:
                return
            continue  # and it still waits
        if not stop[0]:
            log.note_duration(start)
        note(numbers)
        start = time.monotonic_ns()


def idle_along(log: Log, stop: memoryview) -> None:
    """The control: has nothing to do with the queue, and notes how long the machine keeps it from running."""
    last = time.monotonic_ns()
    while not stop[0]:
        for _ in range(200):
            log.note_duration(last)
            last = time.monotonic_ns()
        time.sleep(0.0005)
