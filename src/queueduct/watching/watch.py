"""A light handle for watchers: it reads a queue's counters, and never writes a byte of it."""

from __future__ import annotations

import dataclasses
import os
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from queueduct.segments.kinds import KINDS
from queueduct.segments.names import Directory
from queueduct.segments.segment import open_segment
from queueduct.stats import ParticipantInfo, ProducerInfo, ReaderInfo

__all__ = ["Watch", "watch"]


def watch(name: str, *, directory: Directory = None) -> Watch:
    """Return a light handle of the queue of that name: for monitors, which look at many queues and change none.

    The queue's file is mapped read-only, page by page as it is looked at. The watcher is no participant of the queue,
    takes no lock that others wait for, and starts no thread. Reading permission of the file is enough.

    >>> q = queueduct.BoundedQueue.create("jobs")
    >>> with queueduct.watch("jobs") as watch:
    ...     print(watch.kind, watch.stats().size)
    bounded 0
    >>> q.unlink()
    """
    return Watch(name, directory)


class Watch:
    """A queue as a watcher sees it. Made by ``queueduct.watch``; close it, or use it in a ``with``.

    A watch keeps the memory of a queue that was unlinked, as every open handle does: look at ``exists`` now and then,
    and close the watch when it is False.

    >>> q = queueduct.BoundedQueue.create("jobs")
    >>> with queueduct.watch("jobs") as watch:
    ...     q.unlink()
    ...     watch.exists
    False
    """

    def __init__(self, name: str, directory: Directory = None) -> None:
        opened = open_segment(name, directory=directory, read_only=True)
        self._path = opened.path
        self._file = opened.inode
        self._geometry = opened.geometry
        self._queue: Any = KINDS[opened.geometry.kind].queue_class._attach(opened, True)

    @property
    def name(self) -> str:
        """The queue's name."""
        return self._path.name

    @property
    def directory(self) -> Path:
        """The directory of the queue's file."""
        return self._path.parent

    @property
    def kind(self) -> str:
        """The kind, as queueduct.queues() names it."""
        return self._geometry.kind

    @property
    def item(self) -> Any:
        """The type of its items: bytes, object or a dtype."""
        return self._queue.item

    @property
    def segment_id(self) -> bytes:
        """16 bytes that tell this queue from a later one of the same name."""
        found: bytes = self._queue.segment_id
        return found

    @property
    def created(self) -> datetime:
        """When the queue was created, in UTC."""
        found: datetime = self._queue.created
        return found

    @property
    def creator(self) -> int:
        """The pid of the process that created the queue, in that process's own pid namespace."""
        return int(self._queue.creator)

    @property
    def capacity(self) -> int:
        """The capacity, as the queue's own property says it."""
        return int(self._queue.capacity)

    @property
    def sizes(self) -> dict[str, int]:
        """All sizes that the queue was created with, by their names in the header."""
        return dataclasses.asdict(self._geometry)

    @property
    def exists(self) -> bool:
        """True if the name still leads to this very queue: it was not unlinked, nor replaced by another."""
        try:
            status = os.stat(self._path, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return (status.st_dev, status.st_ino) == self._file

    @property
    def closed(self) -> bool:
        """True if this watch was closed."""
        return bool(self._queue.closed)

    def stats(self) -> Any:
        """One look at the queue's counters: what ``stats()`` of its kind returns.

        >>> q = queueduct.BoundedQueue.create("jobs")
        >>> with queueduct.watch("jobs") as watch:
        ...     watch.stats().capacity
        1024
        >>> q.unlink()
        """
        return self._queue.stats()

    def participants(self, *, commands: bool = True) -> list[ParticipantInfo]:
        """Returns who takes part in the queue, as ``participants()`` of a queue does.

        >>> q = queueduct.BoundedQueue.create("jobs")
        >>> with queueduct.watch("jobs") as watch:
        ...     watch.participants()
        []
        >>> q.unlink()
        """
        found: list[ParticipantInfo] = self._queue.participants(commands=commands)
        return found

    def readers(self) -> list[ReaderInfo]:
        """Returns the readers of an event queue. Raises TypeError if the queue is of another kind.

        >>> log = queueduct.EventQueue.create("ticks")
        >>> reader = log.subscribe("archive")
        >>> with queueduct.watch("ticks") as watch:
        ...     [each.name for each in watch.readers()]
        ['archive']
        >>> log.unlink()
        """
        if not KINDS[self.kind].is_log:
            raise TypeError(f"only an event queue has readers: {self.name!r} is of kind {self.kind!r}")
        found: list[ReaderInfo] = self._queue._readers_seen()
        return found

    def producers(self) -> list[ProducerInfo]:
        """Returns what put_once has recorded of each producer. Raises TypeError if the kind has no put_once.

        >>> q = queueduct.BoundedQueue.create("jobs")
        >>> q.put_once([b"a"], "feed", 1)
        1
        >>> with queueduct.watch("jobs") as watch:
        ...     [each.name for each in watch.producers()]
        ['feed']
        >>> q.unlink()
        """
        if not KINDS[self.kind].puts_once:
            raise TypeError(f"a queue of kind {self.kind!r} has no put_once, and so no producers: {self.name!r}")
        found: list[ProducerInfo] = self._queue.producers()
        return found

    def close(self) -> None:
        """Close this watch: the memory of an unlinked queue goes with its last handle.

        >>> q = queueduct.BoundedQueue.create("jobs")
        >>> watch = queueduct.watch("jobs")
        >>> watch.close()
        >>> q.unlink()
        """
        self._queue.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else "open" if self.exists else "its queue was removed"
        return f"<queueduct.Watch {self.name!r} {self.kind} {state}>"

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(f"a watch belongs to one process: call queueduct.watch({self.name!r}) in the other one")
