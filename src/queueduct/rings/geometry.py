"""The sizes of queues of rings: bounded and growing."""

from __future__ import annotations

import os
from dataclasses import dataclass

from queueduct.items.types import ItemType
from queueduct.native import _layout
from queueduct.segments.geometry import Geometry, check_between, check_product, write_indices

__all__ = ["BoundedGeometry", "GrowingGeometry"]


@dataclass(frozen=True)
class BoundedGeometry(Geometry):
    """A ring of slots."""

    kind = "bounded"
    number = 1
    fields = _layout.FIELDS
    header_bytes = _layout.HEADER_BYTES

    capacity: int
    slot_bytes: int

    def check(self) -> None:
        super().check()
        if self.capacity < 1:
            raise ValueError(f"capacity must be at least 1: capacity={self.capacity}; try 1")
        if self.capacity > _layout.CAPACITY_LIMIT:
            raise ValueError(
                f"capacity must be at most {_layout.CAPACITY_LIMIT}: "
                f"capacity={self.capacity}; try {_layout.CAPACITY_LIMIT}"
            )
        check_between("slot_bytes", self.slot_bytes, 1, _layout.SLOT_BYTES_LIMIT)
        check_product("capacity * slot_bytes", self.capacity, self.slot_bytes)

    def layout(self, item: ItemType) -> dict[str, int]:
        return _layout.bounded_layout(
            self.capacity, self.slot_bytes, self.participants, self.producers, len(item.text), item.varies
        )

    def initialise(self, fd: int, item: ItemType) -> None:
        """Writes the generations: slot i is free for position i."""
        write_indices(fd, self.layout(item)["generations_offset"], self.capacity)


@dataclass(frozen=True)
class GrowingGeometry(Geometry):
    """Rings of rising size."""

    kind = "growing"
    number = 2
    smaller = "fewer steps"
    fields = _layout.GROWING_FIELDS
    header_bytes = _layout.GROWING_HEADER_BYTES

    first_bytes: int
    steps: int
    slot_bytes: int
    max_bytes: int
    """The most bytes of memory; 0 for no limit."""

    def check(self) -> None:
        super().check()
        check_between("first_bytes", self.first_bytes, 1, _layout.FIRST_BYTES_LIMIT)
        check_between("steps", self.steps, 1, _layout.STEPS_LIMIT)
        check_between("slot_bytes", self.slot_bytes, 1, _layout.SLOT_BYTES_LIMIT)
        check_between("max_bytes", self.max_bytes, 0, _layout.SEGMENT_BYTES_LIMIT)
        largest = max(self.first_bytes << 2 * (self.steps - 1), 2 * self.slot_bytes)
        # with generations and lengths, of slots as small as one byte, all levels together
        if largest * (1 + -(-12 // self.slot_bytes)) * 2 > _layout.SEGMENT_BYTES_LIMIT:
            raise ValueError(
                "first_bytes * 4**(steps - 1) and its tables must be at most "
                f"{_layout.SEGMENT_BYTES_LIMIT // 2} bytes: "
                f"{self.first_bytes} * 4**{self.steps - 1} = {largest}"
            )

    def check_item(self, item: ItemType) -> None:
        super().check_item(item)
        if 0 < self.max_bytes < self.needed_bytes(item):
            raise ValueError(
                f"max_bytes must be at least {self.needed_bytes(item)}, what the queue takes when it is empty: "
                f"max_bytes={self.max_bytes}; raise it, or use fewer participants, producers or first_bytes"
            )

    def capacities(self) -> tuple[int, ...]:
        """Returns the number of slots of each sub-queue."""
        return tuple(_layout.growing_capacity(self.first_bytes, i, self.slot_bytes) for i in range(self.steps))

    def layout(self, item: ItemType) -> dict[str, int]:
        return _layout.growing_layout(
            self.first_bytes,
            self.steps,
            self.slot_bytes,
            self.participants,
            self.producers,
            len(item.text),
            item.varies,
        )

    def values(self) -> dict[str, int]:
        return {**super().values(), "capacity": self.capacities()[-1]}

    def needed_bytes(self, item: ItemType) -> int:
        """Returns the bytes up to the end of the first sub-queue."""
        regions = self.layout(item)["regions_offset"]
        return _layout.growing_region_end(regions, self.capacities()[0], self.slot_bytes, item.varies)

    def initialise(self, fd: int, item: ItemType) -> None:
        """Marks the first sub-queue as one that has memory."""
        at = self.layout(item)["levels_offset"] + _layout.LEVEL_PREPARED_OFFSET
        os.pwrite(fd, self.capacities()[0].to_bytes(8, "little"), at)
