"""Where a queue is: its directory, its name, and the id that tells it from a later one of the same name.

An address is plain data. It travels with a task to the process that runs it, and is opened there.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import queueduct
from queueduct.errors import QueueNotFound, QueueReplaced

__all__ = ["NEW_CHECKPOINT", "NEW_TARGET", "Address", "restart_at"]

NEW_TARGET = (
    "and a query that writes files into a new directory, too, since Spark's file sink leaves out the batches of a new "
    "checkpoint where those of an old one are (queueduct archive: another --to)"
)
NEW_CHECKPOINT = f"start with a new checkpoint, {NEW_TARGET}"

OPEN_HANDLES = 8  # that a worker process keeps from task to task


@dataclass(frozen=True)
class Address:
    """The address of a queue of this host; with an id, only of the queue with that id."""

    name: str
    directory: str | None = None
    segment: str | None = None

    def open(self) -> Any:
        """Opens a new handle. An error names the queue and the host."""
        try:
            queue = queueduct.open(self.name, directory=self.directory)
        except QueueNotFound as error:
            raise QueueNotFound(
                f"{error}; looked for on host {socket.gethostname()}: a queue in shared memory is one host's own, "
                "so run Spark there, or name its directory with the option directory"
            ) from error
        found = self.exactly(queue).segment
        if self.segment is not None and found != self.segment:
            queue.close()
            raise QueueReplaced(
                f"the queue {self.name!r} is not the one that this query reads: it was created anew, or another one "
                f"has its name; wanted id {self.segment}, found {found}; {NEW_CHECKPOINT}"
            )
        return queue

    def exactly(self, queue: Any) -> Address:
        """Returns the address with the queue's id and an absolute directory."""
        return replace(self, directory=str(queue.directory), segment=queue.segment_id.hex())

    def read(self, start: int, stop: int) -> Any:
        """Returns the items of these positions: the only call of a task on a queue."""
        return cached_queue(self).read(start, stop)


def restart_at(position: int) -> str:
    """Returns how a command, which has no failOnDataLoss, can go on at that position."""
    return f", and a command does with --start {position}, a new --checkpoint and, for queueduct archive, another --to"


@lru_cache(maxsize=OPEN_HANDLES)
def cached_queue(address: Address) -> Any:
    """Returns one handle for all tasks of this process. The id in the address keeps it from being another queue's."""
    return address.open()
