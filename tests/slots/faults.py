"""What a segment of slots may not be."""

from __future__ import annotations

from queueduct import SlotQueue
from tests.support.faults import ANY_VALUE_CAN_BE, Faults
from tests.support.raw import RawSlots

SLOTS = Faults(
    cls=SlotQueue,
    make=lambda: SlotQueue.create("q", 4, participants=4),
    item=b"item",
    raw=RawSlots,
    fields={
        "magic": [b"QUEUDUCL", bytes(8)],
        "layout_version": [0, 1, 2**32 - 1],
        "byte_order": [0x04030201, 0],
        "kind": [0, 1, 2, 5, 6, 2**32 - 1],
        "item_kind": [0, 2, 3, 4, 2**32 - 1],
        "total_bytes": [0, 4096, 2**63, 2**64 - 1],
        "capacity": [0, 1000, 2**20 + 1, 2**63, 2**64 - 1],
        "slot_bytes": [0, 129, 2**32, 2**32 + 1, 2**63, 2**64 - 1],
        "participants": [0, 50, 2**14 + 1, 2**32 - 1],
        "producers": [0, 1, 64, 2**12 + 1, 2**32 - 1],
        "item_text_bytes": [0, 4, 6, 2**20 + 1, 2**32 - 1],
        "item_text_offset": [0, 256, 2**64 - 1],
        "control_offset": [0, 512, 4097, 8192, 2**64 - 8],
        "participants_offset": [0, 4096, 2**63],
        "producers_offset": [0, 1, 4096, 2**63],
        "generations_offset": [1, 8192, 2**64 - 8],
        "lengths_offset": [1, 8192],
        "payload_offset": [0, 1, 8192, 2**64 - 8],
        "slot_stride": [0, 1, 64, 256, 2**63],
        "free_cells_offset": [0, 4096, 2**64 - 8],
        "used_cells_offset": [0, 4096, 2**64 - 8],
        "lines_offset": [0, 4096, 2**64 - 128],
        "reserved": [b"\1" + bytes(91), bytes(91) + b"\x80"],
        "unused": [b"\1" + bytes(95), bytes(95) + b"\x80"],
    },
    follows={
        "item_text_bytes": "item_text",
        "item_kind": "item_kind|item_text",
        "kind": "kind|capacity|max_bytes|slot_bytes|participants|readers|item_text|offset|on_full|steps",
    },
    covered=ANY_VALUE_CAN_BE,
)
