# cython: language_level=3, binding=False, freethreading_compatible=True
"""The offsets and limits of native/'s layout headers, which alone define them."""

from libc.stdint cimport uint32_t, uint64_t

cdef extern from *:
    """
    #include <cstddef>
    #include "ring/ring.hpp"
    #include "events/layout.hpp"
    #include "growing/layout.hpp"
    #include "overwriting/layout.hpp"
    #include "slots/layout.hpp"

    struct FieldRow { const char* kind; const char* name; size_t offset; size_t bytes; };
    #define QUEUEDUCT_HEADER(name) \\
        {"", #name, offsetof(queueduct::SegmentHeader, name), sizeof(queueduct::SegmentHeader::name)}
    #define QUEUEDUCT_SHAPE(kind, Shape, name) \\
        {kind, #name, sizeof(queueduct::SegmentHeader) + offsetof(queueduct::Shape, name), \\
         sizeof(queueduct::Shape::name)}
    #define QUEUEDUCT_EVENTS(name) QUEUEDUCT_SHAPE("events", EventsShape, name)
    #define QUEUEDUCT_GROWING(name) QUEUEDUCT_SHAPE("growing", GrowingShape, name)
    #define QUEUEDUCT_SLOTS(name) QUEUEDUCT_SHAPE("slots", SlotsShape, name)
    static const FieldRow field_rows[] = {
        QUEUEDUCT_HEADER(magic), QUEUEDUCT_HEADER(layout_version), QUEUEDUCT_HEADER(byte_order),
        QUEUEDUCT_HEADER(kind), QUEUEDUCT_HEADER(item_kind), QUEUEDUCT_HEADER(total_bytes),
        QUEUEDUCT_HEADER(capacity), QUEUEDUCT_HEADER(slot_bytes), QUEUEDUCT_HEADER(participants),
        QUEUEDUCT_HEADER(item_text_bytes), QUEUEDUCT_HEADER(item_text_offset),
        QUEUEDUCT_HEADER(control_offset), QUEUEDUCT_HEADER(participants_offset),
        QUEUEDUCT_HEADER(generations_offset), QUEUEDUCT_HEADER(lengths_offset),
        QUEUEDUCT_HEADER(payload_offset), QUEUEDUCT_HEADER(segment_id), QUEUEDUCT_HEADER(boot_id),
        QUEUEDUCT_HEADER(created_ns), QUEUEDUCT_HEADER(creator_pid), QUEUEDUCT_HEADER(checksum),
        QUEUEDUCT_HEADER(producers_offset), QUEUEDUCT_HEADER(producers), QUEUEDUCT_HEADER(reserved),
        QUEUEDUCT_EVENTS(max_bytes), QUEUEDUCT_EVENTS(block_bytes), QUEUEDUCT_EVENTS(first_items),
        QUEUEDUCT_EVENTS(chunk_lines), QUEUEDUCT_EVENTS(readers), QUEUEDUCT_EVENTS(on_full), QUEUEDUCT_EVENTS(sync),
        QUEUEDUCT_EVENTS(padding), QUEUEDUCT_EVENTS(sync_interval_ns), QUEUEDUCT_EVENTS(readers_offset),
        QUEUEDUCT_EVENTS(chunks_offset), QUEUEDUCT_EVENTS(blocks_offset), QUEUEDUCT_EVENTS(arena_offset),
        QUEUEDUCT_EVENTS(unused),
        QUEUEDUCT_GROWING(first_bytes), QUEUEDUCT_GROWING(max_bytes), QUEUEDUCT_GROWING(steps),
        QUEUEDUCT_GROWING(padding), QUEUEDUCT_GROWING(levels_offset), QUEUEDUCT_GROWING(regions_offset),
        QUEUEDUCT_GROWING(unused),
        QUEUEDUCT_SLOTS(slot_stride), QUEUEDUCT_SLOTS(free_cells_offset), QUEUEDUCT_SLOTS(used_cells_offset),
        QUEUEDUCT_SLOTS(lines_offset), QUEUEDUCT_SLOTS(unused),
    };
    static const size_t field_count = sizeof field_rows / sizeof field_rows[0];
    """
    struct FieldRow:
        const char* kind
        const char* name
        size_t offset
        size_t bytes
    const FieldRow* field_rows
    const size_t field_count

cdef extern from "ring/ring.hpp" namespace "queueduct" nogil:
    const char* magic
    uint32_t layout_version, byte_order_mark, participants_limit, producers_limit, item_text_limit
    uint64_t capacity_limit, slot_bytes_limit, segment_bytes_limit
    cdef cppclass SegmentHeader:
        pass
    cdef cppclass ParticipantLine:
        pass
    cdef struct BoundedOffsets:
        uint64_t item_text, control, participants, producers, generations, lengths, payload, total
    BoundedOffsets bounded_offsets(uint64_t, uint64_t, uint32_t, uint32_t, uint32_t, bint)

cdef extern from "events/layout.hpp" namespace "queueduct" nogil:
    uint32_t readers_limit
    uint64_t blocks_limit, block_bytes_limit, first_items_limit
    cdef cppclass EventsShape:
        pass
    cdef struct EventsOffsets:
        uint64_t item_text, control, participants, readers, producers, chunks, blocks, arena, total
    EventsOffsets events_offsets(uint64_t, uint64_t, uint64_t, uint32_t, uint32_t, uint32_t, uint32_t)

cdef extern from "overwriting/layout.hpp" namespace "queueduct" nogil:
    const char* published_magic
    uint64_t messages_limit, message_words_limit
    cdef cppclass PublishedHeader:
        pass
    cdef struct OverwritingOffsets:
        uint64_t own, item_text, control, participants, leased_data, total
    OverwritingOffsets overwriting_offsets(uint64_t, uint64_t, uint32_t, uint32_t)

cdef extern from "growing/layout.hpp" namespace "queueduct" nogil:
    uint32_t steps_limit
    uint64_t first_bytes_limit
    cdef cppclass GrowingShape:
        pass
    cdef cppclass LevelControl:
        pass
    cdef struct GrowingOffsets:
        uint64_t item_text, control, levels, participants, producers, regions, total
    cdef struct RegionOffsets:
        uint64_t generations, lengths, payload, end
    GrowingOffsets growing_offsets(uint64_t, uint32_t, uint64_t, uint32_t, uint32_t, uint32_t, bint)
    RegionOffsets region_offsets(uint64_t, uint64_t, uint64_t, bint)
    uint64_t level_capacity(uint64_t, uint32_t, uint64_t)
    cdef size_t prepared_offset "offsetof(queueduct::LevelControl, prepared)"

cdef extern from "slots/layout.hpp" namespace "queueduct" nogil:
    uint64_t slots_limit
    cdef cppclass SlotsShape:
        pass
    cdef cppclass SlotLine:
        pass
    cdef cppclass CyclicIndices:
        CyclicIndices(uint64_t)
        uint64_t make(uint64_t, uint64_t) const
    cdef struct SlotsOffsets:
        uint64_t item_text, control, participants, producers, free_cells, used_cells, lines, payload, total, stride
    SlotsOffsets slots_offsets(uint64_t, uint64_t, uint32_t, uint32_t, uint32_t)
    cdef size_t slots_capacity_at "offsetof(queueduct::SlotsControl, capacity)"
    cdef size_t slots_free_at "offsetof(queueduct::SlotsControl, free)"
    cdef size_t slots_used_at "offsetof(queueduct::SlotsControl, used)"
    cdef size_t slots_tail_at "offsetof(queueduct::IndexEnds, tail)"

MAGIC = (<char*>magic)[:8]
LAYOUT_VERSION = layout_version
BYTE_ORDER = byte_order_mark
CAPACITY_LIMIT = capacity_limit
SLOT_BYTES_LIMIT = slot_bytes_limit
SEGMENT_BYTES_LIMIT = segment_bytes_limit
PARTICIPANTS_LIMIT = participants_limit
PRODUCERS_LIMIT = producers_limit
ITEM_TEXT_LIMIT = item_text_limit
HEADER_BYTES = sizeof(SegmentHeader)
PARTICIPANT_BYTES = sizeof(ParticipantLine)

READERS_LIMIT = readers_limit
BLOCKS_LIMIT = blocks_limit
BLOCK_BYTES_LIMIT = block_bytes_limit
FIRST_ITEMS_LIMIT = first_items_limit
EVENTS_HEADER_BYTES = sizeof(SegmentHeader) + sizeof(EventsShape)

PUBLISHED_MAGIC = (<char*>published_magic)[:8]
PUBLISHED_BYTES = sizeof(PublishedHeader)
MESSAGES_LIMIT = messages_limit
MESSAGE_WORDS_LIMIT = message_words_limit

STEPS_LIMIT = steps_limit
FIRST_BYTES_LIMIT = first_bytes_limit
GROWING_HEADER_BYTES = sizeof(SegmentHeader) + sizeof(GrowingShape)
LEVEL_BYTES = sizeof(LevelControl)
LEVEL_PREPARED_OFFSET = prepared_offset

SLOTS_LIMIT = slots_limit
SLOT_LINE_BYTES = sizeof(SlotLine)
SLOTS_HEADER_BYTES = sizeof(SegmentHeader) + sizeof(SlotsShape)
# offsets within the control block of a slot queue
CAPACITY_AT = slots_capacity_at
FREE_HEAD_AT = slots_free_at
FREE_TAIL_AT = slots_free_at + slots_tail_at
USED_HEAD_AT = slots_used_at
USED_TAIL_AT = slots_used_at + slots_tail_at


def fields_of(*kinds):
    """Returns where the fields of the header are: name -> (offset, bytes)."""
    rows = [field_rows[i] for i in range(field_count)]
    return {row["name"].decode(): (row["offset"], row["bytes"]) for row in rows if row["kind"].decode() in kinds}


FIELDS = fields_of("")
EVENTS_FIELDS = fields_of("", "events")
GROWING_FIELDS = fields_of("", "growing")
SLOTS_FIELDS = fields_of("", "slots")


cdef dict by_field(dict offsets):
    """Returns offsets by the names of the header's fields; 0 if a kind has no such part."""
    found = {f"{name}_offset": 0 for name in ("generations", "lengths", "payload", "producers")}
    found["total_bytes"] = offsets.pop("total")
    return found | {f"{name}_offset": offset for name, offset in offsets.items()}


# Where each part of a segment is, as fields of its header. The caller has checked the arguments.


def bounded_layout(capacity, slot_bytes, participants, producers, item_text_bytes, varying):
    return by_field(bounded_offsets(capacity, slot_bytes, participants, producers, item_text_bytes, varying))


def events_layout(block_count, block_bytes, chunk_lines, participants, readers, producers, item_text_bytes):
    return by_field(
        events_offsets(block_count, block_bytes, chunk_lines, participants, readers, producers, item_text_bytes)
    ) | {"padding": 0}


def overwriting_layout(messages, words, participants, item_text_bytes):
    cdef dict at = overwriting_offsets(messages, words, participants, item_text_bytes)
    del at["own"], at["leased_data"]  # no header field has them
    return by_field(at) | {"payload_offset": sizeof(PublishedHeader)}


def overwriting_own_offset(messages, words):
    """Returns where queueduct's own part of an overwriting segment begins: the page after the last message."""
    return overwriting_offsets(messages, words, 0, 0).own


def overwriting_leased_offset(messages, words, participants, item_text_bytes):
    """Returns where the data of leased messages begins. These pages have no memory before the first lease."""
    return overwriting_offsets(messages, words, participants, item_text_bytes).leased_data


def growing_layout(first_bytes, steps, slot_bytes, participants, producers, item_text_bytes, varying):
    return by_field(
        growing_offsets(first_bytes, steps, slot_bytes, participants, producers, item_text_bytes, varying)
    ) | {"padding": 0}


def growing_capacity(first_bytes, level, slot_bytes):
    """Returns how many slots a level has."""
    return level_capacity(first_bytes, level, slot_bytes)


def growing_region_end(begin, capacity, slot_bytes, varying):
    """Returns where the region of a level with ``capacity`` slots ends."""
    return region_offsets(begin, capacity, slot_bytes, varying).end


def slots_layout(slots, slot_bytes, participants, producers, item_text_bytes):
    cdef dict at = slots_offsets(slots, slot_bytes, participants, producers, item_text_bytes)
    stride = at.pop("stride")
    return by_field(at) | {"slot_stride": stride}


def cyclic_index(n, cycle, index):
    """Returns the word of (cycle, index) in an index queue of n."""
    cdef CyclicIndices* cyclic = new CyclicIndices(n)
    try:
        return cyclic.make(cycle, index)
    finally:
        del cyclic
