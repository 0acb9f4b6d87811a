"""What segments of rings may not be."""

from __future__ import annotations

from queueduct import BoundedQueue, GrowingQueue
from tests.support.faults import ANY_VALUE_CAN_BE, Faults
from tests.support.raw import RawGrowing, RawSegment

BOUNDED = Faults(
    cls=BoundedQueue,
    make=lambda: BoundedQueue.create("q", 16, slot_bytes=32, participants=4),
    item=b"item",
    raw=RawSegment,
    fields={
        "magic": [b"QUEUDUCL", bytes(8), b"\xff" * 8, b"queuduct"],
        "layout_version": [0, 1, 5, 2**32 - 1],
        "byte_order": [0x04030201, 0, 2**32 - 1],
        "kind": [0, 6, 2**32 - 1],
        "item_kind": [0, 4, 2**32 - 1],
        "total_bytes": [0, 1, 4096, 2**63, 2**64 - 1],
        "capacity": [0, 17, 1000, 1024, 2**32, 2**33, 2**62, 2**63, 2**64 - 1],
        "slot_bytes": [0, 3200, 2**32, 2**32 + 1, 2**63, 2**64 - 1],
        "participants": [0, 64, 2**14, 2**14 + 1, 2**32 - 1],
        "producers": [0, 64, 2**12, 2**12 + 1, 2**32 - 1],
        "item_text_bytes": [0, 4, 6, 4000, 2**20, 2**20 + 1, 2**32 - 1],
        "item_text_offset": [0, 8, 257, 4096, 2**63, 2**64 - 1],
        "control_offset": [0, 256, 4095, 4097, 8192, 2**63, 2**64 - 8],
        "participants_offset": [0, 4096, 4737, 2**63, 2**64 - 1],
        "producers_offset": [0, 5120, 5249, 2**63, 2**64 - 1],
        "generations_offset": [0, 4096, 8193, 2**63, 2**64 - 8],
        "lengths_offset": [0, 8192, 8321, 2**63, 2**64 - 4],
        "payload_offset": [0, 8192, 12289, 2**63, 2**64 - 1],
        "reserved": [b"\1" + bytes(91), bytes(91) + b"\x80"],
    },
    follows={"item_text_bytes": "item_text"},
    covered=ANY_VALUE_CAN_BE | {"producers": 1, "slot_bytes": 1},
)


def make_growing(**options):
    """Sub-queues of 8, 32, 128 and 512 slots."""
    sizes = {"slot_bytes": 32, "first_bytes": 256, "steps": 4, "participants": 4, "producers": 2}
    return GrowingQueue.create("q", **{**sizes, **options})


GROWING = Faults(
    cls=GrowingQueue,
    make=make_growing,
    item=b"item",
    raw=RawGrowing,
    fields={
        "magic": [b"QUEUDUCL", bytes(8)],
        "layout_version": [0, 1, 2**32 - 1],
        "byte_order": [0x04030201, 0],
        "kind": [0, 1, 6, 2**32 - 1],
        "item_kind": [0, 2, 3, 4, 2**32 - 1],
        "total_bytes": [0, 4096, 2**63, 2**64 - 1],
        "capacity": [0, 1, 511, 1024, 2**63, 2**64 - 1],
        "slot_bytes": [0, 33, 2**32, 2**32 + 1, 2**63, 2**64 - 1],
        "participants": [0, 200, 2**14 + 1, 2**32 - 1],
        "producers": [0, 200, 2**12 + 1, 2**32 - 1],
        "item_text_bytes": [0, 4, 6, 2**20 + 1, 2**32 - 1],
        "item_text_offset": [0, 256, 513, 2**64 - 1],
        "control_offset": [0, 512, 4097, 8192, 2**64 - 8],
        "participants_offset": [0, 4096, 2**63],
        "producers_offset": [0, 4096, 2**63],
        "generations_offset": [1, 8192, 2**64 - 8],
        "lengths_offset": [1, 8192],
        "payload_offset": [1, 8192],
        "first_bytes": [0, 1, 512, 2**32, 2**32 + 1, 2**63, 2**64 - 1],
        "max_bytes": [1, 4096, 2**48 + 1, 2**63, 2**64 - 1],
        "steps": [0, 3, 5, 16, 17, 2**32 - 1],
        "padding": [1, 2**32 - 1],
        "levels_offset": [0, 4096, 2**64 - 128],
        "regions_offset": [0, 4096, 2**64 - 4096],
        "reserved": [b"\1" + bytes(91), bytes(91) + b"\x80"],
        "unused": [b"\1" + bytes(215), bytes(215) + b"\x80"],
    },
    follows={
        "item_kind": "item_kind|item_text",
        "item_text_bytes": "item_text",
        "first_bytes": "first_bytes|capacity",
        "steps": "steps|capacity",
    },
    covered=ANY_VALUE_CAN_BE,
)
