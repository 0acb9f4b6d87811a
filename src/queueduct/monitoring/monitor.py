"""Every queue of a directory, looked at again and again through light handles."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from queueduct.errors import CorruptSegment, QueueductError, QueueNotFound
from queueduct.monitoring.one_queue import Span, Tracked, unknown
from queueduct.monitoring.pipelines import FOLDER, PipelineSeen, read_pipelines
from queueduct.monitoring.seen import Detail, History, QueueSeen, Snapshot, State
from queueduct.segments.kinds import KINDS
from queueduct.segments.names import Directory, directory_of
from queueduct.watching.watch import watch

__all__ = ["Monitor"]

RETRY_SECONDS = 1.0


class Refused:
    """A file that could not be watched: what it is, why, and when to try again."""

    def __init__(self, seen: QueueSeen | None, retry_at: float) -> None:
        self.seen = seen
        """None if it is no queue's file at all."""
        self.retry_at = retry_at


class Monitor:
    """Looks at the queues of a directory, and remembers enough to tell rates, lag and who is missed.

    Call ``look()`` about every ``interval`` seconds. A queue that is made is found by the next look, and one that is
    unlinked or replaced is let go. A queue that cannot be read says so, and disturbs no other. Any thread may call.
    """

    def __init__(
        self,
        directory: Directory = None,
        *,
        names: Iterable[str] | None = None,
        interval: float = 0.5,
        window: float = 5.0,
        history: float = 300.0,
    ) -> None:
        for label, value in (("interval", interval), ("window", window), ("history", history)):
            if not 0 < value < 1e9:
                raise ValueError(f"{label} must be a positive number of seconds: {label}={value!r}; try 1")
        self.directory: Path = directory_of(directory)
        os.scandir(self.directory).close()  # a missing directory is told at once
        self.span = Span(interval, window, history)
        self._names = None if names is None else frozenset(names)
        self._lock = threading.Lock()
        self._tracked: dict[str, tuple[int, Tracked]] = {}
        self._refused: dict[str, tuple[int, Refused]] = {}
        self._pipelines: dict[str, list[PipelineSeen]] = {}
        self._pipelines_at = float("-inf")
        self._is_closed = False

    def look(self) -> Snapshot:
        """Looks at every queue once."""
        with self._lock:
            if self._is_closed:
                raise ValueError("a closed monitor looks at nothing; make another one")
            at = time.monotonic()
            try:
                there = self._there()
            except OSError as error:
                self._let_go(self._tracked.keys())
                return Snapshot(time.time(), self.directory, str(error), ())
            self._let_go([name for name, (inode, _) in self._tracked.items() if there.get(name) != inode])
            self._refused = {name: known for name, known in self._refused.items() if there.get(name) == known[0]}
            self._read_pipelines(at)
            seen = (self._look_at(name, inode, at) for name, inode in sorted(there.items()))
            return Snapshot(time.time(), self.directory, None, tuple(each for each in seen if each is not None))

    def detail(self, name: str) -> Detail | None:
        """Returns more of one queue, as of the last look; None if it is not there, or cannot be read."""
        with self._lock:
            if self._is_closed or name not in self._tracked:
                return None
            try:
                return self._tracked[name][1].detail(time.time() - time.monotonic())
            except (QueueductError, OSError):  # the next look tells
                return None

    def histories(self) -> dict[str, History]:
        """Returns the last minutes of every queue that can be read, as of the last look."""
        with self._lock:
            ahead = time.time() - time.monotonic()
            return {name: tracked.history(ahead) for name, (_, tracked) in self._tracked.items()}

    def close(self) -> None:
        """Closes all handles."""
        with self._lock:
            self._is_closed = True
            self._let_go(self._tracked.keys())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _there(self) -> dict[str, int]:
        """Returns the files that may be queues, with their inodes. One call for all costs less than one for each."""
        with os.scandir(self.directory) as entries:
            return {
                entry.name: entry.inode()
                for entry in entries
                if not entry.name.startswith(".")
                and (self._names is None or entry.name in self._names)
                and entry.is_file(follow_symlinks=False)
            }

    def _look_at(self, name: str, inode: int, at: float) -> QueueSeen | None:
        pipelines = tuple(self._pipelines.get(name, ()))
        known = self._refused.get(name)
        if known is not None and at < known[1].retry_at:
            return known[1].seen
        tracked: Tracked | None = None
        try:
            if name not in self._tracked:
                self._tracked[name] = (inode, Tracked(watch(name, directory=self.directory), self.span))
            tracked = self._tracked[name][1]
            seen = tracked.look(at, pipelines)
        except QueueNotFound:  # it was unlinked since
            return None
        except Exception as error:  # whatever is wrong with this one, the others are looked at
            refused = self._refusal(name, error, tracked, pipelines)
            self._refused[name] = (inode, Refused(refused, at + RETRY_SECONDS))
            self._let_go([name])
            return refused
        self._refused.pop(name, None)
        return seen

    def _refusal(
        self, name: str, error: Exception, tracked: Tracked | None, pipelines: tuple[PipelineSeen, ...]
    ) -> QueueSeen | None:
        if tracked is not None:
            return tracked.failed(error, pipelines)
        if (before := self._refused.get(name)) is not None and before[1].seen is not None:
            return before[1].seen._replace(pipelines=pipelines)
        if isinstance(error, CorruptSegment) and not is_ours(self.directory / name):
            return None
        state = State.CORRUPT if isinstance(error, CorruptSegment) else State.UNREADABLE
        return unknown(name, "")._replace(state=state, error=str(error), pipelines=pipelines)

    def _let_go(self, names: Iterable[str]) -> None:
        for name in list(names):
            if name in self._tracked:
                self._tracked.pop(name)[1].watch.close()

    def _read_pipelines(self, at: float) -> None:
        if at < self._pipelines_at + RETRY_SECONDS:
            return
        self._pipelines_at = at
        self._pipelines = {}
        if (self.directory / FOLDER).exists():
            for each in read_pipelines(self.directory):
                for name in {each.queue, each.target_queue} - {None}:
                    self._pipelines.setdefault(str(name), []).append(each)


def is_ours(path: Path) -> bool:
    """Returns true if a file that cannot be read as a queue begins like one."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        return file.read(8) in {kind.geometry.magic for kind in KINDS.values()} - {b""}
    return False
