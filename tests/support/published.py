"""A second implementation of the published format, on struct and mmap alone: what a program in any language can do.

Python has no compare-and-swap, so its locks hold only where nobody else locks at the same time; the tests take turns.
Its lock is the word 1, as any stranger's may be.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from pathlib import Path

MAGIC = bytes.fromhex("576f726b20697320")
HEADER = struct.Struct("<8sIIQII")  # magic, QUEUE_MAX_LEN, MSG_SIZE, HEADER_LOCK, START_IDX, QUEUE_LEN
LOCK = struct.Struct("<Q")
PLACES = struct.Struct("<II")
STRANGER = 1


class Published:
    """A queue in the published format."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self.memory = mmap.mmap(file.fileno(), os.fstat(file.fileno()).st_size)
        magic, self.max_len, self.msg_size, *_ = HEADER.unpack_from(self.memory)
        assert magic == MAGIC

    @classmethod
    def create(cls, path: Path, max_len: int, msg_size: int) -> Published:
        """A file with nothing but the format in it; its magic comes last."""
        with path.open("xb") as file:
            path.chmod(0o600)
            file.write(bytes(8) + struct.pack("<II", max_len, msg_size) + bytes(16 + max_len * (8 + 8 * msg_size)))
            file.seek(0)
            file.write(MAGIC)
        return cls(path)

    def close(self) -> None:
        self.memory.close()

    @property
    def places(self) -> tuple[int, int]:
        """START_IDX and QUEUE_LEN."""
        start, length = PLACES.unpack_from(self.memory, 24)
        return start, length

    def message_at(self, index: int) -> int:
        return HEADER.size + index * (8 + 8 * self.msg_size)

    def lock(self, offset: int, seconds: float = 30) -> None:
        until = time.monotonic() + seconds
        while LOCK.unpack_from(self.memory, offset)[0] != 0:
            if time.monotonic() > until:
                raise TimeoutError
        LOCK.pack_into(self.memory, offset, STRANGER)

    def unlock(self, offset: int) -> None:
        LOCK.pack_into(self.memory, offset, 0)

    def put(self, data: bytes) -> None:
        assert len(data) == 8 * self.msg_size
        self.lock(16)
        start, length = self.places
        index = (start + length) % self.max_len
        at = self.message_at(index)
        self.lock(at)
        if length == self.max_len:
            PLACES.pack_into(self.memory, 24, (start + 1) % self.max_len, length)
        else:
            PLACES.pack_into(self.memory, 24, start, length + 1)
        self.unlock(16)
        self.memory[at + 8 : at + 8 + len(data)] = data
        self.unlock(at)

    def try_get(self) -> bytes | None:
        if self.places[1] == 0:
            return None
        self.lock(16)
        start, length = self.places
        at = self.message_at(start)
        self.lock(at)
        PLACES.pack_into(self.memory, 24, (start + 1) % self.max_len, length - 1)
        self.unlock(16)
        data = self.memory[at + 8 : at + 8 + 8 * self.msg_size]
        self.unlock(at)
        return data

    def get(self, seconds: float = 30) -> bytes:
        until = time.monotonic() + seconds
        while (data := self.try_get()) is None:
            if time.monotonic() > until:
                raise TimeoutError
        return data
