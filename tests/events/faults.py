"""What a segment of events may not be."""

from __future__ import annotations

from queueduct import EventQueue
from tests.support.faults import ANY_VALUE_CAN_BE, Faults
from tests.support.raw import RawEvents

EVENTS = Faults(
    cls=EventQueue,
    make=lambda: EventQueue.create("q", max_bytes=8192, participants=4, readers=4, producers=2),
    item=b"item",
    raw=RawEvents,
    fields={
        "magic": [b"QUEUDUCL", bytes(8)],
        "layout_version": [0, 1, 2**32 - 1],
        "byte_order": [0x04030201, 0],
        "kind": [0, 1, 2, 6, 2**32 - 1],
        "item_kind": [0, 2, 3, 4, 2**32 - 1],
        "total_bytes": [0, 4096, 2**63, 2**64 - 1],
        "capacity": [0, 1, 69, 2**24, 2**24 + 1, 2**63, 2**64 - 1],
        "slot_bytes": [0, 2**32, 2**32 + 1, 2**63, 2**64 - 1],
        "participants": [0, 5, 2**14 + 1, 2**32 - 1],
        "producers": [0, 64, 2**12 + 1, 2**32 - 1],
        "item_text_bytes": [0, 4, 6, 2**20 + 1, 2**32 - 1],
        "item_text_offset": [0, 256, 513, 2**64 - 1],
        "control_offset": [0, 512, 4097, 8192, 2**64 - 8],
        "participants_offset": [0, 4096, 2**63],
        "producers_offset": [0, 4096, 2**63],
        "generations_offset": [1, 8192, 2**64 - 8],
        "lengths_offset": [1, 8192],
        "payload_offset": [1, 8192],
        "max_bytes": [0, 2**48, 2**63, 2**64 - 1],
        "block_bytes": [0, 1, 4095, 4097, 8192, 2**32, 2**63, 2**64 - 4096],
        "first_items": [0, 2**20, 2**24 + 1, 2**63],
        "chunk_lines": [0, 1, 3, 127, 64, 512, 2**26, 2**63],
        "readers": [0, 5, 2**12 + 1, 2**32 - 1],
        "on_full": [0, 4, 2**32 - 1],
        "sync": [0, 4, 2**32 - 1],
        "padding": [1, 2**32 - 1],
        "readers_offset": [0, 4096, 2**64 - 128],
        "chunks_offset": [0, 4096, 2**64 - 64],
        "blocks_offset": [0, 4096, 2**64 - 4],
        "arena_offset": [0, 4096, 2**64 - 4096],
        "reserved": [b"\1" + bytes(91), bytes(91) + b"\x80"],
        "unused": [b"\1" + bytes(167), bytes(167) + b"\x80"],
        "sync_interval_ns": [0, 1, 2**63, 2**64 - 1],
    },
    follows={
        "slot_bytes": "slot_bytes|max_bytes",
        "item_text_bytes": "item_text",
        "item_kind": "item_kind|item_text",
        "kind": "kind|capacity|max_bytes",
        "first_items": "first_items|max_bytes",  # possible each by itself, and not together
    },
    covered=ANY_VALUE_CAN_BE
    | {"slot_bytes": 2, "max_bytes": 2, "first_items": 2, "on_full": 3, "sync": 3, "sync_interval_ns": 2},
)
