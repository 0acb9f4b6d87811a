"""Where a pool keeps what it must remember: a hidden directory beside the queue, for all pools on this queue.

::

    .workers-<segment id>/
        lock        shared by every pool that lives; who gets it exclusively may remove the directory
        leader      exclusive: the one pool that delivers results and hands out retries
        lines       which job each worker has
        retry       jobs that failed, until they are due
        ready       jobs to be tried again now
        outcomes    results on their way to the supervisor

The kernel drops both locks when their process ends, however it ends, and the next pool goes on with what is there.
A job is in at least one queue at every moment: it is put into the next one before it is released from the last one.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from queueduct.errors import QueueductError, QueueNotFound
from queueduct.items.types import OBJECT, ItemType
from queueduct.pool.frames import RESULT_LIMIT_BYTES
from queueduct.pool.lines import Lines
from queueduct.rings import GrowingQueue
from queueduct.segments.kinds import KINDS
from queueduct.segments.names import directory_of
from queueduct.segments.segment import open_regular, open_segment, validate

__all__ = ["Address", "FileLock", "Place", "open_outcomes", "open_raw"]

PREFIX = ".workers-"
QUEUES = ("retry", "ready", "outcomes")
PARTICIPANTS = 1024


class FileLock:
    """A lock that ends with its process. A forked child gives up its copy at once."""

    _all: ClassVar[weakref.WeakSet[FileLock]] = weakref.WeakSet()

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.path = path
        FileLock._all.add(self)

    def share(self) -> None:
        """Waits at most for a pool that removes an unused directory."""
        fcntl.flock(self._fd, fcntl.LOCK_SH)

    def try_exclusive(self) -> bool:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                return False
            raise
        return True

    def is_at_path(self) -> bool:
        """Returns true if the file was not removed meanwhile."""
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(self._fd))
        except FileNotFoundError:
            return False

    def close(self) -> None:
        if "_fd" in self.__dict__:
            os.close(self.__dict__.pop("_fd"))

    __del__ = close

    @classmethod
    def leave_to_parent(cls) -> None:
        for lock in list(cls._all):
            lock.close()


os.register_at_fork(after_in_child=FileLock.leave_to_parent)


@dataclass(frozen=True)
class Address:
    """By what a worker finds the queues of its pool."""

    path: Path
    name: str
    directory: str
    segment_id: bytes
    item_type: ItemType
    is_private: bool
    """The jobs are numbered, and come from this pool alone."""


def open_raw(name: str, directory: str, segment_id: bytes) -> Any:
    """Opens a queue so that its objects come as their pickles: only the process that wants an object unpickles it."""
    return open_with_limit(name, directory, segment_id)[0]


def open_with_limit(name: str, directory: str, segment_id: bytes) -> tuple[Any, int]:
    """Returns the queue, and how many bytes an item may have at most."""
    opened = open_segment(name, directory=directory, segment_id=segment_id)
    sizes = opened.geometry.values()
    limit = min(RESULT_LIMIT_BYTES, sizes["capacity"] * sizes["slot_bytes"])
    queue_class = KINDS[opened.geometry.kind].queue_class
    if opened.item.kind == OBJECT:
        opened.item = ItemType.of(bytes)
    return queue_class._attach(opened, True), limit


class Place:
    """The queues and lines of a pool, opened by its supervisor or by a worker."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.jobs = open_raw(address.name, address.directory, address.segment_id)
        self.retry, self.ready, self.outcomes = (GrowingQueue.open(name, directory=address.path) for name in QUEUES)
        self.lines = Lines(address.path / "lines")

    def sources(self) -> tuple[Any, Any]:
        """Returns the queues that workers lease from, by their number in a line."""
        return self.jobs, self.ready

    def close(self) -> None:
        for queue in (self.jobs, self.retry, self.ready, self.outcomes):
            queue.close()


def open_outcomes(address: Address) -> Any:
    return GrowingQueue.open("outcomes", directory=address.path)


def prepare(path: Path, name: str) -> FileLock:
    """Makes the directory of a pool, or joins that of another pool; returns its shared lock."""
    while True:
        path.mkdir(mode=0o700, exist_ok=True)
        try:
            lock = FileLock(path / "lock")
        except FileNotFoundError:  # another pool has just removed it
            continue
        lock.share()
        if lock.is_at_path():
            break
        lock.close()
    with removed_on_failure(path, lock, if_empty=bool(name)):
        (path / "name").write_text(name)
        Lines(path / "lines", create=True)
        for queue in QUEUES:
            GrowingQueue.create(
                queue, directory=path, exist_ok=True, participants=PARTICIPANTS, producers=0, slot_bytes=256
            ).close()
    return lock


@contextlib.contextmanager
def removed_on_failure(path: Path, lock: FileLock, *, if_empty: bool) -> Iterator[None]:
    """Leaves nothing behind if the start of a pool fails, or is interrupted."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(Exception):
            remove(path, lock, if_empty=if_empty)
        lock.close()
        raise


def make_private(directory: Path) -> tuple[Address, FileLock]:
    """Makes a directory for a pool with a queue of its own, which lives in it, too."""
    remove_unused(directory)
    path = directory / f"{PREFIX}own-{os.getpid()}-{secrets.token_hex(4)}"
    lock = prepare(path, "")
    with (
        removed_on_failure(path, lock, if_empty=False),
        GrowingQueue.create("jobs", directory=path, participants=PARTICIPANTS, producers=0, slot_bytes=64) as jobs,
    ):
        assert jobs.segment_id is not None
        return Address(path, "jobs", str(path), jobs.segment_id, ItemType.of(object), True), lock


def make_shared(queue: Any) -> tuple[Address, FileLock]:
    """Makes the directory of the pools on a user's queue, or joins it."""
    remove_unused(queue.directory)
    path = queue.directory / f"{PREFIX}{queue.segment_id.hex()}"
    lock = prepare(path, queue.name)
    return Address(path, queue.name, str(queue.directory), queue.segment_id, ItemType.of(queue.item), False), lock


def remove(path: Path, lock: FileLock, *, if_empty: bool) -> None:
    """Removes the directory if no other pool uses it; with ``if_empty``, only if no job waits in it."""
    if not lock.try_exclusive() or not lock.is_at_path():
        return
    if if_empty:
        for name in QUEUES:
            with contextlib.suppress(QueueNotFound), GrowingQueue.open(name, directory=path) as queue:
                if queue.qsize() or queue.stats().leased:
                    return
    unused = path.with_name(f"{PREFIX}unused-{secrets.token_hex(8)}")  # in one step: a pool that starts makes it anew
    path.rename(unused)
    shutil.rmtree(unused, ignore_errors=True)


def remove_unused(directory: Path) -> None:
    """Removes the directories of killed pools whose queue is gone, too."""
    for path in directory.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError, QueueductError):
            if not (path / "lock").exists() or has_queue(path):
                continue
            lock = FileLock(path / "lock")
            remove(path, lock, if_empty=False)
            lock.close()


def has_queue(path: Path) -> bool:
    """Returns true if the queue that the directory belongs to is still there."""
    name = (path / "name").read_text()
    queue_path = path.parent / name
    if not name or not queue_path.exists():
        return False
    with open_regular(queue_path) as fd:
        return validate(queue_path, fd)[2].hex() == path.name.removeprefix(PREFIX)


def private_directory(directory: str | os.PathLike[str] | None) -> Path:
    return directory_of(directory, make=True)
