"""The consumers without a JVM: ``queueduct.recording`` fills the archive, and numpy makes the candles."""

from __future__ import annotations

import time
from pathlib import Path

from queueduct import EventQueue
from queueduct.demo import candles
from queueduct.demo.consumers import Accident, Shown
from queueduct.demo.workers import Worker
from queueduct.recording import record

__all__ = ["PlainConsumers", "archive"]

ARCHIVE_READER = "archive"
SECONDS_PER_FILE = 0.25
START_SECONDS = 60.0


def archive(ticks: EventQueue, to: Path) -> None:
    """Records until the queue is shut down and empty."""
    record(ticks, to, reader=ARCHIVE_READER, seconds_per_file=SECONDS_PER_FILE)


class PlainConsumers:
    """Two processes: the recorder and the maker of candles."""

    def __init__(self, ticks: EventQueue, candle_queue: EventQueue, to: Path) -> None:
        self.ticks = ticks
        self.recorder = Worker("recorder", archive, ticks, to)
        self.maker = Worker("maker of candles", candles.make_candles, ticks, candle_queue)
        self.workers = (self.recorder, self.maker)

    def start(self) -> None:
        for worker in self.workers:
            worker.start()
        deadline = time.monotonic() + START_SECONDS
        while len(self.committed()) < len(self.workers):
            self.check(0.02)
            if time.monotonic() > deadline:
                raise RuntimeError(f"the recorder and the maker of candles must start within {START_SECONDS:.0f} s")

    def is_warm(self) -> bool:
        return self.committed().get(ARCHIVE_READER, 0) > 0

    def check(self, seconds: float) -> None:
        time.sleep(seconds)
        for worker in self.workers:
            worker.check()

    def accidents(self) -> list[Accident]:
        return [Accident(f"the {worker.name}", worker.kill_and_restart) for worker in self.workers]

    def shown(self) -> list[Shown]:
        committed = self.committed()
        return [
            Shown("recorder: archive", committed.get(ARCHIVE_READER, 0), f"a file each {SECONDS_PER_FILE:g} s"),
            Shown("numpy: candles", committed.get(candles.READER, 0), "open seconds wait"),
        ]

    def committed(self) -> dict[str | None, int]:
        return {reader.name: reader.committed for reader in self.ticks.readers() if reader.name is not None}

    def is_done(self) -> bool:
        ended = [worker.has_ended() for worker in self.workers]  # an error of either is raised
        return all(ended)

    def stop(self) -> None:
        for worker in self.workers:
            worker.end()
