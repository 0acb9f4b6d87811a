MAGIC: bytes
LAYOUT_VERSION: int
BYTE_ORDER: int
CAPACITY_LIMIT: int
SLOT_BYTES_LIMIT: int
SEGMENT_BYTES_LIMIT: int
PARTICIPANTS_LIMIT: int
PRODUCERS_LIMIT: int
ITEM_TEXT_LIMIT: int
HEADER_BYTES: int
PARTICIPANT_BYTES: int
FIELDS: dict[str, tuple[int, int]]

def bounded_layout(
    capacity: int, slot_bytes: int, participants: int, producers: int, item_text_bytes: int, varying: bool
) -> dict[str, int]: ...

READERS_LIMIT: int
BLOCKS_LIMIT: int
BLOCK_BYTES_LIMIT: int
FIRST_ITEMS_LIMIT: int
EVENTS_HEADER_BYTES: int
EVENTS_FIELDS: dict[str, tuple[int, int]]

def events_layout(
    block_count: int,
    block_bytes: int,
    chunk_lines: int,
    participants: int,
    readers: int,
    producers: int,
    item_text_bytes: int,
) -> dict[str, int]: ...

PUBLISHED_MAGIC: bytes
PUBLISHED_BYTES: int
MESSAGES_LIMIT: int
MESSAGE_WORDS_LIMIT: int

def overwriting_layout(messages: int, words: int, participants: int, item_text_bytes: int) -> dict[str, int]: ...
def overwriting_own_offset(messages: int, words: int) -> int: ...
def overwriting_leased_offset(messages: int, words: int, participants: int, item_text_bytes: int) -> int: ...

STEPS_LIMIT: int
FIRST_BYTES_LIMIT: int
GROWING_HEADER_BYTES: int
LEVEL_BYTES: int
LEVEL_PREPARED_OFFSET: int
GROWING_FIELDS: dict[str, tuple[int, int]]

def growing_layout(
    first_bytes: int,
    steps: int,
    slot_bytes: int,
    participants: int,
    producers: int,
    item_text_bytes: int,
    varying: bool,
) -> dict[str, int]: ...
def growing_capacity(first_bytes: int, level: int, slot_bytes: int) -> int: ...
def growing_region_end(begin: int, capacity: int, slot_bytes: int, varying: bool) -> int: ...

SLOTS_LIMIT: int
SLOT_LINE_BYTES: int
SLOTS_HEADER_BYTES: int
SLOTS_FIELDS: dict[str, tuple[int, int]]
CAPACITY_AT: int
FREE_HEAD_AT: int
FREE_TAIL_AT: int
USED_HEAD_AT: int
USED_TAIL_AT: int

def slots_layout(
    slots: int, slot_bytes: int, participants: int, producers: int, item_text_bytes: int
) -> dict[str, int]: ...
def cyclic_index(n: int, cycle: int, index: int) -> int: ...
