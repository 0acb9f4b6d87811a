"""The sizes of a queue of any kind. Every offset of its segment is computed from them."""

from __future__ import annotations

import dataclasses
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from queueduct.items.types import ItemType
from queueduct.native import _layout

__all__ = ["Geometry", "check_between", "check_product", "number_of", "power_of_two_from", "write_indices"]


@dataclass(frozen=True)
class Geometry(ABC):
    """The sizes of one queue. Its attributes are fields of the header."""

    kind: ClassVar[str]
    number: ClassVar[int]
    """The kind's number in the header."""
    smaller: ClassVar[str] = "a smaller capacity"
    """For messages: what to ask for to need less address space."""
    header_names: ClassVar[dict[str, str]] = {}
    """Attributes that have another name in the header."""
    fields: ClassVar[dict[str, tuple[int, int]]]
    """Where the header's fields are: name -> (offset, bytes)."""
    header_bytes: ClassVar[int]
    magic: ClassVar[bytes] = _layout.MAGIC
    """The first bytes of a file of this kind."""

    participants: int
    producers: int

    @classmethod
    def of(cls, item: ItemType, *_: Any, **sizes: Any) -> Self:  # *_: a kind may name its own sizes
        """Returns the sizes that a user asks for. Without a given size of a slot it is the item's."""
        return cls(**{**sizes, "slot_bytes": item.slot_bytes(sizes["slot_bytes"])})

    def check(self) -> None:
        """Raises ValueError for sizes that no queue can have. After it no product of them overflows."""
        check_between("participants", self.participants, 1, _layout.PARTICIPANTS_LIMIT)
        check_between("producers", self.producers, 0, _layout.PRODUCERS_LIMIT)

    @property
    def header_offset(self) -> int:
        """Where the segment header is: first, unless the kind has a published part before it."""
        return 0

    @classmethod
    def find_header(cls, start: bytes) -> int:
        """Returns it for a file that begins with these bytes. Raises ValueError if it is no segment of this kind."""
        return 0

    @classmethod
    def published(cls, start: bytes, participants: int) -> Geometry:
        """Returns the sizes of a file that another program made and that begins with these bytes."""
        raise ValueError(f"queues of kind {cls.kind!r} are made by queueduct only")

    @property
    def published_bytes(self) -> int:
        """How much of a file is the published part."""
        return 0

    def check_start(self, start: bytes) -> None:
        """Raises ValueError if the bytes before the segment header contradict it."""
        return

    @abstractmethod
    def layout(self, item: ItemType) -> dict[str, int]:
        """Returns where each part of the segment is, as fields of the header."""

    def values(self) -> dict[str, int]:
        """Returns the sizes, as fields of the header."""
        return {name: getattr(self, attribute) for attribute, name in self.named_in_header()}

    @classmethod
    def from_header(cls, field: Callable[[str], int]) -> Self:
        """Returns the sizes in a header, unchecked."""
        return cls(**{attribute: field(name) for attribute, name in cls.named_in_header()})

    @classmethod
    def named_in_header(cls) -> list[tuple[str, str]]:
        return [(each.name, cls.header_names.get(each.name, each.name)) for each in dataclasses.fields(cls)]

    def check_item(self, item: ItemType) -> None:
        """Raises ValueError if the sizes do not suit the item."""
        size = self.values()["slot_bytes"]
        if item.dtype is not None and item.dtype.itemsize != size:
            raise ValueError(f"slot_bytes must be the dtype's {item.dtype.itemsize}: slot_bytes={size}")

    def needed_bytes(self, item: ItemType) -> int:
        """Returns how much of the segment needs memory from the start: all of it, unless the kind grows."""
        return self.layout(item)["total_bytes"]

    def initialise(self, fd: int, item: ItemType) -> None:
        """Writes the parts of a new segment that are not zero, apart from the header."""
        return


def check_between(label: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise ValueError(f"{label} must be between {least} and {most}: {label}={value}")


def check_product(label: str, count: int, size: int) -> None:
    if count * size > _layout.SEGMENT_BYTES_LIMIT:
        raise ValueError(
            f"{label} must be at most {_layout.SEGMENT_BYTES_LIMIT} bytes: {count} * {size} = {count * size}"
        )


def write_indices(fd: int, offset: int, count: int) -> None:
    """Writes the numbers 0, 1, 2, … as 64-bit words, a piece at a time."""
    step = 1 << 16
    for first in range(0, count, step):
        os.pwrite(fd, np.arange(first, min(first + step, count), dtype="<u8").tobytes(), offset + first * 8)


def power_of_two_from(least: int) -> int:
    return 1 << max(0, least - 1).bit_length()


def number_of(label: str, given: str, numbers: dict[str, int]) -> int:
    if not isinstance(given, str) or given not in numbers:
        raise ValueError(f"{label} must be one of {', '.join(map(repr, numbers))}: {label}={given!r}")
    return numbers[given]
