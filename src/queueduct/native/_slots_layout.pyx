# cython: language_level=3, binding=False, freethreading_compatible=True
"""What slots_layout.hpp says, for slots_geometry.py: the offsets exist once, in the header."""

from libc.stdint cimport uint32_t, uint64_t

from queueduct.native import _layout

cdef extern from *:
    """
    #include <cstddef>
    #include "slots/layout.hpp"

    #define QUEUEDUCT_SLOTS(name) \\
        {#name, sizeof(queueduct::SegmentHeader) + offsetof(queueduct::SlotsShape, name), \\
         sizeof(queueduct::SlotsShape::name)}
    struct SlotsRow { const char* name; size_t offset; size_t bytes; };
    static const SlotsRow slots_rows[] = {
        QUEUEDUCT_SLOTS(slot_stride), QUEUEDUCT_SLOTS(free_cells_offset), QUEUEDUCT_SLOTS(used_cells_offset),
        QUEUEDUCT_SLOTS(lines_offset), QUEUEDUCT_SLOTS(unused),
    };
    static const size_t slots_count = sizeof slots_rows / sizeof slots_rows[0];
    static const size_t slots_capacity_at = offsetof(queueduct::SlotsControl, capacity);
    static const size_t slots_free_at = offsetof(queueduct::SlotsControl, free);
    static const size_t slots_used_at = offsetof(queueduct::SlotsControl, used);
    static const size_t slots_tail_at = offsetof(queueduct::IndexEnds, tail);
    """
    struct SlotsRow:
        const char* name
        size_t offset
        size_t bytes
    const SlotsRow* slots_rows
    const size_t slots_count, slots_capacity_at, slots_free_at, slots_used_at, slots_tail_at

cdef extern from "slots/layout.hpp" namespace "queueduct" nogil:
    uint64_t slots_limit
    cdef cppclass SegmentHeader:
        pass
    cdef cppclass SlotsShape:
        pass
    cdef cppclass SlotsControl:
        pass
    cdef cppclass SlotLine:
        pass
    cdef cppclass CyclicIndices:
        CyclicIndices(uint64_t)
        uint64_t make(uint64_t, uint64_t) const
    cdef struct SlotsOffsets:
        uint64_t item_text, control, participants, producers, free_cells, used_cells, lines, payload, total, stride
    SlotsOffsets slots_offsets(uint64_t, uint64_t, uint32_t, uint32_t, uint32_t)

SLOTS_LIMIT = slots_limit
SLOT_LINE_BYTES = sizeof(SlotLine)
CONTROL_BYTES = sizeof(SlotsControl)
HEADER_BYTES = sizeof(SegmentHeader) + sizeof(SlotsShape)

# name -> (offset, bytes)
FIELDS = _layout.FIELDS | {
    slots_rows[i].name.decode(): (slots_rows[i].offset, slots_rows[i].bytes) for i in range(slots_count)
}

# offsets within the control block
CAPACITY_AT = slots_capacity_at
FREE_HEAD_AT = slots_free_at
FREE_TAIL_AT = slots_free_at + slots_tail_at
USED_HEAD_AT = slots_used_at
USED_TAIL_AT = slots_used_at + slots_tail_at


def slots_layout(slots, slot_bytes, participants, producers, item_text_bytes):
    """Where everything lies in a slots segment; arguments are within the limits."""
    cdef SlotsOffsets at = slots_offsets(slots, slot_bytes, participants, producers, item_text_bytes)
    return {
        "item_text_offset": at.item_text,
        "control_offset": at.control,
        "participants_offset": at.participants,
        "producers_offset": at.producers,
        "generations_offset": 0,
        "lengths_offset": 0,
        "free_cells_offset": at.free_cells,
        "used_cells_offset": at.used_cells,
        "lines_offset": at.lines,
        "payload_offset": at.payload,
        "slot_stride": at.stride,
        "total_bytes": at.total,
    }


def cyclic_index(n, cycle, index):
    """The word of (cycle, index) in an index queue of n."""
    cdef CyclicIndices* cyclic = new CyclicIndices(n)
    try:
        return cyclic.make(cycle, index)
    finally:
        del cyclic
