"""The sizes of an overwriting queue."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import ClassVar

from queueduct.items.types import ItemType
from queueduct.native import _layout
from queueduct.segments.geometry import Geometry, check_between, check_product

__all__ = ["OverwritingGeometry"]

WORD_BYTES = 8


@dataclass(frozen=True)
class OverwritingGeometry(Geometry):
    """A ring of messages in the published format, and queueduct's own part after it."""

    kind = "overwriting"
    number = 3
    header_names: ClassVar[dict[str, str]] = {"message_bytes": "slot_bytes"}
    fields = _layout.FIELDS
    header_bytes = _layout.HEADER_BYTES
    magic = _layout.PUBLISHED_MAGIC

    capacity: int
    """The number of messages."""
    message_bytes: int

    @classmethod
    def of(cls, item: ItemType, *, capacity: int, message_bytes: int | None, participants: int) -> OverwritingGeometry:
        """Returns the sizes that a user asks for. A record is filled up to whole words."""
        if item.dtype is not None and message_bytes is not None:
            raise ValueError(
                f"message_bytes of records follows from the dtype: message_bytes={message_bytes}, "
                f"itemsize={item.dtype.itemsize}; leave it out"
            )
        size = item.slot_bytes(message_bytes)
        return cls(participants, 0, capacity, whole_words(size) if item.dtype is not None else size)

    def check(self) -> None:
        super().check()
        check_between("producers", self.producers, 0, 0)
        check_between("capacity", self.capacity, 1, _layout.MESSAGES_LIMIT)
        check_between("message_bytes", self.message_bytes, WORD_BYTES, _layout.MESSAGE_WORDS_LIMIT * WORD_BYTES)
        if self.message_bytes % WORD_BYTES:
            raise ValueError(
                f"message_bytes must be a multiple of {WORD_BYTES}: message_bytes={self.message_bytes}; "
                f"try {whole_words(self.message_bytes)}"
            )
        check_product("capacity * (8 + message_bytes)", self.capacity, WORD_BYTES + self.message_bytes)

    def check_item(self, item: ItemType) -> None:
        if item.dtype is not None and whole_words(item.dtype.itemsize) != self.message_bytes:
            raise ValueError(
                f"slot_bytes must be the dtype's {item.dtype.itemsize} in whole words: slot_bytes={self.message_bytes}"
            )

    @property
    def header_offset(self) -> int:
        return _layout.overwriting_own_offset(self.capacity, self.message_bytes // WORD_BYTES)

    @classmethod
    def find_header(cls, start: bytes) -> int:
        return cls.published(start, 1).header_offset

    def check_start(self, start: bytes) -> None:
        published = self.published(start, 1)
        if (published.capacity, published.message_bytes) != (self.capacity, self.message_bytes):
            raise ValueError(
                f"QUEUE_MAX_LEN and MSG_SIZE must agree with capacity={self.capacity} and "
                f"slot_bytes={self.message_bytes}: QUEUE_MAX_LEN={published.capacity}, "
                f"MSG_SIZE={published.message_bytes // WORD_BYTES}"
            )

    @classmethod
    def published(cls, start: bytes, participants: int) -> OverwritingGeometry:
        if not start.startswith(cls.magic):
            raise ValueError(f"magic must be {cls.magic!r} for a queue of kind {cls.kind!r}: magic={start[:8]!r}")
        capacity, words = (int.from_bytes(start[at : at + 4], "little") for at in (8, 12))
        published = cls(participants, 0, capacity, words * WORD_BYTES)
        published.check()
        return published

    @property
    def published_bytes(self) -> int:
        return _layout.PUBLISHED_BYTES + self.capacity * (WORD_BYTES + self.message_bytes)

    def layout(self, item: ItemType) -> dict[str, int]:
        return _layout.overwriting_layout(
            self.capacity, self.message_bytes // WORD_BYTES, self.participants, len(item.text)
        )

    def needed_bytes(self, item: ItemType) -> int:
        """Leaves out the memory for leases, which the first lease allocates."""
        return _layout.overwriting_leased_offset(
            self.capacity, self.message_bytes // WORD_BYTES, self.participants, len(item.text)
        )

    def initialise(self, fd: int, item: ItemType) -> None:
        """Writes the published header, its magic last."""
        words = self.message_bytes // WORD_BYTES
        os.pwrite(fd, self.capacity.to_bytes(4, "little") + words.to_bytes(4, "little"), 8)
        os.pwrite(fd, self.magic, 0)


def whole_words(size: int) -> int:
    return -(-size // WORD_BYTES) * WORD_BYTES
