// Texts of fixed width to Arrow's form: all of them end to end, and where each begins.
//
// The source may be shared memory that another process overwrites meanwhile: what is read decides nothing about memory
// but a length that is at most the width. The caller gives room for all texts at their full width, and `spare` more.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace queueduct::gather {

inline constexpr int64_t spare = 64;
inline constexpr uint64_t high_bits = 0x8080808080808080;

struct Packed {
    int64_t end;      // bytes that are written
    int64_t bad_row;  // the first row with a code point that is none; -1 if there is none
    bool is_ascii;
};

[[gnu::always_inline]] inline uint64_t word_at(const char* from) {
    uint64_t word;
    std::memcpy(&word, from, 8);
    return word;
}

[[gnu::always_inline]] inline int64_t length_of(uint64_t word) {
    return word == 0 ? 0 : 8 - (__builtin_clzll(word) >> 3);
}

// Texts of at most 8 bytes, each in a word of 8 of which the first `width` count.
[[gnu::always_inline]] inline Packed pack_words(
    const char* from, int64_t width, int64_t rows, int32_t* offsets, char* to, int64_t at) {
    const uint64_t mask = ~uint64_t{0} >> (64 - 8 * width);
    uint64_t all = 0;
    for (int64_t row = 0; row < rows; ++row, from += 8) {
        const uint64_t text = word_at(from) & mask;
        std::memcpy(to + at, &text, 8);
        at += length_of(text);
        all |= text;
        offsets[row + 1] = static_cast<int32_t>(at);
    }
    return {at, -1, (all & high_bits) == 0};
}

// Bytes (numpy's S) of any width.
[[gnu::always_inline]] inline Packed pack_bytes(
    const char* from, int64_t stride, int64_t width, int64_t rows, int32_t* offsets, char* to, int64_t at) {
    const int64_t whole = width & ~int64_t{7};  // bytes in whole words
    uint64_t all = 0;
    for (int64_t row = 0; row < rows; ++row, from += stride) {
        int64_t length = 0;
        for (int64_t i = 0; i < whole; i += 8) {
            const uint64_t word = word_at(from + i);
            std::memcpy(to + at + i, &word, 8);
            all |= word;
            if (word != 0) length = i + length_of(word);
        }
        if (whole != width) {
            uint64_t word = 0;
            for (int64_t i = whole; i < width; ++i) {
                word |= static_cast<uint64_t>(static_cast<unsigned char>(from[i])) << (8 * (i - whole));
            }
            std::memcpy(to + at + whole, &word, 8);
            all |= word;
            if (word != 0) length = whole + length_of(word);
        }
        at += length;
        offsets[row + 1] = static_cast<int32_t>(at);
    }
    return {at, -1, (all & high_bits) == 0};
}

// One text of code points (numpy's U) as UTF-8, at most 4 bytes each, that begins at `at`. Returns where it
// ends, without the NULs there.
inline int64_t encode(const char* from, int64_t width, int64_t row, int64_t at, char* to, Packed& packed) {
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
    return end;
}

// Code points (numpy's U), `width` of them in each text.
[[gnu::always_inline]] inline Packed pack_points(
    const char* from, int64_t stride, int64_t width, int64_t rows, int32_t* offsets, char* to, int64_t at) {
    Packed packed{at, -1, true};
    for (int64_t row = 0; row < rows; ++row, from += stride) {
        uint32_t all = 0;
        int64_t length = 0;
        for (int64_t i = 0; i < width; ++i) {  // as if all were ASCII
            uint32_t point;
            std::memcpy(&point, from + 4 * i, 4);
            all |= point;
            to[at + i] = static_cast<char>(point);
            if (point != 0) length = i + 1;
        }
        at = all < 0x80 ? at + length : encode(from, width, row, at, to, packed);
        offsets[row + 1] = static_cast<int32_t>(at);
    }
    packed.end = at;
    return packed;
}

#if defined(__x86_64__)
#define QUEUEDUCT_AVX512 "avx512f,avx512bw,avx512vl,avx512dq,avx512cd,avx512vbmi,avx512vbmi2,avx2,bmi,bmi2,lzcnt,popcnt"

// Eight texts at a time: the bytes before each one's last NULs are moved together.
[[gnu::target(QUEUEDUCT_AVX512)]] inline Packed pack_words_avx512(
    const char* from, int64_t width, int64_t rows, int32_t* offsets, char* to, int64_t at) {
    const __m512i mask = _mm512_set1_epi64(static_cast<long long>(~uint64_t{0} >> (64 - 8 * width)));
    __m512i all = _mm512_setzero_si512();
    int64_t row = 0;
    for (; row + 8 <= rows; row += 8) {
        const __m512i texts = _mm512_and_si512(_mm512_loadu_si512(from + 8 * row), mask);
        all = _mm512_or_si512(all, texts);
        __m512i kept = _mm512_or_si512(texts, _mm512_srli_epi64(texts, 8));  // a byte and all that follow it
        kept = _mm512_or_si512(kept, _mm512_srli_epi64(kept, 16));
        kept = _mm512_or_si512(kept, _mm512_srli_epi64(kept, 32));
        const __m512i lengths = _mm512_sub_epi64(
            _mm512_set1_epi64(8), _mm512_srli_epi64(_mm512_lzcnt_epi64(texts), 3));
        const uint64_t ends = static_cast<uint64_t>(_mm_cvtsi128_si64(_mm512_cvtepi64_epi8(lengths))) *
                              0x0101010101010101;  // each byte the sum of those up to it
        const __m256i wide = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(ends)));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(offsets + row + 1),
                            _mm256_add_epi32(wide, _mm256_set1_epi32(static_cast<int>(at))));
        _mm512_storeu_si512(to + at, _mm512_maskz_compress_epi8(_mm512_test_epi8_mask(kept, kept), texts));
        at += static_cast<int64_t>(ends >> 56);
    }
    const bool is_ascii = _mm512_test_epi64_mask(all, _mm512_set1_epi64(static_cast<long long>(high_bits))) == 0;
    const Packed rest = pack_words(from + 8 * row, width, rows - row, offsets + row, to, at);
    return {rest.end, -1, is_ascii && rest.is_ascii};
}

// Rows from which a load of 64 bytes, `at` bytes behind where a text begins, stays before `end`.
inline int64_t open_rows(const char* from, int64_t stride, int64_t rows, int64_t at, const char* end) {
    const int64_t room = end - from - at - 64;
    return room < 0 ? 0 : stride <= 0 ? rows : std::min(rows, room / stride + 1);
}

// Where the last bit that is set ends, for bits from `at` on; 0 if none is set. A branch would often be guessed wrong.
[[gnu::target(QUEUEDUCT_AVX512), gnu::always_inline]] inline int64_t end_of_set(uint64_t bits, int64_t at) {
    return (at + 64 - static_cast<int64_t>(_lzcnt_u64(bits))) & -static_cast<int64_t>(bits != 0);
}

// The last block of a text. A load that leaves bytes out takes many times as long where the memory is
// another process's.
template <bool is_open>
[[gnu::target(QUEUEDUCT_AVX512), gnu::always_inline]] inline __m512i load_block(const char* from, __mmask64 there) {
    if constexpr (!is_open) return _mm512_maskz_loadu_epi8(there, from);
    return _mm512_and_si512(_mm512_loadu_si512(from), _mm512_movm_epi8(there));
}

template <bool is_open>
[[gnu::target(QUEUEDUCT_AVX512)]] inline Packed pack_bytes_avx512(
    const char* from, int64_t stride, int64_t width, int64_t rows, int32_t* offsets, char* to, int64_t at) {
    const int64_t whole = (width - 1) & ~int64_t{63};  // bytes in blocks before the last
    const __mmask64 last = ~uint64_t{0} >> (64 - (width - whole));
    __m512i all = _mm512_setzero_si512();
    for (int64_t row = 0; row < rows; ++row, from += stride) {
        int64_t length = 0;
        for (int64_t i = 0; i < whole; i += 64) {
            const __m512i block = _mm512_loadu_si512(from + i);
            _mm512_storeu_si512(to + at + i, block);
            all = _mm512_or_si512(all, block);
            length = std::max(length, end_of_set(_mm512_test_epi8_mask(block, block), i));
        }
        const __m512i block = load_block<is_open>(from + whole, last);
        _mm512_storeu_si512(to + at + whole, block);
        all = _mm512_or_si512(all, block);
        at += std::max(length, end_of_set(_mm512_test_epi8_mask(block, block), whole));
        offsets[row + 1] = static_cast<int32_t>(at);
    }
    return {at, -1, _mm512_movepi8_mask(all) == 0};
}

inline constexpr int64_t short_width = 32;

// As above for at most `short_width` bytes: fewer loads and stores cross a cache line than with 64 bytes.
template <bool is_open>
[[gnu::target(QUEUEDUCT_AVX512)]] inline Packed pack_short_avx512(
    const char* from, int64_t stride, int64_t width, int64_t rows, int32_t* offsets, char* to, int64_t at) {
    const __mmask32 there = ~uint32_t{0} >> (short_width - width);
    const __m256i kept = _mm256_movm_epi8(there);
    __m256i all = _mm256_setzero_si256();
    for (int64_t row = 0; row < rows; ++row, from += stride) {
        __m256i text;
        if constexpr (is_open) {
            text = _mm256_and_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)), kept);
        } else {
            text = _mm256_maskz_loadu_epi8(there, from);
        }
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + at), text);
        all = _mm256_or_si256(all, text);
        at += short_width - static_cast<int64_t>(_lzcnt_u32(_mm256_test_epi8_mask(text, text)));
        offsets[row + 1] = static_cast<int32_t>(at);
    }
    return {at, -1, _mm256_movepi8_mask(all) == 0};
}

template <bool is_open>
[[gnu::target(QUEUEDUCT_AVX512)]] inline Packed pack_points_avx512(
    const char* from, int64_t stride, int64_t width, int64_t rows, int32_t* offsets, char* to, int64_t at) {
    Packed packed{at, -1, true};
    const __m512i beyond_ascii = _mm512_set1_epi32(~0x7F);
    const int64_t whole = (width - 1) & ~int64_t{15};
    const __mmask64 last = ~uint64_t{0} >> (64 - 4 * (width - whole));
    for (int64_t row = 0; row < rows; ++row, from += stride) {
        __m512i all = _mm512_setzero_si512();
        int64_t length = 0;
        for (int64_t i = 0; i < width; i += 16) {  // as if all were ASCII
            const __m512i points =
                i < whole ? _mm512_loadu_si512(from + 4 * i) : load_block<is_open>(from + 4 * i, last);
            all = _mm512_or_si512(all, points);
            _mm_storeu_si128(reinterpret_cast<__m128i*>(to + at + i), _mm512_cvtepi32_epi8(points));
            length = std::max(length, end_of_set(_mm512_test_epi32_mask(points, points), i));
        }
        const bool is_ascii = _mm512_test_epi32_mask(all, beyond_ascii) == 0;
        at = is_ascii ? at + length : encode(from, width, row, at, to, packed);
        offsets[row + 1] = static_cast<int32_t>(at);
    }
    packed.end = at;
    return packed;
}

// Texts that are read in blocks of 64 bytes: nothing at `end` or behind it is read.
template <bool is_points>
[[gnu::target(QUEUEDUCT_AVX512)]] inline Packed pack_blocks_avx512(
    const char* from, int64_t stride, int64_t width, int64_t rows, int32_t* offsets, char* to, int64_t at,
    const char* end) {
    const int64_t open = open_rows(from, stride, rows, (width - 1) & ~int64_t{63}, end);
    const char* closed = from + open * stride;
    Packed first, rest;
    if constexpr (is_points) {
        first = pack_points_avx512<true>(from, stride, width / 4, open, offsets, to, at);
        rest = pack_points_avx512<false>(closed, stride, width / 4, rows - open, offsets + open, to, first.end);
    } else {
        const auto pack_open = width <= short_width ? pack_short_avx512<true> : pack_bytes_avx512<true>;
        const auto pack_closed = width <= short_width ? pack_short_avx512<false> : pack_bytes_avx512<false>;
        first = pack_open(from, stride, width, open, offsets, to, at);
        rest = pack_closed(closed, stride, width, rows - open, offsets + open, to, first.end);
    }
    const int64_t bad_row = first.bad_row >= 0 ? first.bad_row : rest.bad_row >= 0 ? open + rest.bad_row : -1;
    return {rest.end, bad_row, first.is_ascii && rest.is_ascii};
}
#endif

// Returns the first row of which the text is no UTF-8, or -1.
inline int64_t first_bad_text(const int32_t* offsets, const char* data, int64_t rows) {
    for (int64_t row = 0; row < rows; ++row) {
        const unsigned char* at = reinterpret_cast<const unsigned char*>(data) + offsets[row];
        const unsigned char* const end = reinterpret_cast<const unsigned char*>(data) + offsets[row + 1];
        while (at < end) {
            if (end - at >= 8 && (word_at(reinterpret_cast<const char*>(at)) & high_bits) == 0) {
                at += 8;
                continue;
            }
            const unsigned first = *at;
            if (first < 0x80) {
                ++at;
                continue;
            }
            const int more = first >= 0xC2 && first < 0xE0 ? 1 : first >= 0xE0 && first < 0xF0 ? 2 : 3;
            if (first < 0xC2 || first > 0xF4 || end - at <= more) return row;
            const unsigned second = at[1];  // it tells what is too long, a surrogate or beyond Unicode
            const unsigned least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
            const unsigned most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
            if (second < least || second > most) return row;
            for (int i = 2; i <= more; ++i) {
                if ((at[i] & 0xC0) != 0x80) return row;
            }
            at += more + 1;
        }
    }
    return -1;
}

}  // namespace queueduct::gather
