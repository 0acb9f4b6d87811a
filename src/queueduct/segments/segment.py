"""Segments: their headers, and how they are opened, validated and mapped. Only this module maps files.

A segment is a file. Any directory works: on tmpfs a queue is memory, on a disk it outlives a reboot. A segment gets its
name only when it is complete (creation.py), and every field of its header is checked before a byte of it is used.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import stat
import time
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

from queueduct.errors import CorruptSegment, QueueNotFound, QueueReplaced
from queueduct.items.types import ItemType
from queueduct.native import _layout
from queueduct.native._mapping import Mapping
from queueduct.segments.boot import boot_id
from queueduct.segments.geometry import Geometry
from queueduct.segments.kinds import KINDS, by_number
from queueduct.segments.names import Directory, check_name, directory_of

__all__ = ["Segment", "creation_of", "open_segment", "private_memory"]

POPULATE_LIMIT_BYTES = 256 << 20
HIDDEN_NAME = ".new-{}"  # of a file that has no other name yet
REPLACING_NAME = ".replace-{}"  # of a complete segment, just before it replaces another one


class Descriptor:
    """A file descriptor that is closed with its last reference, even if an interrupt comes between two lines."""

    def __init__(self, path: Path, flags: int, mode: int = 0o600) -> None:
        self.number = os.open(path, flags | os.O_CLOEXEC, mode)

    def close(self) -> None:
        if "number" in self.__dict__:
            os.close(self.__dict__.pop("number"))

    def __enter__(self) -> int:
        return self.number

    def __exit__(self, *error: object) -> None:
        self.close()

    __del__ = close


class Segment:
    """An open, validated, mapped segment, in a file that need not have its name yet.

    The lock descriptor says which file to lock: the participant table opens that file again, where no fork can come
    in between, and closes this one. So it has no locks itself, and a child that inherits it keeps no participant alive.
    """

    _lock_fd = -1
    _memory: Mapping | None = None

    def __init__(
        self, path: Path, geometry: Geometry, item: ItemType, segment_id: bytes, fd: int, *, read_only: bool = False
    ) -> None:
        self.path = path
        self.name: str | None = path.name  # None: no file name leads to it
        self.geometry = geometry
        self.item = item
        self.segment_id = segment_id
        self.offsets = geometry.layout(item)
        self.total_bytes = self.offsets["total_bytes"]
        self.is_read_only = read_only
        self.created, self.creator = creation_of(geometry, fd)
        status = os.fstat(fd)
        self.inode = (status.st_dev, status.st_ino)
        try:
            self._lock_fd = opened_anew(fd, os.O_RDONLY if read_only else os.O_RDWR)
            self._memory = self._map(fd)
        except BaseException:
            self.close()
            raise

    def _map(self, fd: int) -> Mapping:
        # populated: no page fault in a put
        is_small = self.geometry.needed_bytes(self.item) == self.total_bytes <= POPULATE_LIMIT_BYTES
        try:
            return Mapping(
                fd, self.total_bytes, populate=is_small and not self.is_read_only, read_only=self.is_read_only
            )
        except OSError as error:
            if error.errno != errno.ENOMEM:
                raise
            raise OSError(
                error.errno,
                f"no address space for the {self.total_bytes} bytes of {self.name!r}, most of which take no memory "
                "before they are used: raise the limit (ulimit -v), or create the queue with "
                f"{self.geometry.smaller}",
            ) from error

    def has_name(self) -> bool:
        """Returns true if its path still leads to this segment. Raises FileNotFoundError if it leads nowhere.

        A file with another id is another queue's, though it may have got the same inode when ours was gone.
        """
        status = os.stat(self.path, follow_symlinks=False)
        if (status.st_dev, status.st_ino) != self.inode or not stat.S_ISREG(status.st_mode):
            return False
        offset, size = _layout.FIELDS["segment_id"]
        with Descriptor(self.path, os.O_RDONLY | os.O_NOFOLLOW) as fd:
            found = os.pread(fd, size, self.geometry.header_offset + offset)
        return found == self.segment_id or len(found) < size  # it may have been truncated since

    def take_lock_fd(self) -> int:
        """Hands the lock's descriptor to the caller, which closes it."""
        return int(self.__dict__.pop("_lock_fd", -1))  # one step: an interrupt comes before or after it

    def take_memory(self) -> Mapping:
        """Hands the mapping to the caller. It is unmapped with its last reference."""
        taken = self._memory
        if taken is None:
            raise ValueError(f"the memory of {self.name!r} was taken already")
        self._memory = None
        return taken

    def close(self) -> None:
        """Closes the descriptor and the mapping, unless they were taken. The file stays."""
        if "_lock_fd" in self.__dict__:
            os.close(self.__dict__.pop("_lock_fd"))
        if self._memory is not None:
            self._memory.close()

    def __del__(self) -> None:
        """Closes the descriptor if an interrupt between two lines has left it open."""
        if "_lock_fd" in self.__dict__:
            os.close(self.__dict__.pop("_lock_fd"))


def creation_of(geometry: Geometry, fd: int) -> tuple[datetime, int]:
    """Returns when a segment was created, and by which process."""
    head = os.pread(fd, _layout.HEADER_BYTES, geometry.header_offset)
    (at, length), (pid_at, pid_length) = _layout.FIELDS["created_ns"], _layout.FIELDS["creator_pid"]
    nanoseconds = int.from_bytes(head[at : at + length], "little")
    created = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=nanoseconds // 1000)
    return created, int.from_bytes(head[pid_at : pid_at + pid_length], "little")


def opened_anew(fd: int, flags: int = os.O_RDWR) -> int:
    """Opens the same file, which need not have a name, as a new open file description."""
    try:
        return os.open(f"/proc/self/fd/{fd}", flags | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise OSError(
            error.errno,
            "there is no /proc of this process here, through which a queue's file is opened: mount one "
            "(mount -t proc proc /proc); with subset=pid it is enough",
        ) from error


def header_of(geometry: Geometry, item: ItemType, segment_id: bytes) -> bytearray:
    """Returns the header and the item text of a new segment, up to the control block."""
    offsets = geometry.layout(item)
    head = bytearray(offsets["control_offset"] - geometry.header_offset)
    values: dict[str, int | bytes] = {
        "magic": _layout.MAGIC,
        "layout_version": _layout.LAYOUT_VERSION,
        "byte_order": _layout.BYTE_ORDER,
        "kind": geometry.number,
        "item_kind": item.kind,
        "item_text_bytes": len(item.text),
        "segment_id": segment_id,
        "boot_id": boot_id(),
        "created_ns": time.time_ns(),
        "creator_pid": os.getpid(),
        **geometry.values(),
        **offsets,
    }
    for field, value in values.items():
        put_field(head, geometry.fields[field], value)
    start = geometry.header_bytes
    head[start : start + len(item.text)] = item.text
    put_field(head, geometry.fields["checksum"], checksum(head, start + len(item.text)))
    return head


def put_field(head: bytearray, where: tuple[int, int], value: int | bytes) -> None:
    offset, size = where
    head[offset : offset + size] = value if isinstance(value, bytes) else value.to_bytes(size, "little")


def checksum(head: bytes | bytearray, end: int) -> int:
    """Returns the crc32 of header and item text, with zeros for the checksum's own field."""
    offset, size = _layout.FIELDS["checksum"]
    return zlib.crc32(head[offset + size : end], zlib.crc32(bytes(size), zlib.crc32(head[:offset])))


def open_segment(
    name: str,
    *,
    directory: Directory = None,
    kind: str | None = None,
    segment_id: bytes | None = None,
    read_only: bool = False,
) -> Segment:
    """Opens a segment by name and checks every field. A bad file is left as it was."""
    path = directory_of(directory) / check_name(name)
    with open_regular(path, read_only=read_only) as fd:
        geometry, item, found_id = validate(path, fd)
        if kind is not None and geometry.kind != kind:
            raise TypeError(
                f"{name!r} is a queue of kind {geometry.kind!r}, not {kind!r}: use queueduct.open({name!r})"
            )
        if segment_id is not None and found_id != segment_id:
            raise QueueReplaced(f"the queue {name!r} in {path.parent} is not the one that was meant: it was recreated")
        return Segment(path, geometry, item, found_id, fd, read_only=read_only)


def open_regular(path: Path, *, read_only: bool = False) -> Descriptor:
    """Opens a file that may be a segment: a regular file of this user, with one link."""
    access = os.O_RDONLY if read_only else os.O_RDWR
    try:
        # O_NONBLOCK: an open of a FIFO must not wait; it changes nothing for a regular file
        opened = Descriptor(path, access | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise QueueNotFound(f"there is no queue named {path.name!r} in {path.parent}") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise CorruptSegment(f"{path} is a symbolic link, not a segment") from error
        if error.errno == errno.EISDIR:
            raise CorruptSegment(f"{path} is a directory, not a segment") from error
        if error.errno == errno.ENXIO:
            raise CorruptSegment(f"{path} is a socket or a device, not a segment") from error
        raise
    try:
        status = os.fstat(opened.number)
        if not stat.S_ISREG(status.st_mode):
            raise CorruptSegment(f"{path} is not a regular file: mode={status.st_mode:o}")
        if status.st_uid != os.geteuid():
            raise CorruptSegment(f"{path} belongs to another user: owner={status.st_uid}, we are {os.geteuid()}")
        if not has_one_name(path, opened.number, removes=not read_only):
            raise CorruptSegment(f"{path} has other hard links: links={os.fstat(opened.number).st_nlink}")
    except BaseException:
        opened.close()
        raise
    return opened


def has_one_name(path: Path, fd: int, *, removes: bool = True) -> bool:
    """Returns true if the file has no name but this one, or the hidden one of its creation, which is removed.

    Where files cannot be made without a name, a creator links the name and then unlinks the hidden one. It may be
    stopped or killed in between, so the opener does that step for it. A watcher ``removes`` nothing.
    """
    status = os.fstat(fd)
    hidden_links = 0
    for hidden in path.parent.glob(HIDDEN_NAME.format("*")) if status.st_nlink > 1 else []:
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.stat(hidden, follow_symlinks=False), status):
                if removes:
                    os.unlink(hidden)
                else:
                    hidden_links += 1
    return os.fstat(fd).st_nlink - hidden_links <= 1


def validate(path: Path, fd: int) -> tuple[Geometry, ItemType, bytes]:
    """Copies the header into private memory once, and checks each field of the copy."""
    file_bytes = os.fstat(fd).st_size
    head = os.pread(fd, _layout.HEADER_BYTES, 0)
    start, header_offset = head, find_header(path, head)
    if header_offset == 0 and len(head) < _layout.HEADER_BYTES:
        raise CorruptSegment(f"{path} is too short for a header: {len(head)} bytes, not {_layout.HEADER_BYTES}")
    if header_offset != 0:
        head = os.pread(fd, _layout.HEADER_BYTES, header_offset)

    fields = _layout.FIELDS

    def field(name: str) -> int:
        offset, size = fields[name]
        return int.from_bytes(head[offset : offset + size], "little")

    def expect(name: str, expected: int) -> None:
        if field(name) != expected:
            raise CorruptSegment(f"{path}: {name} must be {expected}: {name}={field(name)}")

    if len(head) < _layout.HEADER_BYTES or head[:8] != _layout.MAGIC:
        raise CorruptSegment(f"{path}: magic must be {_layout.MAGIC!r}: magic={head[:8]!r}{at_offset(header_offset)}")
    expect("byte_order", _layout.BYTE_ORDER)
    expect("layout_version", _layout.LAYOUT_VERSION)
    kind = by_number(field("kind"))
    if kind is None:
        numbers = sorted(kind.geometry.number for kind in KINDS.values())
        raise CorruptSegment(f"{path}: kind must be one of {numbers}: kind={field('kind')}")
    shape = kind.geometry
    fields = shape.fields
    head = os.pread(fd, shape.header_bytes, header_offset)
    if len(head) < shape.header_bytes:
        raise CorruptSegment(f"{path} is too short for a header: {len(head)} bytes, not {shape.header_bytes}")
    geometry = shape.from_header(field)
    try:
        geometry.check()
        geometry.check_start(start)
    except ValueError as error:
        raise CorruptSegment(f"{path}: {error}") from None
    text_bytes = field("item_text_bytes")
    if not 1 <= text_bytes <= _layout.ITEM_TEXT_LIMIT:
        raise CorruptSegment(
            f"{path}: item_text_bytes must be between 1 and {_layout.ITEM_TEXT_LIMIT}: item_text_bytes={text_bytes}"
        )
    text = os.pread(fd, text_bytes, header_offset + shape.header_bytes)
    item = ItemType.from_header(field("item_kind"), text)
    try:
        geometry.check_item(item)
    except ValueError as error:
        raise CorruptSegment(f"{path}: {error}") from None
    for name, expected in (geometry.layout(item) | geometry.values()).items():
        expect(name, expected)
    if file_bytes != field("total_bytes"):
        raise CorruptSegment(f"{path}: the file has {file_bytes} bytes, total_bytes={field('total_bytes')}")
    for name in ("reserved", "unused") if "unused" in fields else ("reserved",):
        offset, size = fields[name]
        if any(head[offset : offset + size]):
            raise CorruptSegment(f"{path}: {name} must be zero: {name}={head[offset : offset + size].hex()}")
    expect("checksum", checksum(head + text, len(head) + len(text)))
    offset, size = _layout.FIELDS["segment_id"]
    return geometry, item, head[offset : offset + size]


def find_header(path: Path, start: bytes) -> int:
    """Returns where the segment header is in a file that begins with these bytes."""
    for kind in KINDS.values():
        if start.startswith(kind.geometry.magic):
            try:
                return kind.geometry.find_header(start)
            except ValueError as error:
                raise CorruptSegment(f"{path}: {error}") from None
    return 0


def at_offset(header_offset: int) -> str:
    if header_offset == 0:
        return ""
    return f" at offset {header_offset}, after the last message; a file of another program's must be adopted first"


def private_memory(total_bytes: int) -> mmap.mmap:
    """Returns zeroed memory of this process alone, which the kernel provides page by page at the first use."""
    no_reserve = 0x4000  # MAP_NORESERVE: address space, not memory
    return mmap.mmap(-1, total_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve)


def is_on_disk(path: Path) -> bool:
    """Returns true if files there outlive a crash of the machine. Those of a tmpfs do not."""
    device = os.stat(path).st_dev
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, rest = line.partition(" - ")
        if fields.split()[2] == f"{os.major(device)}:{os.minor(device)}":
            return rest.split()[0] not in ("tmpfs", "ramfs", "devtmpfs")
    return True
