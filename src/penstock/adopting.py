"""Files that another program made in a format that penstock published: what is our own is added behind it."""

from __future__ import annotations

import fcntl
import os
import secrets
from pathlib import Path

from penstock import _layout, segment
from penstock.errors import CorruptSegment
from penstock.geometries import GEOMETRIES
from penstock.geometry import Geometry, check_between
from penstock.items import ItemType

__all__ = ["adopt"]


def adopt(name: str, kind: str, item: ItemType, participants: int) -> segment.Segment:
    """Open a file that another program made in the format that this kind published, and add what is penstock's own."""
    check_between("participants", participants, 1, _layout.PARTICIPANTS_LIMIT)
    path = segment.directory() / segment.check_name(name)
    fd = segment.open_regular(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)  # one at a time, and it goes with its process
        try:
            geometry = GEOMETRIES[kind].published(os.pread(fd, _layout.HEADER_BYTES, 0), participants)
        except ValueError as error:
            raise CorruptSegment(f"{path}: {error}") from None
        geometry.check_item(item)
        if not os.pread(fd, len(_layout.MAGIC), geometry.header_offset).strip(b"\0"):
            add_own_part(path, fd, geometry, item)
    finally:
        os.close(fd)
    return segment.open_segment(name, folder=path.parent, kind=kind)


def add_own_part(path: Path, fd: int, geometry: Geometry, item: ItemType) -> None:
    """Its magic last: until then it is not there, and a kill on the way leaves what can be adopted again."""
    file_bytes, total_bytes = os.fstat(fd).st_size, geometry.layout(item)["total_bytes"]
    least = geometry.published_bytes
    if not least <= file_bytes <= geometry.header_offset and file_bytes != total_bytes:
        raise CorruptSegment(f"{path}: the file has {file_bytes} bytes, and its messages end at {least}")
    os.posix_fallocate(fd, 0, geometry.needed_bytes(item))
    os.truncate(fd, total_bytes)
    head = segment.header_of(geometry, item, secrets.token_bytes(16))
    os.pwrite(fd, head[len(_layout.MAGIC) :], geometry.header_offset + len(_layout.MAGIC))
    os.pwrite(fd, _layout.MAGIC, geometry.header_offset)
