"""Puts staged rows into a queue: each file once, as fast as consumers make room, or until a timeout."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from queueduct.errors import Full, ProducerInUse, ShutDown
from queueduct.segments.kinds import kind_of

__all__ = ["BATCH_SHIFT", "Putter"]

BATCH_SHIFT = 20  # a sequence is batch and partition in one number: a million partitions a batch
SLICE_SECONDS = 0.5
BUSY_SECONDS = 20.0


class Putter:
    """One queue during one commit."""

    def __init__(self, queue: Any, timeout: float | None) -> None:
        self.queue = queue
        self.kind = kind_of(queue)
        self.timeout = timeout
        self.parent = os.getppid()

    def put_once(self, items: Any, producer: str, sequence: int) -> None:
        """Puts idempotently, if the kind can: a sequence of this producer that is in already is not put again."""
        if not self.kind.puts_once:
            self.put(items)
            return
        self.retry_while_progressing(lambda seconds: self.queue.put_once(items, producer, sequence, timeout=seconds))

    def last_sequence(self, producer: str) -> int:
        """Returns the last sequence that this producer has begun; -1 if there is none, or the kind keeps none."""
        known = self.queue.producers() if self.kind.puts_once else ()
        return next((int(one.sequence) for one in known if one.name == producer), -1)

    def put(self, items: Any) -> None:
        """Puts once, for a write that is not repeated."""
        done = 0

        def put_some(seconds: float) -> None:
            nonlocal done
            while done < len(items):
                done += self.queue.put_many(items[done:], timeout=seconds)

        self.retry_while_progressing(put_some)

    def retry_while_progressing(self, put: Callable[[float], object]) -> None:
        """Calls ``put`` until it succeeds. Raises Full if no producer has put an item for ``timeout`` seconds."""
        started = moved = time.monotonic()
        seen = self.progress()
        while True:
            try:
                put(SLICE_SECONDS if self.timeout is None else min(self.timeout, SLICE_SECONDS))
                return
            except Full as error:
                now = time.monotonic()
                if self.progress() != seen:
                    seen, moved = self.progress(), now
                elif self.timeout is not None and now - moved >= self.timeout:
                    raise Full(
                        f"the queue {self.queue.name!r} is full, and no item was taken for {self.timeout:g} s, the "
                        "timeout; see to its consumers and start the query again: it goes on where it stopped"
                    ) from error
            except ProducerInUse:  # perhaps the commit of a driver that was killed, and that ends soon
                if time.monotonic() - started > BUSY_SECONDS:
                    raise
                time.sleep(0.1)
            except ShutDown as error:
                raise RuntimeError(
                    f"the queue {self.queue.name!r} was shut down, so it takes no more rows; "
                    "write to a new queue, or end the query too"
                ) from error
            if os.getppid() != self.parent:
                raise RuntimeError("the driver has died; the batch is put by the one that comes after it")

    def progress(self) -> int:
        """Returns a count that rises with every put, so also when a consumer has made room in a full queue."""
        return self.kind.count_put(self.queue)
