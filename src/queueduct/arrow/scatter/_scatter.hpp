// Columns to fields of records: a block of records at a time, so it stays in the cache while all its
// fields are written.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace queueduct {

struct ScatteredField {
    enum class Kind { copied, chosen, bytes, text };
    Kind kind;
    int64_t offset;        // in the record
    int64_t width;         // bytes in the record
    const char* from;      // the values, or those to choose from; of texts, all of them end to end
    int64_t size;          // bytes of these
    const int32_t* places; // of texts: where each begins; of chosen values: which one each row has
    int64_t bad_row;       // the first row whose value does not fit the field, or is not all there; -1 if there is none
};

template <int width>
void spread_field(const char* from, int64_t rows, char* to, int64_t stride) {
    for (int64_t row = 0; row < rows; ++row, from += width, to += stride) std::memcpy(to, from, width);
}

inline void spread_field(const char* from, int64_t width, int64_t rows, char* to, int64_t stride) {
    switch (width) {
        case 1: return spread_field<1>(from, rows, to, stride);
        case 2: return spread_field<2>(from, rows, to, stride);
        case 4: return spread_field<4>(from, rows, to, stride);
        case 8: return spread_field<8>(from, rows, to, stride);
        default:
            for (int64_t row = 0; row < rows; ++row) std::memcpy(to + row * stride, from + row * width, width);
    }
}

// These return the first row that does not fit, or -1.

inline int64_t scatter_chosen(const ScatteredField& field, int64_t row, int64_t rows, char* to, int64_t stride) {
    const int64_t width = field.width;
    const int64_t count = width == 0 ? 0 : field.size / width;
    for (const int64_t end = row + rows; row < end; ++row, to += stride) {
        const int64_t chosen = field.places[row];
        if (chosen < 0 || chosen >= count) return row;
        if (width == 8) {
            std::memcpy(to, field.from + chosen * 8, 8);
        } else {
            std::memcpy(to, field.from + chosen * width, width);
        }
    }
    return -1;
}

// Bytes (numpy's S), with NULs behind each; so a value may not end with one.
inline int64_t scatter_bytes(const ScatteredField& field, int64_t row, int64_t rows, char* to, int64_t stride) {
    for (const int64_t end = row + rows; row < end; ++row, to += stride) {
        const int64_t begin = field.places[row];
        const int64_t length = field.places[row + 1] - begin;
        if (begin < 0 || length < 0 || length > field.width || length > field.size - begin) return row;
        if (field.width == 8 && field.size - begin >= 8) {  // in a register
            uint64_t text;
            std::memcpy(&text, field.from + begin, 8);
            text = length == 0 ? 0 : text & ~uint64_t{0} >> (64 - 8 * length);
            if (length > 0 && text >> (8 * length - 8) == 0) return row;
            std::memcpy(to, &text, 8);
        } else {
            std::memcpy(to, field.from + begin, length);
            std::memset(to + length, 0, field.width - length);
            if (length > 0 && to[length - 1] == 0) return row;
        }
    }
    return -1;
}

// ASCII as code points (numpy's U). Other text does not fit here: it is decoded elsewhere.
inline int64_t scatter_text(const ScatteredField& field, int64_t row, int64_t rows, char* to, int64_t stride) {
    for (const int64_t end = row + rows; row < end; ++row, to += stride) {
        const int64_t begin = field.places[row];
        const int64_t length = field.places[row + 1] - begin;
        if (begin < 0 || length < 0 || length > field.width / 4 || length > field.size - begin) return row;
        for (int64_t i = 0; i < length; ++i) {
            const uint32_t point = static_cast<uint8_t>(field.from[begin + i]);
            if (point >= 0x80) return row;
            std::memcpy(to + 4 * i, &point, 4);
        }
        std::memset(to + 4 * length, 0, field.width - 4 * length);
    }
    return -1;
}

inline void scatter_block(ScatteredField& field, int64_t row, int64_t rows, char* to, int64_t stride) {
    using Kind = ScatteredField::Kind;
    if (field.bad_row >= 0) return;
    to += field.offset;
    switch (field.kind) {
        case Kind::copied:
            if (stride == field.width) {
                std::memcpy(to, field.from + row * stride, rows * stride);
            } else {
                spread_field(field.from + row * field.width, field.width, rows, to, stride);
            }
            return;
        case Kind::chosen: field.bad_row = scatter_chosen(field, row, rows, to, stride); return;
        case Kind::bytes: field.bad_row = scatter_bytes(field, row, rows, to, stride); return;
        case Kind::text: field.bad_row = scatter_text(field, row, rows, to, stride); return;
    }
}

// Writes these fields of all the records. A field with a bad row is not written from there on.
inline void scatter(ScatteredField* fields, int64_t count, char* to, int64_t stride, int64_t rows) {
    constexpr int64_t block_bytes = 16 << 10;
    const int64_t block = count == 1 ? rows : std::max<int64_t>(1, block_bytes / std::max<int64_t>(1, stride));
    for (int64_t done = 0; done < rows; done += block) {
        for (int64_t i = 0; i < count; ++i) {
            scatter_block(fields[i], done, std::min(block, rows - done), to + done * stride, stride);
        }
    }
}

}  // namespace queueduct
