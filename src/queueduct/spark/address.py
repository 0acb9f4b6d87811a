"""Where a queue is: its directory, its name, and the id that tells it from a later one of the same name.

An address is plain data. It travels with a task to whatever process runs it, and is opened there.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import queueduct
from queueduct.errors import QueueNotFound, QueueReplaced

__all__ = ["ANEW", "ELSEWHERE", "Address", "commanded", "queue_directory"]

ELSEWHERE = (
    "and a query that writes files into a new directory, too, since Spark's file sink leaves out the batches of a new "
    "checkpoint where those of an old one are (queueduct archive: another --to)"
)
ANEW = f"start with a new checkpoint, {ELSEWHERE}"

OPEN_HANDLES = 8  # that a worker process keeps from task to task


@dataclass(frozen=True)
class Address:
    """A queue of this host; with an id, only the very queue of that id."""

    name: str
    directory: str | None = None
    segment: str | None = None

    def open(self) -> Any:
        """A new handle, or an error that names the queue and the host."""
        with queue_directory(self.directory):
            try:
                queue = queueduct.open(self.name)
            except QueueNotFound as error:
                raise QueueNotFound(
                    f"{error}; looked for on host {socket.gethostname()}: a queue in shared memory is one host's own, "
                    "so run Spark there, or name its directory with the option directory"
                ) from error
        _, found = told_by_pickle(queue)
        if self.segment is not None and found != self.segment:
            queue.close()
            raise QueueReplaced(
                f"the queue {self.name!r} is not the one that this query reads: it was created anew, or another one "
                f"has its name; wanted id {self.segment}, found {found}; {ANEW}"
            )
        return queue

    def exactly(self, queue: Any) -> Address:
        """The same, for this very queue and from any directory."""
        directory, segment = told_by_pickle(queue)
        return replace(self, directory=directory, segment=segment)

    def read(self, start: int, stop: int) -> Any:
        """The items of these positions. The only thing that a task asks of a queue."""
        return kept_open(self).read(start, stop)


def commanded(position: int) -> str:
    """The commands have no failOnDataLoss: how they go on there."""
    return f", and a command does with --start {position}, a new --checkpoint and, for queueduct archive, another --to"


def told_by_pickle(queue: Any) -> tuple[str, str]:
    """The directory of a named queue and its id, as its pickle would tell them to another process."""
    _, (_, directory, segment_id, _) = queue.__reduce__()
    return str(directory), bytes(segment_id).hex()


@lru_cache(maxsize=OPEN_HANDLES)
def kept_open(address: Address) -> Any:
    """One handle for all tasks of this process; the queue's id keeps it right, and its end of life closes it."""
    return address.open()


@contextlib.contextmanager
def queue_directory(directory: str | None) -> Iterator[None]:
    """Look for queues there, for a moment."""
    if directory is None:
        yield
        return
    before = os.environ.get("QUEUEDUCT_DIR")
    os.environ["QUEUEDUCT_DIR"] = directory
    try:
        yield
    finally:
        if before is None:
            del os.environ["QUEUEDUCT_DIR"]
        else:
            os.environ["QUEUEDUCT_DIR"] = before
