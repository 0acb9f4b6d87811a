"""Files that another program made in a format that queueduct has published. queueduct adds its own part after it."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from queueduct.errors import CorruptSegment
from queueduct.items.types import ItemType
from queueduct.native import _layout
from queueduct.segments import segment
from queueduct.segments.geometry import Geometry, check_between
from queueduct.segments.names import Directory, check_name, directory_of, no_fork

__all__ = ["adopt"]

Made = TypeVar("Made")

ADOPT_LIMIT_SECONDS = 30.0


def adopt(
    name: str,
    shape: type[Geometry],
    item: ItemType,
    participants: int,
    attach: Callable[[segment.Segment], Made],
    *,
    directory: Directory = None,
) -> Made:
    """Opens a file that another program made in this kind's published format, and adds queueduct's own part.

    If that fails, the file stays as it was. ``attach`` makes a queue of a segment, and closes the segment if it fails.
    """
    check_between("participants", participants, 1, _layout.PARTICIPANTS_LIMIT)
    path = directory_of(directory) / check_name(name)
    end = time.monotonic() + ADOPT_LIMIT_SECONDS
    while True:
        # a forked child would share the lock, and keep it after our death
        with no_fork, segment.open_regular(path) as fd:
            if try_to_lock(fd):
                try:
                    geometry = published_geometry(path, fd, shape, participants)
                    geometry.check_item(item)
                    if not os.pread(fd, len(_layout.MAGIC), geometry.header_offset).strip(b"\0"):
                        return add_own_part(path, fd, geometry, item, attach)
                    break
                finally:
                    fcntl.flock(fd, fcntl.LOCK_UN)  # a mapping keeps the open file, and with it the lock
        if time.monotonic() > end:
            raise TimeoutError(
                f"another process has been adopting {path} for more than {ADOPT_LIMIT_SECONDS} s; "
                "end that process, and try again"
            )
        time.sleep(0.01)
    return attach(segment.open_segment(name, directory=path.parent, kind=shape.kind))


def try_to_lock(fd: int) -> bool:
    """Takes the lock under which one process adopts at a time. Returns false if another process has it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def published_geometry(path: Path, fd: int, shape: type[Geometry], participants: int) -> Geometry:
    """Returns the sizes of the other program's file."""
    try:
        return shape.published(os.pread(fd, _layout.HEADER_BYTES, 0), participants)
    except ValueError as error:
        raise CorruptSegment(f"{path}: {error}") from None


def add_own_part(
    path: Path, fd: int, geometry: Geometry, item: ItemType, attach: Callable[[segment.Segment], Made]
) -> Made:
    """Adds queueduct's part, its magic last: after a kill before that the file can be adopted again."""
    file_bytes, total_bytes = os.fstat(fd).st_size, geometry.layout(item)["total_bytes"]
    least = geometry.published_bytes
    if not least <= file_bytes <= geometry.header_offset and file_bytes != total_bytes:
        raise CorruptSegment(f"{path}: the file has {file_bytes} bytes, and its messages end at {least}")
    made: Any = None
    try:
        os.posix_fallocate(fd, 0, geometry.needed_bytes(item))
        os.truncate(fd, total_bytes)
        segment_id = os.urandom(16)
        head = segment.header_of(geometry, item, segment_id)
        os.pwrite(fd, head[len(_layout.MAGIC) :], geometry.header_offset + len(_layout.MAGIC))
        made = attach(segment.Segment(path, geometry, item, segment_id, fd))
        os.pwrite(fd, _layout.MAGIC, geometry.header_offset)
    except BaseException:
        if made is not None:
            made.close()
        if file_bytes != total_bytes and not os.pread(fd, len(_layout.MAGIC), geometry.header_offset).strip(b"\0"):
            os.truncate(fd, file_bytes)
        raise
    return made  # type: ignore[no-any-return]  # no cast(): an interrupt could come in a call
