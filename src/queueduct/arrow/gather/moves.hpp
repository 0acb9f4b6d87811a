// Values of records to columns: copies of fields, and words that are split into the fields they have.
//
// Another process may overwrite the records meanwhile. So nothing that is read decides about memory.
#pragma once

#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace queueduct::gather {

template <int width>
[[gnu::always_inline]] inline void copy_field(const char* from, int64_t stride, int64_t rows, char* to) {
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

// A width above 8, in pieces of 16 bytes; the last piece may overlap the one before.
[[gnu::always_inline]] inline void copy_long(const char* from, int64_t width, char* to) {
    struct Piece {
        uint64_t words[2];
    } piece;
    if (width < 16) {
        uint64_t first, last;
        std::memcpy(&first, from, 8);
        std::memcpy(&last, from + width - 8, 8);
        std::memcpy(to, &first, 8);
        std::memcpy(to + width - 8, &last, 8);
        return;
    }
    for (int64_t at = 0; at < width - 16; at += 16) {
        std::memcpy(&piece, from + at, 16);
        std::memcpy(to + at, &piece, 16);
    }
    std::memcpy(&piece, from + width - 16, 16);
    std::memcpy(to + width - 16, &piece, 16);
}

inline constexpr int64_t long_width = 512;  // from here on a call of memcpy is faster

[[gnu::always_inline]] inline void copy_fields(
    const char* from, int64_t stride, int64_t width, int64_t rows, char* to) {
    if (stride == width) {
        std::memcpy(to, from, rows * width);
        return;
    }
    switch (width) {
        case 1: return copy_field<1>(from, stride, rows, to);
        case 2: return copy_field<2>(from, stride, rows, to);
        case 4: return copy_field<4>(from, stride, rows, to);
        case 8: return copy_field<8>(from, stride, rows, to);
        default: break;
    }
    const bool in_pieces = width > 8 && width < long_width;
    for (int64_t row = 0; row < rows; ++row, from += stride, to += width) {
        if (in_pieces) {
            copy_long(from, width, to);
        } else {
            std::memcpy(to, from, width);
        }
    }
}

// Fields of at most 8 bytes as words of 8, with zeros behind.
[[gnu::always_inline]] inline void widen(const char* from, int64_t stride, int64_t width, int64_t rows, char* to) {
    for (int64_t row = 0; row < rows; ++row, from += stride, to += 8) {
        uint64_t word = 0;
        for (int64_t byte = 0; byte < width; ++byte) {
            word |= static_cast<uint64_t>(static_cast<unsigned char>(from[byte])) << (8 * byte);
        }
        std::memcpy(to, &word, 8);
    }
}

// Two neighbouring words of 8 bytes.
[[gnu::always_inline]] inline void copy_pairs(
    const char* from, int64_t stride, int64_t rows, char* first, char* second) {
    for (int64_t row = 0; row < rows; ++row, from += stride) {
        uint64_t pair[2];
        std::memcpy(pair, from, 16);
        std::memcpy(first + 8 * row, pair, 8);
        std::memcpy(second + 8 * row, pair + 1, 8);
    }
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] inline void copy_pairs_avx2(
    const char* from, int64_t stride, int64_t rows, char* first, char* second) {
    const auto load = [](const char* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); };
    int64_t row = 0;
    for (; row + 4 <= rows; row += 4, from += 4 * stride) {
        const __m256i even = _mm256_inserti128_si256(_mm256_castsi128_si256(load(from)), load(from + 2 * stride), 1);
        const __m256i odd =
            _mm256_inserti128_si256(_mm256_castsi128_si256(load(from + stride)), load(from + 3 * stride), 1);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(first + 8 * row), _mm256_unpacklo_epi64(even, odd));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(second + 8 * row), _mm256_unpackhi_epi64(even, odd));
    }
    copy_pairs(from, stride, rows - row, first + 8 * row, second + 8 * row);
}
#endif

// Words to their lower and their upper halves. Either may be nowhere.
template <class Word, class Half>
[[gnu::always_inline]] inline void split_words(const char* from, int64_t rows, char* lower, char* upper) {
    constexpr int half_bits = 8 * sizeof(Half);
    const Word* __restrict words = reinterpret_cast<const Word*>(from);
    Half* __restrict low = reinterpret_cast<Half*>(lower);
    Half* __restrict high = reinterpret_cast<Half*>(upper);
    if (low == nullptr) {
        for (int64_t row = 0; row < rows; ++row) high[row] = static_cast<Half>(words[row] >> half_bits);
    } else if (high == nullptr) {
        for (int64_t row = 0; row < rows; ++row) low[row] = static_cast<Half>(words[row]);
    } else {
        for (int64_t row = 0; row < rows; ++row) {
            low[row] = static_cast<Half>(words[row]);
            high[row] = static_cast<Half>(words[row] >> half_bits);
        }
    }
}

[[gnu::always_inline]] inline void split(const char* from, int64_t width, int64_t rows, char* lower, char* upper) {
    switch (width) {
        case 8: return split_words<uint64_t, uint32_t>(from, rows, lower, upper);
        case 4: return split_words<uint32_t, uint16_t>(from, rows, lower, upper);
        default: return split_words<uint16_t, uint8_t>(from, rows, lower, upper);
    }
}

// Numbers of the other byte order, in place.
[[gnu::always_inline]] inline void swap_bytes(char* values, int64_t width, int64_t count) {
    if (width == 8) {
        uint64_t* words = reinterpret_cast<uint64_t*>(values);
        for (int64_t i = 0; i < count; ++i) words[i] = __builtin_bswap64(words[i]);
    } else if (width == 4) {
        uint32_t* words = reinterpret_cast<uint32_t*>(values);
        for (int64_t i = 0; i < count; ++i) words[i] = __builtin_bswap32(words[i]);
    } else {
        uint16_t* words = reinterpret_cast<uint16_t*>(values);
        for (int64_t i = 0; i < count; ++i) words[i] = __builtin_bswap16(words[i]);
    }
}

}  // namespace queueduct::gather
