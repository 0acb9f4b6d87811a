// Texts of fixed width to Arrow's form: all of them end to end, and where each begins.
//
// The source may be shared memory that another process overwrites meanwhile: so every byte is read once, and what is
// read decides nothing about memory but a length that is at most the width. The caller gives room for all texts at
// their full width, and 8 bytes more.
#pragma once

#include <cstdint>
#include <cstring>

namespace queueduct {

inline constexpr uint64_t high_bits = 0x8080808080808080;

struct Packed {
    int64_t end;      // bytes that are written
    int64_t bad_row;  // the first row with a code point that is none; -1 if there is none
    bool is_ascii;
};

// Width of at most 8 bytes: a text fits a register.
template <int width>
[[gnu::always_inline]] inline Packed pack_in_register(
    const char* from, int64_t stride, int64_t rows, int32_t* offsets, char* to, int64_t at) {
    uint64_t all = 0;
    for (int64_t row = 0; row < rows; ++row, from += stride) {
        uint64_t text = 0;
        std::memcpy(&text, from, width);
        std::memcpy(to + at, &text, 8);
        at += text == 0 ? 0 : 8 - (__builtin_clzll(text) >> 3);
        all |= text;
        offsets[row + 1] = static_cast<int32_t>(at);
    }
    return {at, -1, (all & high_bits) == 0};
}

#if defined(__x86_64__)
template <int width>
[[gnu::target("lzcnt")]] Packed pack_short_with_lzcnt(
    const char* from, int64_t stride, int64_t rows, int32_t* offsets, char* to, int64_t at) {
    return pack_in_register<width>(from, stride, rows, offsets, to, at);
}
#endif

template <int width>
Packed pack_short(const char* from, int64_t stride, int64_t rows, int32_t* offsets, char* to, int64_t at) {
#if defined(__x86_64__)  // without it, counting the zeros takes AMD's processors as long as everything else
    if (__builtin_cpu_supports("lzcnt")) return pack_short_with_lzcnt<width>(from, stride, rows, offsets, to, at);
#endif
    return pack_in_register<width>(from, stride, rows, offsets, to, at);
}

inline Packed pack_long(
    const char* from, int64_t stride, int64_t width, int64_t rows, int32_t* offsets, char* to, int64_t at) {
    uint64_t all = 0;
    for (int64_t row = 0; row < rows; ++row, from += stride) {
        char* text = to + at;
        std::memcpy(text, from, width);
        int64_t length = width;
        while (length > 0 && text[length - 1] == 0) --length;
        int64_t i = 0;
        for (; i + 8 <= length; i += 8) {
            uint64_t word;
            std::memcpy(&word, text + i, 8);
            all |= word;
        }
        for (; i < length; ++i) all |= static_cast<uint8_t>(text[i]);
        at += length;
        offsets[row + 1] = static_cast<int32_t>(at);
    }
    return {at, -1, (all & high_bits) == 0};
}

// Bytes (numpy's S): offsets[0] is set already.
inline Packed pack_bytes(
    const char* from, int64_t stride, int64_t width, int64_t rows, int32_t* offsets, char* to, int64_t at) {
    switch (width) {
        case 1: return pack_short<1>(from, stride, rows, offsets, to, at);
        case 2: return pack_short<2>(from, stride, rows, offsets, to, at);
        case 3: return pack_short<3>(from, stride, rows, offsets, to, at);
        case 4: return pack_short<4>(from, stride, rows, offsets, to, at);
        case 5: return pack_short<5>(from, stride, rows, offsets, to, at);
        case 6: return pack_short<6>(from, stride, rows, offsets, to, at);
        case 7: return pack_short<7>(from, stride, rows, offsets, to, at);
        case 8: return pack_short<8>(from, stride, rows, offsets, to, at);
        default: return pack_long(from, stride, width, rows, offsets, to, at);
    }
}

// Code points (numpy's U) as UTF-8, at most 4 bytes each. The NULs at the end of a text are left out.
inline Packed pack_text(
    const char* from, int64_t stride, int64_t width, int64_t rows, int32_t* offsets, char* to, int64_t at) {
    Packed packed{at, -1, true};
    for (int64_t row = 0; row < rows; ++row, from += stride) {
        int64_t end = at;  // after the last point that is no NUL
        for (int64_t i = 0; i < width; ++i) {
            uint32_t point;
            std::memcpy(&point, from + 4 * i, 4);
            if (point < 0x80) {
                to[at++] = static_cast<char>(point);
            } else if (point < 0x800) {
                to[at++] = static_cast<char>(0xC0 | point >> 6);
                to[at++] = static_cast<char>(0x80 | (point & 0x3F));
            } else if (point < 0x10000) {
                if (point >= 0xD800 && point < 0xE000 && packed.bad_row < 0) packed.bad_row = row;
                to[at++] = static_cast<char>(0xE0 | point >> 12);
                to[at++] = static_cast<char>(0x80 | (point >> 6 & 0x3F));
                to[at++] = static_cast<char>(0x80 | (point & 0x3F));
            } else {
                if (point > 0x10FFFF && packed.bad_row < 0) packed.bad_row = row;
                to[at++] = static_cast<char>(0xF0 | (point >> 18 & 0x07));
                to[at++] = static_cast<char>(0x80 | (point >> 12 & 0x3F));
                to[at++] = static_cast<char>(0x80 | (point >> 6 & 0x3F));
                to[at++] = static_cast<char>(0x80 | (point & 0x3F));
            }
            if (point != 0) end = at;
            packed.is_ascii &= point < 0x80;
        }
        at = end;
        offsets[row + 1] = static_cast<int32_t>(at);
    }
    packed.end = at;
    return packed;
}

}  // namespace queueduct
