# cython: language_level=3, binding=False, freethreading_compatible=True
"""What layout.hpp says, for segment.py: the offsets exist once, in the header."""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from *:
    """
    #include <cstddef>
    #include "bounded.hpp"

    #define PENSTOCK_FIELD(name) \\
        {#name, offsetof(penstock::SegmentHeader, name), sizeof(penstock::SegmentHeader::name)}
    struct FieldRow { const char* name; size_t offset; size_t bytes; };
    static const FieldRow field_rows[] = {
        PENSTOCK_FIELD(magic), PENSTOCK_FIELD(layout_version), PENSTOCK_FIELD(byte_order),
        PENSTOCK_FIELD(kind), PENSTOCK_FIELD(item_kind), PENSTOCK_FIELD(total_bytes),
        PENSTOCK_FIELD(capacity), PENSTOCK_FIELD(slot_bytes), PENSTOCK_FIELD(participants),
        PENSTOCK_FIELD(item_text_bytes), PENSTOCK_FIELD(item_text_offset),
        PENSTOCK_FIELD(control_offset), PENSTOCK_FIELD(participants_offset),
        PENSTOCK_FIELD(generations_offset), PENSTOCK_FIELD(lengths_offset),
        PENSTOCK_FIELD(payload_offset), PENSTOCK_FIELD(segment_id), PENSTOCK_FIELD(boot_id),
        PENSTOCK_FIELD(created_ns), PENSTOCK_FIELD(creator_pid), PENSTOCK_FIELD(checksum),
        PENSTOCK_FIELD(producers_offset), PENSTOCK_FIELD(producers), PENSTOCK_FIELD(reserved),
    };
    static const size_t field_count = sizeof field_rows / sizeof field_rows[0];
    """
    struct FieldRow:
        const char* name
        size_t offset
        size_t bytes
    const FieldRow* field_rows
    const size_t field_count

cdef extern from "bounded.hpp" namespace "penstock" nogil:
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

# name -> (offset, bytes)
FIELDS = {field_rows[i].name.decode(): (field_rows[i].offset, field_rows[i].bytes) for i in range(field_count)}


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
