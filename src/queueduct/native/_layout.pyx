# cython: language_level=3, binding=False, freethreading_compatible=True
"""What layout.hpp says, for segment.py: the offsets exist once, in the header."""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from *:
    """
    #include <cstddef>
    #include "ring/ring.hpp"
    #include "events/layout.hpp"
    #include "overwriting/layout.hpp"
    #include "growing/layout.hpp"

    #define QUEUEDUCT_FIELD(name) \\
        {#name, offsetof(queueduct::SegmentHeader, name), sizeof(queueduct::SegmentHeader::name)}
    struct FieldRow { const char* name; size_t offset; size_t bytes; };
    static const FieldRow field_rows[] = {
        QUEUEDUCT_FIELD(magic), QUEUEDUCT_FIELD(layout_version), QUEUEDUCT_FIELD(byte_order),
        QUEUEDUCT_FIELD(kind), QUEUEDUCT_FIELD(item_kind), QUEUEDUCT_FIELD(total_bytes),
        QUEUEDUCT_FIELD(capacity), QUEUEDUCT_FIELD(slot_bytes), QUEUEDUCT_FIELD(participants),
        QUEUEDUCT_FIELD(item_text_bytes), QUEUEDUCT_FIELD(item_text_offset),
        QUEUEDUCT_FIELD(control_offset), QUEUEDUCT_FIELD(participants_offset),
        QUEUEDUCT_FIELD(generations_offset), QUEUEDUCT_FIELD(lengths_offset),
        QUEUEDUCT_FIELD(payload_offset), QUEUEDUCT_FIELD(segment_id), QUEUEDUCT_FIELD(boot_id),
        QUEUEDUCT_FIELD(created_ns), QUEUEDUCT_FIELD(creator_pid), QUEUEDUCT_FIELD(checksum),
        QUEUEDUCT_FIELD(producers_offset), QUEUEDUCT_FIELD(producers), QUEUEDUCT_FIELD(reserved),
    };
    static const size_t field_count = sizeof field_rows / sizeof field_rows[0];

    #define QUEUEDUCT_SHAPE(name) \\
        {#name, sizeof(queueduct::SegmentHeader) + offsetof(queueduct::EventsShape, name), \\
         sizeof(queueduct::EventsShape::name)}
    static const FieldRow shape_rows[] = {
        QUEUEDUCT_SHAPE(max_bytes), QUEUEDUCT_SHAPE(block_bytes), QUEUEDUCT_SHAPE(first_items),
        QUEUEDUCT_SHAPE(chunk_lines), QUEUEDUCT_SHAPE(readers), QUEUEDUCT_SHAPE(on_full), QUEUEDUCT_SHAPE(sync),
        QUEUEDUCT_SHAPE(padding), QUEUEDUCT_SHAPE(sync_interval_ns), QUEUEDUCT_SHAPE(readers_offset),
        QUEUEDUCT_SHAPE(chunks_offset), QUEUEDUCT_SHAPE(blocks_offset), QUEUEDUCT_SHAPE(arena_offset),
        QUEUEDUCT_SHAPE(unused),
    };
    static const size_t shape_count = sizeof shape_rows / sizeof shape_rows[0];

    #define QUEUEDUCT_GROWING(name) \\
        {#name, sizeof(queueduct::SegmentHeader) + offsetof(queueduct::GrowingShape, name), \\
         sizeof(queueduct::GrowingShape::name)}
    static const FieldRow growing_rows[] = {
        QUEUEDUCT_GROWING(first_bytes), QUEUEDUCT_GROWING(max_bytes), QUEUEDUCT_GROWING(steps), QUEUEDUCT_GROWING(padding),
        QUEUEDUCT_GROWING(levels_offset), QUEUEDUCT_GROWING(regions_offset), QUEUEDUCT_GROWING(unused),
    };
    static const size_t growing_count = sizeof growing_rows / sizeof growing_rows[0];
    """
    struct FieldRow:
        const char* name
        size_t offset
        size_t bytes
    const FieldRow* field_rows
    const size_t field_count
    const FieldRow* shape_rows
    const size_t shape_count
    const FieldRow* growing_rows
    const size_t growing_count

cdef extern from "ring/ring.hpp" namespace "queueduct" nogil:
    const char* magic
    uint32_t layout_version, byte_order_mark, participants_limit, producers_limit, item_text_limit
    uint64_t capacity_limit, slot_bytes_limit, segment_bytes_limit, item_bytes_limit
    cdef cppclass SegmentHeader:
        pass
    cdef cppclass BoundedControl:
        pass
    cdef cppclass ParticipantLine:
        pass
    cdef cppclass ProducerLine:
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
        uint64_t own, item_text, control, participants, shelf_data, total
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

MAGIC = (<char*>magic)[:8]
LAYOUT_VERSION = layout_version
BYTE_ORDER = byte_order_mark
CAPACITY_LIMIT = capacity_limit
SLOT_BYTES_LIMIT = slot_bytes_limit
SEGMENT_BYTES_LIMIT = segment_bytes_limit
PARTICIPANTS_LIMIT = participants_limit
PRODUCERS_LIMIT = producers_limit
ITEM_TEXT_LIMIT = item_text_limit
ITEM_BYTES_LIMIT = item_bytes_limit
HEADER_BYTES = sizeof(SegmentHeader)
CONTROL_BYTES = sizeof(BoundedControl)
PARTICIPANT_BYTES = sizeof(ParticipantLine)
PRODUCER_BYTES = sizeof(ProducerLine)

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

# name -> (offset, bytes)
FIELDS = {field_rows[i].name.decode(): (field_rows[i].offset, field_rows[i].bytes) for i in range(field_count)}
EVENTS_FIELDS = FIELDS | {
    shape_rows[i].name.decode(): (shape_rows[i].offset, shape_rows[i].bytes) for i in range(shape_count)
}

GROWING_FIELDS = FIELDS | {
    growing_rows[i].name.decode(): (growing_rows[i].offset, growing_rows[i].bytes) for i in range(growing_count)
}


def bounded_layout(capacity, slot_bytes, participants, producers, item_text_bytes, varying):
    """Where everything lies in a bounded segment; arguments are within the limits."""
    cdef BoundedOffsets at = bounded_offsets(
        capacity, slot_bytes, participants, producers, item_text_bytes, varying
    )
    return {
        "item_text_offset": at.item_text,
        "control_offset": at.control,
        "participants_offset": at.participants,
        "producers_offset": at.producers,
        "generations_offset": at.generations,
        "lengths_offset": at.lengths,
        "payload_offset": at.payload,
        "total_bytes": at.total,
    }


def events_layout(block_count, block_bytes, chunk_lines, participants, readers, producers, item_text_bytes):
    """Where everything lies in an events segment; arguments are within the limits."""
    cdef EventsOffsets at = events_offsets(
        block_count, block_bytes, chunk_lines, participants, readers, producers, item_text_bytes
    )
    return {
        "item_text_offset": at.item_text,
        "control_offset": at.control,
        "participants_offset": at.participants,
        "readers_offset": at.readers,
        "producers_offset": at.producers,
        "chunks_offset": at.chunks,
        "blocks_offset": at.blocks,
        "arena_offset": at.arena,
        "total_bytes": at.total,
        "generations_offset": 0,
        "lengths_offset": 0,
        "payload_offset": 0,
        "padding": 0,
    }


def overwriting_layout(messages, words, participants, item_text_bytes):
    """Where everything lies in an overwriting segment; arguments are within the limits."""
    cdef OverwritingOffsets at = overwriting_offsets(messages, words, participants, item_text_bytes)
    return {
        "item_text_offset": at.item_text,
        "control_offset": at.control,
        "participants_offset": at.participants,
        "total_bytes": at.total,
        "payload_offset": sizeof(PublishedHeader),
        "producers_offset": 0,
        "generations_offset": 0,
        "lengths_offset": 0,
    }


def overwriting_own_offset(messages, words):
    """Where queueduct's own part of an overwriting segment begins: the page after the last message."""
    return overwriting_offsets(messages, words, 0, 0).own


def overwriting_shelf_offset(messages, words, participants, item_text_bytes):
    """Where the data of leased messages lies: the pages from here on have no memory before the first lease."""
    return overwriting_offsets(messages, words, participants, item_text_bytes).shelf_data


def growing_layout(first_bytes, steps, slot_bytes, participants, producers, item_text_bytes, varying):
    """Where everything lies in a growing segment; arguments are within the limits."""
    cdef GrowingOffsets at = growing_offsets(
        first_bytes, steps, slot_bytes, participants, producers, item_text_bytes, varying
    )
    return {
        "item_text_offset": at.item_text,
        "control_offset": at.control,
        "levels_offset": at.levels,
        "participants_offset": at.participants,
        "producers_offset": at.producers,
        "regions_offset": at.regions,
        "total_bytes": at.total,
        "generations_offset": 0,
        "lengths_offset": 0,
        "payload_offset": 0,
        "padding": 0,
    }


def growing_capacity(first_bytes, level, slot_bytes):
    """Slots of a level."""
    return level_capacity(first_bytes, level, slot_bytes)


def growing_region_end(begin, capacity, slot_bytes, varying):
    """Where the region of a level of so many slots ends."""
    return region_offsets(begin, capacity, slot_bytes, varying).end
