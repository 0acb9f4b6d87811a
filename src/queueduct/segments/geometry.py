"""What the sizes of a queue are, whatever its kind: every offset of its segment follows from them."""

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
    """What takes less address space."""
    header_names: ClassVar[dict[str, str]] = {}
    """Attributes that have another name in the header."""
    fields: ClassVar[dict[str, tuple[int, int]]]
    """Where the header's fields stand: name -> (offset, bytes)."""
    header_bytes: ClassVar[int]
    magic: ClassVar[bytes] = _layout.MAGIC
    """What a file of this kind begins with."""

    participants: int
    producers: int

    @classmethod
    def of(cls, item: ItemType, *_: Any, **sizes: Any) -> Self:  # *_: a kind may name its own sizes
        """What a user asks for; the size of a slot follows from the item, if it is not given."""
        return cls(**{**sizes, "slot_bytes": item.slot_bytes(sizes["slot_bytes"])})

    def check(self) -> None:
        """Refuse sizes that no queue can have; afterwards no product of them overflows."""
        check_between("participants", self.participants, 1, _layout.PARTICIPANTS_LIMIT)
        check_between("producers", self.producers, 0, _layout.PRODUCERS_LIMIT)

    @property
    def header_offset(self) -> int:
        """Where the segment header stands: first, unless a kind has a part that others published."""
        return 0

    @classmethod
    def find_header(cls, start: bytes) -> int:
        """The same for a file that begins with these bytes. Raises ValueError if it can be no segment of this kind."""
        return 0

    @classmethod
    def published(cls, start: bytes, participants: int) -> Geometry:
        """The sizes of a file that another program made and that begins with these bytes."""
        raise ValueError(f"queues of kind {cls.kind!r} are made by queueduct only")

    @property
    def published_bytes(self) -> int:
        """How much of a file is the published part."""
        return 0

    def check_start(self, start: bytes) -> None:
        """Raise ValueError if what stands before the segment header does not agree with it."""
        return

    @abstractmethod
    def layout(self, item: ItemType) -> dict[str, int]:
        """Where everything lies: fields of the header."""

    def values(self) -> dict[str, int]:
        """The sizes, as fields of the header."""
        return {name: getattr(self, attribute) for attribute, name in self.named_in_header()}

    @classmethod
    def from_header(cls, field: Callable[[str], int]) -> Self:
        """The sizes that a header has, not yet checked."""
        return cls(**{attribute: field(name) for attribute, name in cls.named_in_header()})

    @classmethod
    def named_in_header(cls) -> list[tuple[str, str]]:
        return [(each.name, cls.header_names.get(each.name, each.name)) for each in dataclasses.fields(cls)]

    def check_item(self, item: ItemType) -> None:
        """Raise ValueError if the sizes do not suit the item."""
        size = self.values()["slot_bytes"]
        if item.dtype is not None and item.dtype.itemsize != size:
            raise ValueError(f"slot_bytes must be the dtype's {item.dtype.itemsize}: slot_bytes={size}")

    def needed_bytes(self, item: ItemType) -> int:
        """How much of the segment must have memory from the start: all of it, unless a kind grows."""
        return self.layout(item)["total_bytes"]

    def initialise(self, fd: int, item: ItemType) -> None:
        """Write what is not zero in a new segment, apart from the header."""
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
    """Write the numbers 0, 1, 2, … as 64-bit words, a piece at a time."""
    step = 1 << 16
    for first in range(0, count, step):
        os.pwrite(fd, np.arange(first, min(first + step, count), dtype="<u8").tobytes(), offset + first * 8)


def power_of_two_from(least: int) -> int:
    return 1 << max(0, least - 1).bit_length()


def number_of(label: str, given: str, numbers: dict[str, int]) -> int:
    if given not in numbers:
        raise ValueError(f"{label} must be one of {', '.join(map(repr, numbers))}: {label}={given!r}")
    return numbers[given]
