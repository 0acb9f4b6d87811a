SLOTS_LIMIT: int
SLOT_LINE_BYTES: int
CONTROL_BYTES: int
HEADER_BYTES: int
FIELDS: dict[str, tuple[int, int]]
CAPACITY_AT: int
FREE_HEAD_AT: int
FREE_TAIL_AT: int
USED_HEAD_AT: int
USED_TAIL_AT: int

def slots_layout(
    slots: int, slot_bytes: int, participants: int, producers: int, item_text_bytes: int
) -> dict[str, int]: ...
def cyclic_index(n: int, cycle: int, index: int) -> int: ...
