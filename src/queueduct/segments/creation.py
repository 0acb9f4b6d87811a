"""Creation of segments: a queue gets its name last, when nothing can fail any more.

All steps that can fail come first, on a file without a name: its memory, its header, its mapping, the queue on it. An
error, an interrupt or a kill before the last step leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from queueduct.errors import QueueExists, QueueNotFound
from queueduct.items.types import ItemType
from queueduct.native import _layout
from queueduct.segments import segment
from queueduct.segments.geometry import Geometry
from queueduct.segments.kinds import KINDS
from queueduct.segments.names import Directory, check_name, directory_of, renaming

__all__ = ["create"]

NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.ENOMEM)
TRIES = 20  # while other processes unlink the queue that we find

Made = TypeVar("Made")
Name = Callable[[Path], None]


def create(
    name: str,
    geometry: Geometry,
    item: ItemType,
    attach: Callable[[segment.Segment], Made],
    *,
    directory: Directory = None,
    exist_ok: bool = False,
    replace: bool = False,
) -> Made:
    """Creates a queue; with ``exist_ok`` opens an existing one, if it has the same shape; with ``replace`` replaces it.

    ``attach`` makes a queue of a segment, and closes the segment if it fails. It returns an object with a ``close()``.
    """
    if exist_ok and replace:
        raise ValueError("exist_ok and replace exclude each other: one opens an existing queue, the other replaces it")
    if replace:
        return create_new(name, geometry, item, attach, directory, replace=True)
    for tries_left in reversed(range(TRIES)):
        try:
            return create_new(name, geometry, item, attach, directory)
        except QueueExists:
            if not exist_ok:
                raise
        try:
            found = segment.open_segment(name, directory=directory, kind=geometry.kind)
        except QueueNotFound:  # another process has unlinked it meanwhile
            if tries_left == 0:
                raise
            continue
        break
    if found.geometry == geometry and found.item == item:
        return in_use(attach(found), name)
    found.close()
    raise QueueExists(
        f"a queue named {name!r} exists and is of another shape: {found.geometry}, item={found.item.spec!r}; "
        f"asked for {geometry}, item={item.spec!r}; open it, or give the new one the name with replace=True"
    )


def in_use(queue: Made, name: str) -> Made:
    """Returns the queue, unless it is shut down: its first put would fail."""
    if queue.stats().is_shut_down:  # type: ignore[attr-defined]  # every kind has them
        queue.close()  # type: ignore[attr-defined]
        raise QueueExists(
            f"a queue named {name!r} exists and is shut down: no more can be put; open() it to get what is left, or "
            "give a new one the name with replace=True instead of exist_ok"
        )
    return queue


def create_new(
    name: str,
    geometry: Geometry,
    item: ItemType,
    attach: Callable[[segment.Segment], Made],
    directory: Directory,
    *,
    replace: bool = False,
) -> Made:
    """Creates a queue, which is complete before it has a name."""
    check_name(name)
    geometry.check()
    folder = directory_of(directory, make=True)
    needed_bytes = geometry.needed_bytes(item)
    made: Any = None
    try:
        with contextlib.ExitStack() as files:
            with no_room_named(folder, needed_bytes):
                fd, link, rename = files.enter_context(unnamed_file(folder))
                os.posix_fallocate(fd, 0, needed_bytes)
                os.truncate(fd, geometry.layout(item)["total_bytes"])
                segment_id = os.urandom(16)
                os.pwrite(fd, segment.header_of(geometry, item, segment_id), geometry.header_offset)
                geometry.initialise(fd, item)
            status = os.fstat(fd)
            made = attach(segment.Segment(folder / name, geometry, item, segment_id, fd))
            with no_room_named(folder, needed_bytes):
                if replace:
                    replace_name(folder / name, rename)
                    return made  # type: ignore[no-any-return]
                try:
                    link(folder / name)
                except FileExistsError:
                    raise QueueExists(
                        f"a queue named {name!r} exists in {folder}; open it, or unlink it first, or give the new one "
                        "the name with replace=True"
                    ) from None
        return made  # type: ignore[no-any-return]  # no cast(): an interrupt could come in a call
    except BaseException:
        # A signal may interrupt this even after the last step. The file lives until `made` is closed, so no other
        # process's file can have its inode. A queue that has replaced another one keeps the name: both would be gone.
        if made is not None:
            if not replace:
                withdraw(folder / name, status)
            made.close()
        raise


def withdraw(path: Path, status: os.stat_result) -> None:
    """Removes the name if it still belongs to this file."""
    with contextlib.suppress(OSError):
        found = os.stat(path, follow_symlinks=False)
        if (found.st_dev, found.st_ino) == (status.st_dev, status.st_ino):
            os.unlink(path)


def replace_name(path: Path, rename: Callable[[Path], None]) -> None:
    """Gives the name to the new file, in one step: who opens the name gets the old queue or the new one, complete."""
    with renaming(path.parent):
        check_replaceable(path)
        rename(path)
        sweep(path.parent)


def check_replaceable(path: Path) -> None:
    """Raises unless the name is free or a queue's, perhaps a damaged one's or one of another version."""
    try:
        with segment.Descriptor(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK) as fd:
            start = os.pread(fd, _layout.HEADER_BYTES, 0)
    except FileNotFoundError:
        return
    except OSError:
        start = b""
    magics = [kind.geometry.magic for kind in KINDS.values() if kind.geometry.magic]
    if not start.startswith((_layout.MAGIC, *magics)):
        raise QueueExists(f"{path} is not a queue, and is not replaced: remove it yourself, or choose another name")


def sweep(folder: Path) -> None:
    """Removes what creators left who were killed just before they replaced a queue. Called under the folder's lock."""
    for left in folder.glob(segment.REPLACING_NAME.format("*")):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(left)


@contextlib.contextmanager
def no_room_named(folder: Path, needed_bytes: int) -> Iterator[None]:
    """Makes the errors of a full file system say what is missing, and what to do."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        free = os.statvfs(folder)
        raise OSError(
            error.errno,
            f"no room for a segment of {needed_bytes} bytes in {folder}: {free.f_bavail * free.f_frsize} bytes and "
            f"{free.f_favail} files are free; use a smaller capacity, or another directory (directory=, QUEUEDUCT_DIR)",
        ) from error


@contextlib.contextmanager
def unnamed_file(folder: Path) -> Iterator[tuple[int, Name, Name]]:
    """Yields a file without a name, and the functions that give it a free name, or any name.

    A kill in between leaves nothing behind, but for a file with a hidden name that the next replacement removes.
    """
    try:
        opened = segment.Descriptor(folder, os.O_TMPFILE | os.O_RDWR)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL):
            raise
        with temporary_file(folder) as made:
            yield made
        return
    # A directory descriptor makes Python call linkat(AT_SYMLINK_FOLLOW), which resolves /proc's link.
    with opened as fd, segment.Descriptor(folder, os.O_RDONLY | os.O_DIRECTORY) as folder_fd:

        def link(path: Path) -> None:
            os.link(f"/proc/self/fd/{fd}", path, src_dir_fd=folder_fd)

        def rename(path: Path) -> None:
            hidden = folder / segment.REPLACING_NAME.format(os.urandom(8).hex())
            try:
                link(hidden)
                os.rename(hidden, path)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(hidden)
                raise

        yield fd, link, rename


@contextlib.contextmanager
def temporary_file(folder: Path) -> Iterator[tuple[int, Name, Name]]:
    """The same for file systems without unnamed files: the file has a hidden name first."""
    temporary = folder / segment.HIDDEN_NAME.format(f"{os.getpid()}-{os.urandom(8).hex()}")
    with HiddenFile(temporary) as fd:
        yield fd, lambda path: os.link(temporary, path), lambda path: os.rename(temporary, path)


class HiddenFile(segment.Descriptor):
    """A new file whose name is removed when it is closed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW)

    def close(self) -> None:
        with contextlib.suppress(FileNotFoundError, KeyError):
            os.unlink(self.__dict__.pop("path"))
        super().close()

    __del__ = close
