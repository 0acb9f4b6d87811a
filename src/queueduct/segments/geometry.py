"""What the sizes of a queue are, whatever its kind: every offset of its segment follows from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from queueduct.items.types import ItemType
from queueduct.native import _layout

__all__ = ["Geometry", "check_between", "number_of", "power_of_two_from"]


@dataclass(frozen=True)
class Geometry(ABC):
    """What all kinds have."""

    kind: ClassVar[str]
    fields: ClassVar[dict[str, tuple[int, int]]]
    """Where the header's fields stand: name -> (offset, bytes)."""
    header_bytes: ClassVar[int]
    magic: ClassVar[bytes] = _layout.MAGIC
    """What a file of this kind begins with."""

    participants: int
    producers: int

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
        """The same of a file that begins with these bytes. ValueError: it can be no segment of this kind."""
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
        """Does what stands before the segment header agree with it?"""
        return

    @abstractmethod
    def layout(self, item: ItemType) -> dict[str, int]:
        """Where everything lies: fields of the header."""

    @abstractmethod
    def values(self) -> dict[str, int]:
        """The sizes, as fields of the header."""

    @classmethod
    @abstractmethod
    def from_header(cls, field: Callable[[str], int]) -> Geometry:
        """The sizes that a header has, not yet checked."""

    def check_item(self, item: ItemType) -> None:
        """Do the sizes suit the item?"""
        size = self.values()["slot_bytes"]
        if item.dtype is not None and item.dtype.itemsize != size:
            raise ValueError(f"slot_bytes must be the dtype's {item.dtype.itemsize}: slot_bytes={size}")

    @abstractmethod
    def needed_bytes(self, item: ItemType) -> int:
        """How much of the segment must have memory from the start."""

    def initialise(self, fd: int, item: ItemType) -> None:
        """Write what is not zero in a new segment, the header aside: nothing, as a rule."""
        return


def check_between(label: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise ValueError(f"{label} must be between {least} and {most}: {label}={value}")


def power_of_two_from(least: int) -> int:
    return 1 << max(0, least - 1).bit_length()


def number_of(label: str, given: str, numbers: dict[str, int]) -> int:
    if given not in numbers:
        raise ValueError(f"{label} must be one of {', '.join(map(repr, numbers))}: {label}={given!r}")
    return numbers[given]
