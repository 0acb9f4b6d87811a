MAGIC: bytes
LAYOUT_VERSION: int
BYTE_ORDER: int
CAPACITY_LIMIT: int
SLOT_BYTES_LIMIT: int
SEGMENT_BYTES_LIMIT: int
PARTICIPANTS_LIMIT: int
PRODUCERS_LIMIT: int
ITEM_TEXT_LIMIT: int
ITEM_BYTES_LIMIT: int
HEADER_BYTES: int
CONTROL_BYTES: int
PARTICIPANT_BYTES: int
PRODUCER_BYTES: int
FIELDS: dict[str, tuple[int, int]]

def bounded_layout(
    capacity: int, slot_bytes: int, participants: int, producers: int, item_text_bytes: int, varying: bool
) -> dict[str, int]: ...
