"""The sizes of a bounded queue."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from queueduct.items.types import ItemType
from queueduct.native import _layout
from queueduct.segments.geometry import Geometry, check_between, power_of_two_from

__all__ = ["BoundedGeometry"]


@dataclass(frozen=True)
class BoundedGeometry(Geometry):
    """A ring of slots."""

    kind = "bounded"
    fields = _layout.FIELDS
    header_bytes = _layout.HEADER_BYTES

    capacity: int
    slot_bytes: int

    def check(self) -> None:
        super().check()
        if not 2 <= self.capacity <= _layout.CAPACITY_LIMIT or self.capacity & (self.capacity - 1):
            raise ValueError(f"capacity must be a power of two, at least 2: {capacity_remedy(self.capacity)}")
        check_between("slot_bytes", self.slot_bytes, 1, _layout.SLOT_BYTES_LIMIT)
        if self.capacity * self.slot_bytes > _layout.SEGMENT_BYTES_LIMIT:
            raise ValueError(
                f"capacity * slot_bytes must be at most {_layout.SEGMENT_BYTES_LIMIT} bytes: "
                f"{self.capacity} * {self.slot_bytes} = {self.capacity * self.slot_bytes}"
            )

    def layout(self, item: ItemType) -> dict[str, int]:
        return _layout.bounded_layout(
            self.capacity, self.slot_bytes, self.participants, self.producers, len(item.text), item.varies
        )

    def values(self) -> dict[str, int]:
        return {
            "capacity": self.capacity,
            "slot_bytes": self.slot_bytes,
            "participants": self.participants,
            "producers": self.producers,
        }

    @classmethod
    def from_header(cls, field: Callable[[str], int]) -> BoundedGeometry:
        return cls(field("participants"), field("producers"), field("capacity"), field("slot_bytes"))

    def needed_bytes(self, item: ItemType) -> int:
        return self.layout(item)["total_bytes"]

    def initialise(self, fd: int, item: ItemType) -> None:
        """Slot i is free for position i."""
        at = self.layout(item)["generations_offset"]
        step = 1 << 16
        for first in range(0, self.capacity, step):
            last = min(first + step, self.capacity)
            os.pwrite(fd, b"".join(i.to_bytes(8, "little") for i in range(first, last)), at + first * 8)


def capacity_remedy(capacity: int) -> str:
    """The value, and the nearest one that works."""
    if capacity < 2:
        return f"capacity={capacity}; try 2"
    if capacity > _layout.CAPACITY_LIMIT:
        return f"capacity={capacity}; the largest is {_layout.CAPACITY_LIMIT}"
    return f"capacity={capacity}; try {power_of_two_from(capacity)}"
