"""The sizes of a slot queue."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from queueduct.items.types import ItemType
from queueduct.native import _layout, _slots_layout
from queueduct.segments.geometry import Geometry, check_between

__all__ = ["SlotsGeometry"]


@dataclass(frozen=True)
class SlotsGeometry(Geometry):
    """Slots, and two queues of their indices."""

    kind = "slots"
    fields = _slots_layout.FIELDS
    header_bytes = _slots_layout.HEADER_BYTES

    capacity: int
    slot_bytes: int

    def check(self) -> None:
        super().check()
        check_between("capacity", self.capacity, 1, _slots_layout.SLOTS_LIMIT)
        check_between("slot_bytes", self.slot_bytes, 1, _layout.SLOT_BYTES_LIMIT)
        if self.capacity * self.slot_bytes > _layout.SEGMENT_BYTES_LIMIT:
            raise ValueError(
                f"capacity * slot_bytes must be at most {_layout.SEGMENT_BYTES_LIMIT} bytes: "
                f"{self.capacity} * {self.slot_bytes} = {self.capacity * self.slot_bytes}"
            )

    def layout(self, item: ItemType) -> dict[str, int]:
        return _slots_layout.slots_layout(
            self.capacity, self.slot_bytes, self.participants, self.producers, len(item.text)
        )

    def values(self) -> dict[str, int]:
        return {
            "capacity": self.capacity,
            "slot_bytes": self.slot_bytes,
            "participants": self.participants,
            "producers": self.producers,
        }

    @classmethod
    def from_header(cls, field: Callable[[str], int]) -> SlotsGeometry:
        return cls(field("participants"), field("producers"), field("capacity"), field("slot_bytes"))

    def needed_bytes(self, item: ItemType) -> int:
        return self.layout(item)["total_bytes"]

    def initialise(self, fd: int, item: ItemType) -> None:
        """All slots are free: that queue is full, head=(0,0) and tail=(1,0); the other is empty, both (1,0)."""
        at = self.layout(item)
        start = _slots_layout.cyclic_index(self.capacity, 1, 0)
        for offset, value in (
            (_slots_layout.FREE_TAIL_AT, start),
            (_slots_layout.USED_HEAD_AT, start),
            (_slots_layout.USED_TAIL_AT, start),
            (_slots_layout.CAPACITY_AT, self.capacity),
        ):
            os.pwrite(fd, value.to_bytes(8, "little"), at["control_offset"] + offset)
        step = 1 << 16
        for first in range(0, self.capacity, step):
            last = min(first + step, self.capacity)
            cells = b"".join(i.to_bytes(8, "little") for i in range(first, last))
            os.pwrite(fd, cells, at["free_cells_offset"] + first * 8)
