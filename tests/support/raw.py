"""A segment file as bytes, at the offsets that the layout documents."""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from pathlib import Path

from queueduct.native import _layout

LINE_BYTES = 128
CLOSED_BIT = 1 << 63
PUBLISHED = 1 << 62  # in a generation
PUSH, POP = 1, 2


class RawSegment:
    """Every shared word of a bounded segment, to read and to write."""

    fields = _layout.FIELDS
    header_bytes = _layout.HEADER_BYTES
    base = 0

    def __init__(self, name: str) -> None:
        self.path = Path(os.environ["QUEUEDUCT_DIR"]) / name
        with self.path.open("r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 0)

    def __enter__(self) -> RawSegment:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.memory.close()

    def field(self, name: str) -> int:
        offset, size = self.fields[name]
        return int.from_bytes(self.memory[offset : offset + size], "little")

    def set_field(self, name: str, value: int | bytes) -> None:
        offset, size = self.fields[name]
        self.memory[offset : offset + size] = value if isinstance(value, bytes) else value.to_bytes(size, "little")

    def set_text(self, text: bytes) -> None:
        """Another item text; it must fit before the control block."""
        at = self.field("item_text_offset")
        assert at + len(text) <= self.field("control_offset")
        self.memory[at : at + len(text)] = text
        self.set_field("item_text_bytes", len(text))

    def sign(self) -> None:
        """Make the checksum right again."""
        self.set_field("checksum", 0)
        end = self.header_bytes + self.field("item_text_bytes")
        self.set_field("checksum", zlib.crc32(self.memory[:end]))

    def word(self, offset: int) -> int:
        return int(struct.unpack_from("<Q", self.memory, offset)[0])

    def set_word(self, offset: int, value: int) -> None:
        struct.pack_into("<Q", self.memory, offset, value)

    @property
    def push_position(self) -> int:
        return self.word(self.field("control_offset"))

    @push_position.setter
    def push_position(self, value: int) -> None:
        self.set_word(self.field("control_offset"), value)

    @property
    def pop_position(self) -> int:
        return self.word(self.field("control_offset") + LINE_BYTES)

    @pop_position.setter
    def pop_position(self, value: int) -> None:
        self.set_word(self.field("control_offset") + LINE_BYTES, value)

    @property
    def participants_used(self) -> int:
        return int(struct.unpack_from("<I", self.memory, self.field("control_offset") + 4 * LINE_BYTES)[0])

    @participants_used.setter
    def participants_used(self, value: int) -> None:
        struct.pack_into("<I", self.memory, self.field("control_offset") + 4 * LINE_BYTES, value)

    def generations(self) -> list[int]:
        at, capacity = self.field("generations_offset"), self.field("capacity")
        return list(struct.unpack_from(f"<{capacity}Q", self.memory, at))

    def set_generation(self, index: int, value: int) -> None:
        self.set_word(self.field("generations_offset") + 8 * index, value)

    def length(self, index: int) -> int:
        return int(struct.unpack_from("<I", self.memory, self.field("lengths_offset") + 4 * index)[0])

    def set_length(self, index: int, value: int) -> None:
        struct.pack_into("<I", self.memory, self.field("lengths_offset") + 4 * index, value)

    def slot(self, index: int) -> bytes:
        at, size = self.field("payload_offset"), self.field("slot_bytes")
        return self.memory[at + index * size : at + (index + 1) * size]

    def line_offset(self, line: int) -> int:
        return self.field("participants_offset") + line * _layout.PARTICIPANT_BYTES

    def intents(self) -> list[int]:
        return [self.word(self.line_offset(line)) for line in range(self.field("participants"))]

    def set_intent(self, line: int, side: int, position: int, count: int) -> None:
        self.set_word(self.line_offset(line), side << 62 | count << 40 | position)


class RawGrowing(RawSegment):
    """The same for a growing segment: the rings lie in the regions of its levels."""

    fields = _layout.GROWING_FIELDS
    header_bytes = _layout.GROWING_HEADER_BYTES


CONTROL_WORDS = {
    # of the lock's holder, line 0
    "end": 0,
    "start": 8,
    "head_chunk": 16,
    "chunks_made": 24,
    "used_bytes": 32,
    "spare_bytes": 40,
    "blocks_used": 48,
    "lock": LINE_BYTES,
    # the last line; two words of 32 bits first
    "participants_used": 4 * LINE_BYTES,
    "repairs": 4 * LINE_BYTES + 8,
    "dropped": 4 * LINE_BYTES + 16,
    "synced": 4 * LINE_BYTES + 24,
    "freed_unsynced": 4 * LINE_BYTES + 32,
    "boot_id": 4 * LINE_BYTES + 40,
    "booted_ns": 4 * LINE_BYTES + 56,
    "uptime_ns": 4 * LINE_BYTES + 64,
    "confirmed": 4 * LINE_BYTES + 72,
    "sync_failures": 4 * LINE_BYTES + 80,
    "cuts": 4 * LINE_BYTES + 88,
    "lowest_cut": 4 * LINE_BYTES + 96,
    "cut_positions": 5 * LINE_BYTES,
}
CHUNK_WORDS = {"first_position": 0, "end_position": 8, "items": 16, "bytes": 24, "block": 32}
"""block and blocks are 32 bits each: one word here."""
READER_WORDS = {"place": 0, "kind": 8, "name_length": 16, "epoch": 116, "beyond": 120}


class RawEvents(RawSegment):
    """The same for a segment of events."""

    fields = _layout.EVENTS_FIELDS
    header_bytes = _layout.EVENTS_HEADER_BYTES

    def get_control(self, name: str) -> int:
        return self.word(self.field("control_offset") + CONTROL_WORDS[name])

    def set_control(self, name: str, value: int) -> None:
        self.set_word(self.field("control_offset") + CONTROL_WORDS[name], value)

    def start_anew(self) -> None:
        """What a new start of the machine is to a log: every witness of the boot that it was used in says another."""
        self.set_control("boot_id", self.get_control("boot_id") ^ 0x5A5A)
        self.set_control("booted_ns", max(1, self.get_control("booted_ns") - 3600 * 10**9))
        self.set_control("uptime_ns", self.get_control("uptime_ns") + 3600 * 10**9)

    def chunk_offset(self, number: int, name: str) -> int:
        return self.field("chunks_offset") + number % self.field("chunk_lines") * 64 + CHUNK_WORDS[name]

    def reader_offset(self, line: int, name: str) -> int:
        return self.field("readers_offset") + line * LINE_BYTES + READER_WORDS[name]


class RawOverwriting(RawSegment):
    """The same for an overwriting segment: its header stands behind the messages."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        messages, words = struct.unpack_from("<II", self.memory, 8)
        self.base = _layout.overwriting_own_offset(messages, words)
        self.fields = {name: (self.base + offset, size) for name, (offset, size) in _layout.FIELDS.items()}
        self.fields |= {"published_magic": (0, 8), "queue_max_len": (8, 4), "msg_size": (12, 4)}

    def sign(self) -> None:
        self.set_field("checksum", 0)
        end = self.base + self.header_bytes + self.field("item_text_bytes")
        self.set_field("checksum", zlib.crc32(self.memory[self.base : end]))


class RawSlots(RawSegment):
    """The same for a segment of slots."""

    fields = _layout.SLOTS_FIELDS
    header_bytes = _layout.SLOTS_HEADER_BYTES

    def control_offset(self, at: int) -> int:
        return self.field("control_offset") + at

    def free_cells(self) -> list[int]:
        return self._cells("free_cells_offset")

    def used_cells(self) -> list[int]:
        return self._cells("used_cells_offset")

    def _cells(self, name: str) -> list[int]:
        return list(struct.unpack_from(f"<{self.field('capacity')}Q", self.memory, self.field(name)))

    def slot_line(self, index: int) -> int:
        return self.field("lines_offset") + index * _layout.SLOT_LINE_BYTES


def claim_as_the_dead(name: str, line: int, side: int, position: int, count: int) -> None:
    """Leave the segment as a process does that was killed right after its claim: nobody holds the line's lock."""
    with RawSegment(name) as raw:
        raw.set_intent(line, side, position, count)
        raw.participants_used = max(raw.participants_used, line + 1)
        if side == PUSH:
            raw.push_position = position + count
        else:
            raw.pop_position = position + count
