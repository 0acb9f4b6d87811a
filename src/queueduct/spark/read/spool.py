"""A spool: the items that a query has got from a queue that is no log, kept until Spark is done with them.

::

    queue ──lease──► drainer ──append, sync──► spool (an EventQueue on a disk) ──by position──► Spark
      ▲                 │
      └────release──────┘

A spool is read like any EventQueue, under the durable reader of its query. A second durable reader, the drainer's own,
stands where everything before it was released in the queue. What lies after it was appended by a drainer that may have
been killed before it released them: those items come again, at the same positions, and are left out. Both readers hold
the items, so an item that may come again is always still there to be compared with.

Other queries drain the same queue into spools of their own, and get what a killed one held. So every spool of a queue
is noted in a directory beside the queue, and a drainer that gets a redelivered item checks all of them.

The reader of the drainer has the queue's id in its name, and is held by one process at a time: a spool belongs to one
queue and is filled by one query.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from queueduct import CorruptSegment, EventQueue, QueueNotFound, QueueReplaced
from queueduct.segments.kinds import kind_of
from queueduct.spark.address import Address
from queueduct.spark.private import make_private, replace_text

__all__ = ["READER", "Spool", "backlog_of", "beside", "spool_directory", "spool_item", "unpacked"]

READER = "spark"  # the durable reader of the query
DRAINER = "drainer of "  # and of the drainer, followed by the queue's id
NOTES, NOTE, QUEUE = ".spools-", ".spool", "queue"  # of which spools a queue has
POSITION, ITEM = "position", "item"
POSITION_BYTES = 8  # before each item of varying length
DEFAULT_MAX_BYTES = 1 << 30


def spool_item(item: object) -> Any:
    """Returns the item type of the spool of a queue with such items: the item and its position in the queue."""
    return np.dtype([(POSITION, "<i8"), (ITEM, item)]) if isinstance(item, np.dtype) else bytes


def packed(items: Any, positions: np.ndarray[Any, Any], item: Any) -> Any:
    """Returns items of a queue as items of its spool."""
    if item is bytes:
        places = positions.astype("<i8").tobytes()
        starts = range(0, len(places), POSITION_BYTES)
        return [places[start : start + POSITION_BYTES] + data for start, data in zip(starts, items, strict=True)]
    records = np.empty(len(positions), item)
    records[POSITION] = positions
    records[ITEM] = items
    return records


def unpacked(items: Any) -> tuple[Any, np.ndarray[Any, Any]]:
    """Returns items of a spool as those of its queue, and their positions there."""
    if isinstance(items, list):
        places = b"".join(data[:POSITION_BYTES] for data in items)
        return [data[POSITION_BYTES:] for data in items], np.frombuffer(places, "<i8")
    return items[ITEM], items[POSITION]


def spool_directory(chosen: str | None, address: Address) -> Path:
    """Returns the chosen directory, or one computed from the queue alone, so that a restarted query finds it."""
    if chosen:
        return Path(chosen).absolute()
    base = Path("/var/tmp", f"queueduct-spool-{os.geteuid()}")  # which outlives a reboot
    make_private(base, "spoolDir")
    return base / str(address.segment)[:16]


def beside(checkpoint: str | Path) -> dict[str, str]:
    """Returns the option that puts a spool beside a checkpoint, if that is a directory of this host."""
    path = str(checkpoint).removeprefix("file:")
    return {} if "://" in path else {"spoolDir": f"{path.rstrip('/')}.spool"}


def backlog_of(queue: Any, address: Address, spool_dir: str | None) -> Callable[[int | None], int]:
    """Returns how many items a query has not done, given the position up to which everything is."""
    if kind_of(queue).is_log:
        return lambda done: max(0, int(queue.end) - (int(queue.earliest) if done is None else done))
    exact = address.exactly(queue)

    def backlog(done: int | None) -> int:
        waiting = int(queue.qsize())
        spool = Spool.find(exact, spool_directory(spool_dir, exact))
        if spool is None:
            return waiting
        with contextlib.closing(spool):
            return waiting + spool.behind()

    return backlog


class Spool:
    """The spool of one queue, open in this process."""

    def __init__(self, address: Address, directory: Path, log: EventQueue) -> None:
        self.queue = address
        self.directory = directory
        self.log = log
        self.address = Address(str(log.name), str(directory)).exactly(log)

    @classmethod
    def open(cls, address: Address, directory: Path, item: object, max_bytes: int | None) -> Spool:
        """Opens the existing spool, if it is this queue's, or creates one."""
        make_private(directory, "spoolDir")
        spool = cls.find(address, directory)
        if spool is None:
            made = EventQueue.create(
                file_name(address),
                item=spool_item(item),
                max_bytes=max_bytes or DEFAULT_MAX_BYTES,
                readers=8,
                producers=0,
                sync="never",  # the drainer says when
                directory=directory,
                exist_ok=True,
            )
            spool = cls(address, directory, made)
        if spool.log.item != spool_item(item):
            raise ValueError(spool.strange(f"it has items of {spool.log.item}, not of {spool_item(item)}"))
        return spool

    @classmethod
    def find(cls, address: Address, directory: Path) -> Spool | None:
        """Opens the existing spool, if it is this queue's."""
        try:
            log = EventQueue.open(file_name(address), directory=directory, allow_pickle=False)
        except (QueueNotFound, NotADirectoryError):
            return None
        spool = cls(address, directory, log)
        for reader in spool.log.readers():
            if (reader.name or "").startswith(DRAINER) and reader.name != spool.drainer:
                raise ValueError(spool.strange(f"its queue's id is {str(reader.name).removeprefix(DRAINER)}"))
        return spool

    def strange(self, why: str) -> str:
        return (
            f"the spool {self.directory / str(self.log.name)} belongs to another queue than {self.queue.name!r} of id "
            f"{self.queue.segment}: {why}; give this query another spoolDir, or remove the spool and what it holds"
        )

    @property
    def drainer(self) -> str:
        """The name of the reader that only one process holds."""
        return DRAINER + str(self.queue.segment)

    def behind(self) -> int:
        """Returns how many items the query has not done yet."""
        return next((reader.lag for reader in self.log.readers() if reader.name == READER), int(self.log.end))

    def unsettled(self) -> np.ndarray[Any, Any]:
        """Returns the positions of items that were appended, and perhaps not released before the drainer died."""
        start = next((reader.committed for reader in self.log.readers() if reader.name == self.drainer), 0)
        end = self.log.end
        if start >= end:
            return np.zeros(0, np.int64)
        return unpacked(self.log.read(start, end))[1]

    def note(self) -> None:
        """Notes this spool for the queue's other spools, before it has any items."""
        forget_gone_queues(Path(str(self.queue.directory)))
        folder = notes_of(self.queue)
        folder.mkdir(mode=0o700, exist_ok=True)
        path = str(self.directory)
        for note, text in (
            (folder / QUEUE, self.queue.name),
            (folder / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:24]}{NOTE}", path),
        ):
            replace_text(note, text)

    def others(self) -> Iterator[Spool]:
        """Returns the other spools of the queue that still exist."""
        for note in notes_of(self.queue).glob(f"*{NOTE}"):
            directory = Path(note.read_text())
            other = None if directory == self.directory else Spool.find(self.queue, directory)
            if other is not None:
                yield other

    def close(self) -> None:
        self.log.close()


def file_name(address: Address) -> str:
    return f"{address.name}.spool"


def notes_of(address: Address) -> Path:
    """Returns the directory in which a queue's spools are noted: beside it, with a name that no queue can have."""
    return Path(str(address.directory), f"{NOTES}{address.segment}")


def forget_gone_queues(directory: Path) -> None:
    """Removes the notes of queues that were unlinked."""
    for folder in directory.glob(f"{NOTES}*"):
        with contextlib.suppress(FileNotFoundError):  # not yet there, or removed by another
            name = (folder / QUEUE).read_text()
            try:
                Address(name, str(directory), folder.name.removeprefix(NOTES)).open().close()
            except (QueueNotFound, QueueReplaced, CorruptSegment):
                shutil.rmtree(folder, ignore_errors=True)
