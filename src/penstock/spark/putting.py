"""Put staged rows into a queue: each file once, slowed down by a full queue, and not for ever if nobody takes them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from penstock.errors import Full, ShutDown

__all__ = ["BATCH_SHIFT", "Putter"]

BATCH_SHIFT = 20  # a sequence is batch and partition in one number: a million partitions a batch
SLICE_SECONDS = 0.5


class Putter:
    """One queue during one commit."""

    def __init__(self, queue: Any, timeout: float | None) -> None:
        self.queue = queue
        self.timeout = timeout

    def put_once(self, items: Any, producer: str, sequence: int) -> None:
        """Idempotent: a sequence of this producer that is in already is not put again."""
        self.patiently(lambda seconds: self.queue.put_once(items, producer, sequence, timeout=seconds))

    def put(self, items: Any) -> None:
        """Once, for a write that nobody repeats."""
        done = 0

        def put_some(seconds: float | None) -> None:
            nonlocal done
            while done < len(items):
                done += self.queue.put_many(items[done:], timeout=seconds)

        self.patiently(put_some)

    def patiently(self, put: Callable[[float | None], object]) -> None:
        """Wait as long as the queue moves; when it has not for ``timeout`` seconds, say so."""
        try:
            if self.timeout is None:
                put(None)
            else:
                self.until_stuck(put, self.timeout)
        except ShutDown as error:
            raise RuntimeError(
                f"the queue {self.queue.name!r} was shut down, so it takes no more rows; "
                "write to a new queue, or end the query too"
            ) from error

    def until_stuck(self, put: Callable[[float | None], object], timeout: float) -> None:
        seen, moved = self.progress(), time.monotonic()
        while True:
            try:
                put(min(timeout, SLICE_SECONDS))
                return
            except Full as error:
                now = time.monotonic()
                if self.progress() != seen:
                    seen, moved = self.progress(), now
                elif now - moved >= timeout:
                    raise Full(
                        f"the queue {self.queue.name!r} is full, and nobody has taken an item for {timeout:g} s: "
                        "timeout; see to its consumers and start the query again: it goes on where it stopped"
                    ) from error

    def progress(self) -> int:
        """Rises as long as anything is put, which takes somebody who makes room."""
        end = getattr(self.queue, "end", None)
        return int(self.queue.stats().slots_pushed if end is None else end)
