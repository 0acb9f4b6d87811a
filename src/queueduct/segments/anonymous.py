"""Segments without a name: shared by the processes that inherit them, gone with the last of these.

The file never gets a name, so a kill of all its users leaves nothing. A forked child has the mapping, and opens the
file again through /proc. A spawned one gets a descriptor of its own with the pickled queue.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from queueduct.errors import QueueClosed
from queueduct.items.types import ItemType
from queueduct.segments import creation, segment
from queueduct.segments.geometry import Geometry
from queueduct.segments.names import Directory, directory_of

__all__ = ["create_anonymous", "pass_on", "reopen_passed"]

PLACEHOLDER = ".anonymous"  # in the place of a file name; no file has it
NO_UNNAMED_FILES = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL)

Made = TypeVar("Made")


class PassedFile(segment.Descriptor):
    """A descriptor that a spawned process may inherit. It has no locks; other code may have closed it."""

    def __init__(self, fd: int) -> None:
        super().__init__(Path(f"/proc/self/fd/{fd}"), os.O_RDWR)
        status = os.fstat(self.number)
        self.identity = status.st_dev, status.st_ino

    def is_ours(self, status_of: Callable[[int], os.stat_result] = os.fstat) -> bool:
        """Returns true unless the descriptor was closed. ``status_of`` is there at the interpreter's exit, too."""
        try:
            status = status_of(self.__dict__["number"])
        except (OSError, KeyError):
            return False
        return (status.st_dev, status.st_ino) == self.identity

    def close(self, close_file: Callable[[int], None] = os.close) -> None:
        is_ours = self.is_ours()  # if not, its number is another file's by now
        number = self.__dict__.pop("number", -1)
        if is_ours:
            close_file(number)

    __del__ = close


class AnonymousSegment(segment.Segment):
    """An open segment whose file has no name."""

    def __init__(self, folder: Path, geometry: Geometry, item: ItemType, segment_id: bytes, fd: int) -> None:
        super().__init__(folder / PLACEHOLDER, geometry, item, segment_id, fd)
        self.name = None
        try:
            self.passed = PassedFile(fd)
        except BaseException:
            self.close()
            raise


def create_anonymous(
    geometry: Geometry, item: ItemType, attach: Callable[[segment.Segment], Made], *, directory: Directory = None
) -> Made:
    """Creates a queue without a name, in the directory of named ones or in a given one."""
    geometry.check()
    folder = directory_of(directory, make=True)
    needed_bytes = geometry.needed_bytes(item)
    with contextlib.ExitStack() as files:
        with creation.no_room_named(folder, needed_bytes):
            fd = files.enter_context(file_without_name(folder))
            os.posix_fallocate(fd, 0, needed_bytes)
            os.truncate(fd, geometry.layout(item)["total_bytes"])
            segment_id = os.urandom(16)
            os.pwrite(fd, segment.header_of(geometry, item, segment_id), geometry.header_offset)
            geometry.initialise(fd, item)
        return attach(AnonymousSegment(folder, geometry, item, segment_id, fd))


@contextlib.contextmanager
def file_without_name(folder: Path) -> Iterator[int]:
    """Yields a file in the folder, or in memory where the folder's file system has only files with names."""
    try:
        opened = segment.Descriptor(folder, os.O_TMPFILE | os.O_RDWR)
    except OSError as error:
        if error.errno not in NO_UNNAMED_FILES:
            raise
        opened = MemoryFile()
    with opened as fd:
        yield fd


class MemoryFile(segment.Descriptor):
    """A file in memory that no directory knows."""

    def __init__(self) -> None:
        self.number = os.memfd_create("queueduct", os.MFD_CLOEXEC)


def pass_on(opened: Any, queue: object) -> tuple[Any, str]:
    """Returns what a process that is being spawned gets: a descriptor to inherit, and the directory."""
    from multiprocessing import context, reduction  # here: importing it takes a while

    context.assert_spawning(queue)
    if not opened.passed.is_ours():
        raise QueueClosed(
            "a queue without a name cannot be passed on: this process has closed its file descriptor, as "
            "os.closerange() and daemons do; make the queue afterwards, or give it a name"
        )
    return reduction.DupFd(opened.passed.number), str(opened.path.parent)


def reopen_passed(passed: Any, folder: str, queue_class: type[Any]) -> Any:
    """Opens a queue without a name in the process that was spawned with it."""
    fd = passed.detach()
    try:
        geometry, item, segment_id = segment.validate(Path(folder) / PLACEHOLDER, fd)
        opened = AnonymousSegment(Path(folder), geometry, item, segment_id, fd)
    finally:
        os.close(fd)
    return queue_class._attach(opened, True)
