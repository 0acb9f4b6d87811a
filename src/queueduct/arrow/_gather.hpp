// Fields of records to columns: a block of records at a time, so it stays in the cache while all its fields are read.
//
// As in _texts.hpp, another process may overwrite the records meanwhile: every byte is read once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "arrow/_texts.hpp"

namespace queueduct {

struct GatheredField {
    enum class Kind { copied, bytes, text };
    Kind kind;
    int64_t offset;    // in the record
    int64_t width;     // bytes in the record
    char* to;          // the column: of texts, all of them end to end
    int32_t* offsets;  // of texts: where each begins
    Packed packed;     // of texts: how far they are
};

template <int width>
void copy_field(const char* from, int64_t stride, int64_t rows, char* to) {
    int64_t row = 0;
    for (; row + 4 <= rows; row += 4) {
        char four[4 * width];  // in registers
        std::memcpy(four, from, width);
        std::memcpy(four + width, from + stride, width);
        std::memcpy(four + 2 * width, from + 2 * stride, width);
        std::memcpy(four + 3 * width, from + 3 * stride, width);
        std::memcpy(to, four, 4 * width);
        from += 4 * stride;
        to += 4 * width;
    }
    for (; row < rows; ++row, from += stride, to += width) std::memcpy(to, from, width);
}

inline void copy_field(const char* from, int64_t stride, int64_t width, int64_t rows, char* to) {
    switch (width) {
        case 1: return copy_field<1>(from, stride, rows, to);
        case 2: return copy_field<2>(from, stride, rows, to);
        case 4: return copy_field<4>(from, stride, rows, to);
        case 8: return copy_field<8>(from, stride, rows, to);
        default:
            for (int64_t row = 0; row < rows; ++row) std::memcpy(to + row * width, from + row * stride, width);
    }
}

inline void gather_block(GatheredField& field, const char* from, int64_t stride, int64_t rows, int64_t row) {
    from += field.offset;
    if (field.kind == GatheredField::Kind::copied) {
        if (stride == field.width) {
            std::memcpy(field.to + row * stride, from, rows * stride);
        } else {
            copy_field(from, stride, field.width, rows, field.to + row * field.width);
        }
        return;
    }
    int32_t* offsets = field.offsets + row;
    Packed packed = field.kind == GatheredField::Kind::bytes
                        ? pack_bytes(from, stride, field.width, rows, offsets, field.to, field.packed.end)
                        : pack_text(from, stride, field.width / 4, rows, offsets, field.to, field.packed.end);
    field.packed.end = packed.end;
    field.packed.is_ascii = field.packed.is_ascii && packed.is_ascii;
    if (packed.bad_row >= 0 && field.packed.bad_row < 0) field.packed.bad_row = row + packed.bad_row;
}

// Appends records after `row` earlier ones.
inline void gather(
    GatheredField* fields, int64_t count, const char* from, int64_t stride, int64_t rows, int64_t row) {
    constexpr int64_t block_bytes = 16 << 10;
    const int64_t block = count == 1 ? rows : std::max<int64_t>(1, block_bytes / std::max<int64_t>(1, stride));
    for (int64_t done = 0; done < rows; done += block) {
        for (int64_t i = 0; i < count; ++i) {
            gather_block(fields[i], from + done * stride, stride, std::min(block, rows - done), row + done);
        }
    }
}

}  // namespace queueduct
