"""The sizes of a slot queue."""

from __future__ import annotations

import os
from dataclasses import dataclass

from queueduct.items.types import ItemType
from queueduct.native import _layout
from queueduct.segments.geometry import Geometry, check_between, check_product, write_indices

__all__ = ["SlotsGeometry"]


@dataclass(frozen=True)
class SlotsGeometry(Geometry):
    """Slots, and two queues of their indices."""

    kind = "slots"
    number = 4
    fields = _layout.SLOTS_FIELDS
    header_bytes = _layout.SLOTS_HEADER_BYTES

    capacity: int
    slot_bytes: int

    def check(self) -> None:
        super().check()
        check_between("capacity", self.capacity, 1, _layout.SLOTS_LIMIT)
        check_between("slot_bytes", self.slot_bytes, 1, _layout.SLOT_BYTES_LIMIT)
        check_product("capacity * slot_bytes", self.capacity, self.slot_bytes)

    def layout(self, item: ItemType) -> dict[str, int]:
        return _layout.slots_layout(self.capacity, self.slot_bytes, self.participants, self.producers, len(item.text))

    def initialise(self, fd: int, item: ItemType) -> None:
        """Makes all slots free: their queue is full, head=(0,0) and tail=(1,0); the other is empty, both (1,0)."""
        at = self.layout(item)
        start = _layout.cyclic_index(self.capacity, 1, 0)
        for offset, value in (
            (_layout.FREE_TAIL_AT, start),
            (_layout.USED_HEAD_AT, start),
            (_layout.USED_TAIL_AT, start),
            (_layout.CAPACITY_AT, self.capacity),
        ):
            os.pwrite(fd, value.to_bytes(8, "little"), at["control_offset"] + offset)
        write_indices(fd, at["free_cells_offset"], self.capacity)
