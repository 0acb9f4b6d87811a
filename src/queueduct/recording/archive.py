"""An archive: a directory of Parquet files that have a queue's items, each position once.

::

    rec/0000000000000000-0000000000065535.parquet    the items of positions 0 to 65535
    rec/0000000000065536-0000000000070001.parquet
    rec/_recording.tmp                               the file that is being written

A file has its name only when it is complete and on the disk, and the names say how far the archive goes. So a recorder
needs no other state. Its columns are the queue's, then the position, then when the item was recorded. What a replay
needs to make the queue again is in the file's own metadata, as JSON.

One recorder at a time fills an archive: it holds a lock on the directory, which the kernel drops when it dies.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from queueduct.arrow.records import values_of
from queueduct.errors import CorruptSegment, ReaderInUse
from queueduct.items.types import ItemType

__all__ = ["TEMPORARY", "Archive", "ArchiveFile", "Facts", "facts_of", "files_in", "sync_directory"]

TEMPORARY = "_recording.tmp"  # Spark and others pass over names that begin so
NAME = re.compile(r"(\d{16,19})-(\d{16,19})\.parquet")
KEY = b"queueduct"
FORMAT = 1
NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)


class ArchiveFile(NamedTuple):
    """A complete file, as its name says it."""

    first: int
    last: int
    path: Path

    @classmethod
    def of(cls, path: Path) -> ArchiveFile | None:
        found = NAME.fullmatch(path.name)
        return None if found is None else cls(int(found[1]), int(found[2]), path)


def files_in(directory: Path) -> list[ArchiveFile]:
    """Returns the recorder's files, by their first positions."""
    return sorted(found for entry in directory.iterdir() if (found := ArchiveFile.of(entry)) is not None)


class Facts(NamedTuple):
    """What a file says of itself."""

    queue: str
    queue_id: str
    kind: str
    item: ItemType
    epoch: int
    """Of a log on a disk: how often it had been cut."""
    reader: str | None
    """The durable reader's name; None if the queue is no log."""
    position_column: str
    recorded_column: str | None
    first: int
    last: int
    rows: int

    def as_metadata(self) -> dict[bytes, bytes]:
        """Returns the pair of key and value for the file's footer."""
        item = {"kind": self.item.kind, "text": self.item.text.decode()}
        return {KEY: json.dumps({"format": FORMAT, **self._asdict(), "item": item}).encode()}


def facts_of(path: Path, metadata: Any) -> Facts | None:
    """Returns what a file's footer says; None if another program has written the file."""
    text = (metadata.metadata or {}).get(KEY)
    if text is None:
        return None
    try:
        found = json.loads(text)
        if found.pop("format") != FORMAT:
            raise ValueError("it is of a later version of queueduct")
        item = found.pop("item")
        return Facts(item=ItemType.from_header(item["kind"], item["text"].encode()), **found)
    except (ValueError, KeyError, TypeError, AttributeError, CorruptSegment) as error:
        raise ValueError(
            f"the metadata of a recorded file must say what it has: {path}: {error}; take the file out of the archive"
        ) from error


class Archive:
    """A directory that this process fills. Close it, or use it in a ``with``."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        make_directory(directory)
        self.descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.lock()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.temporary)  # of a recorder that was killed: no reader of the queue has passed its items
            self.files = files_in(directory)
        except BaseException:
            os.close(self.descriptor)
            raise

    @property
    def temporary(self) -> Path:
        return self.directory / TEMPORARY

    def lock(self) -> None:
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ReaderInUse(
                f"one recorder at a time fills a directory: another process records into {self.directory}; "
                "end that one first, or record into another directory"
            ) from None
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            raise OSError(
                error.errno,
                f"a recorder locks its directory, and the file system of {self.directory} has no locks: "
                f"{os.strerror(error.errno)}; record into a directory of a local file system",
            ) from error

    def last_facts(self) -> Facts | None:
        """Returns what the file with the highest position says; None if there is no file."""
        if not self.files:
            return None
        path = max(self.files, key=lambda file: file.last).path
        facts = facts_of(path, footer(path))
        if facts is None:
            raise ValueError(
                f"the files of an archive must be a recorder's: another program has written {path}; "
                "record into another directory"
            )
        return facts

    def positions_between(self, first: int, last: int) -> Iterator[np.ndarray[Any, Any]]:
        """Yields the positions of each file that may have some of these: only its footer is read if it has no gaps."""
        for file in self.files:
            if file.last < first or last < file.first:
                continue
            found = footer(file.path)
            if found.num_rows == file.last - file.first + 1:
                yield np.arange(file.first, file.last + 1)
                continue
            facts = facts_of(file.path, found)
            name = "position" if facts is None else facts.position_column
            with pq.ParquetFile(file.path) as opened:
                yield values_of(pa.concat_arrays(opened.read([name], use_threads=False).column(0).chunks))

    def close(self) -> None:
        """Releases the lock."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def footer(path: Path) -> Any:
    try:
        return pq.read_metadata(path)
    except pa.ArrowInvalid as error:
        raise ValueError(
            f"a file of an archive must be Parquet: {path}: {error}; take it out of the archive"
        ) from error


def make_directory(directory: Path) -> None:
    """Makes the directory and those above it, each on the disk before the next."""
    if directory.is_dir():
        return
    make_directory(directory.parent)
    with contextlib.suppress(FileExistsError):
        directory.mkdir()
    if not directory.is_dir():
        raise NotADirectoryError(f"an archive is a directory: {directory} is a file; record into another one")
    sync_directory(directory.parent)


def sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
