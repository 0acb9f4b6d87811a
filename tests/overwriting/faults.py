"""What an overwriting segment may not be: the published header first, then our part behind the messages."""

from __future__ import annotations

from queueduct import OverwritingQueue
from tests.support.faults import ANY_VALUE_CAN_BE, Faults
from tests.support.raw import RawOverwriting

AGREE = "QUEUE_MAX_LEN and MSG_SIZE must agree with"

OVERWRITING = Faults(
    cls=OverwritingQueue,
    make=lambda: OverwritingQueue.create("q", 5, message_bytes=24, participants=4),
    item=b"item" * 6,
    raw=RawOverwriting,
    fields={
        "published_magic": [b"Work as ", bytes(8)],
        "queue_max_len": [0, 4, 6, 2**32 - 1],
        "msg_size": [0, 2, 2**32 - 1],
        "magic": [b"QUEUSTUC", b"QUEUDUCL", bytes(8)],
        "layout_version": [0, 1, 99, 2**32 - 1],
        "byte_order": [0x04030201, 0, 99],
        "kind": [0, 1, 2, 4, 5, 6, 7, 2**32 - 1],
        "item_kind": [0, 2, 3, 4, 2**32 - 1],
        "total_bytes": [0, 4096, 2**40, 2**63, 2**64 - 1],
        "capacity": [0, 1, 6, 2**32, 2**63, 2**64 - 1],
        "slot_bytes": [0, 8, 20, 32, 2**32, 2**63, 2**64 - 1],
        "participants": [0, 200, 2**14 + 1, 2**32 - 1],
        "producers": [1, 64, 2**32 - 1],
        "item_text_bytes": [0, 4, 6, 2**20 + 1, 2**32 - 1],
        "item_text_offset": [0, 257, 4096, 2**64 - 1],
        "control_offset": [0, 256, 4097, 2**64 - 8],
        "participants_offset": [0, 4096, 2**63],
        "producers_offset": [1, 4096, 2**63],
        "generations_offset": [1, 8192, 2**64 - 8],
        "lengths_offset": [1, 8192],
        "payload_offset": [0, 40, 8192, 2**64 - 1],
        "reserved": [b"\1" + bytes(91), bytes(91) + b"\x80"],
    },
    follows={
        "published_magic": "magic must be",
        "queue_max_len": f"capacity must be between 1 and|{AGREE}|magic must be|too short",
        "msg_size": f"message_bytes must be between 8 and|{AGREE}|magic must be|too short",
        "kind": "kind| must be ",
        "item_kind": "item_kind|item_text",
        "item_text_bytes": "item_text",
        "capacity": f"capacity|{AGREE}",
        "slot_bytes": f"slot_bytes|message_bytes|{AGREE}",
    },
    covered=ANY_VALUE_CAN_BE,
)
