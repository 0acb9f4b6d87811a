"""The sizes of an event queue."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

from queueduct.items.types import ItemType
from queueduct.native import _layout
from queueduct.segments.geometry import Geometry, check_between, check_product, number_of, power_of_two_from

__all__ = ["EventsGeometry"]

ON_FULL = {"wait": 1, "raise": 2, "drop_slowest": 3}
SYNC = {"always": 1, "interval": 2, "never": 3}
PAGE_BYTES = 4096
LARGEST_CHUNK_BYTES = 4 << 20


@dataclass(frozen=True)
class EventsGeometry(Geometry):
    """A log of chunks in an arena of blocks."""

    kind = "events"
    number = 5
    smaller = "a smaller max_bytes"
    header_names: ClassVar[dict[str, str]] = {"item_bytes": "slot_bytes", "block_count": "capacity"}
    fields = _layout.EVENTS_FIELDS
    header_bytes = _layout.EVENTS_HEADER_BYTES

    item_bytes: int
    """The size of a record; of a typical item if they vary."""
    first_items: int
    max_bytes: int
    block_bytes: int
    block_count: int
    chunk_lines: int
    readers: int
    on_full: int
    sync: int
    sync_interval_ns: int

    @classmethod
    def of(
        cls,
        item: ItemType,
        *,
        max_bytes: int,
        first_items: int,
        item_bytes: int | None,
        chunk_bytes: int | None,
        on_full: str,
        sync: str,
        sync_interval: float,
        readers: int,
        producers: int,
        participants: int,
    ) -> EventsGeometry:
        """Returns the sizes that a user asks for, and suitable sizes of blocks."""
        size = item.slot_bytes(item_bytes)
        check_between("first_items", first_items, 1, _layout.FIRST_ITEMS_LIMIT)
        check_between("item_bytes", size, 1, _layout.SLOT_BYTES_LIMIT)
        first_bytes = check_room(item, size, first_items, max_bytes)
        if chunk_bytes is not None:
            check_between("chunk_bytes", chunk_bytes, first_bytes, _layout.BLOCK_BYTES_LIMIT)
        share = min(max_bytes // 8, LARGEST_CHUNK_BYTES) if chunk_bytes is None else chunk_bytes
        block = max(PAGE_BYTES, power_of_two_from(max(share, first_bytes)))
        count = 3 * -(-max_bytes // block) + 64
        return cls(
            participants,
            producers,
            item_bytes=size,
            first_items=first_items,
            max_bytes=max_bytes,
            block_bytes=block,
            block_count=count,
            chunk_lines=power_of_two_from(count + 2),
            readers=readers,
            on_full=number_of("on_full", on_full, ON_FULL),
            sync=number_of("sync", sync, SYNC),
            sync_interval_ns=interval_ns(sync_interval),
        )

    def check(self) -> None:
        super().check()
        check_between("slot_bytes", self.item_bytes, 1, _layout.SLOT_BYTES_LIMIT)
        check_between("first_items", self.first_items, 1, _layout.FIRST_ITEMS_LIMIT)
        check_between("readers", self.readers, 1, _layout.READERS_LIMIT)
        check_between("max_bytes", self.max_bytes, 1, _layout.SEGMENT_BYTES_LIMIT // 8)
        check_between("capacity", self.block_count, 1, _layout.BLOCKS_LIMIT)
        check_between("sync_interval_ns", self.sync_interval_ns, interval_ns(0.001), interval_ns(86400))
        check_between("on_full", self.on_full, 1, len(ON_FULL))
        check_between("sync", self.sync, 1, len(SYNC))
        if not PAGE_BYTES <= self.block_bytes <= _layout.BLOCK_BYTES_LIMIT or self.block_bytes % PAGE_BYTES:
            raise ValueError(f"block_bytes must be pages, at most {_layout.BLOCK_BYTES_LIMIT}: {self.block_bytes}")
        if not 2 <= self.chunk_lines <= 2 * _layout.BLOCKS_LIMIT or self.chunk_lines & (self.chunk_lines - 1):
            raise ValueError(f"chunk_lines must be a power of two: chunk_lines={self.chunk_lines}")
        check_product("capacity * block_bytes", self.block_count, self.block_bytes)

    def check_item(self, item: ItemType) -> None:
        super().check_item(item)
        check_room(item, self.item_bytes, self.first_items, self.max_bytes)

    def layout(self, item: ItemType) -> dict[str, int]:
        return _layout.events_layout(
            self.block_count,
            self.block_bytes,
            self.chunk_lines,
            self.participants,
            self.readers,
            self.producers,
            len(item.text),
        )

    def needed_bytes(self, item: ItemType) -> int:
        return self.layout(item)["arena_offset"]


def check_room(item: ItemType, item_bytes: int, first_items: int, max_bytes: int) -> int:
    """Raises unless two chunks of the first size fit. Returns the bytes of one."""
    first_bytes = first_items * (item_bytes + 4 * item.varies) + 8
    if not 2 * first_bytes <= max_bytes <= _layout.SEGMENT_BYTES_LIMIT // 8:
        raise ValueError(
            f"max_bytes must be between {2 * first_bytes}, two chunks of {first_items} items, "
            f"and {_layout.SEGMENT_BYTES_LIMIT // 8}: max_bytes={max_bytes}"
        )
    return first_bytes


def interval_ns(seconds: float) -> int:
    if isinstance(seconds, bool) or not isinstance(seconds, Real):
        raise TypeError(f"sync_interval must be a number of seconds: sync_interval={seconds!r}")
    if not 0.001 <= seconds <= 86400:
        raise ValueError(f"sync_interval must be between 0.001 and 86400 seconds: sync_interval={seconds!r}")
    return round(seconds * 1e9)
