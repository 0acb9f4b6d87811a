// Values that Arrow has in another form: bools and what is missing as bits, days in 4 bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace queueduct::gather {

inline constexpr int64_t not_a_time = std::numeric_limits<int64_t>::min();

// Eight bytes to eight bits: set where a byte is not 0.
[[gnu::always_inline]] inline uint8_t eight_bits(const char* from) {
    constexpr uint64_t low = 0x7F7F7F7F7F7F7F7F;
    uint64_t word;
    std::memcpy(&word, from, 8);
    word = (((word & low) + low) | word) & ~low;  // the highest bit of a byte tells
    return static_cast<uint8_t>((word >> 7) * 0x0102040810204080 >> 56);
}

// Appends bits after the first `done` ones.
[[gnu::always_inline]] inline void pack_bits(const char* from, int64_t count, uint8_t* bits, int64_t done) {
    int64_t i = 0;
    for (; i < count && (done + i) % 8 != 0; ++i) {
        bits[(done + i) / 8] |= static_cast<uint8_t>((from[i] != 0) << (done + i) % 8);
    }
    uint8_t* to = bits + (done + i) / 8;
    for (; i + 8 <= count; i += 8) *to++ = eight_bits(from + i);
    if (i < count) {
        char rest[8] = {};
        std::memcpy(rest, from + i, count - i);
        *to = eight_bits(rest);
    }
}

#if defined(__x86_64__)
[[gnu::target("avx512f,avx512bw")]] inline void pack_bits_avx512(
    const char* from, int64_t count, uint8_t* bits, int64_t done) {
    int64_t i = 0;
    for (; done % 8 == 0 && i + 64 <= count; i += 64) {
        const __m512i bytes = _mm512_loadu_si512(from + i);
        const uint64_t word = _mm512_test_epi8_mask(bytes, bytes);
        std::memcpy(bits + (done + i) / 8, &word, 8);
    }
    pack_bits(from + i, count - i, bits, done + i);
}
#endif

// What is missing of a column: a bit is set where a value is there. There are no bits before the first is missing.
struct Missing {
    uint8_t* bits;
    bool is_any;
};

[[gnu::always_inline]] inline void note_missing(const int64_t* values, int64_t count, int64_t done, Missing& missing) {
    uint64_t any = 0;
    for (int64_t i = 0; i < count; ++i) any |= values[i] == not_a_time;
    if (any == 0 && !missing.is_any) return;
    if (!missing.is_any) {
        missing.is_any = true;
        std::memset(missing.bits, 0xFF, done / 8);
        if (done % 8 != 0) missing.bits[done / 8] = static_cast<uint8_t>((1 << done % 8) - 1);
    }
    constexpr int64_t block = 512;
    char is_there[block];
    for (int64_t i = 0; i < count; i += block) {
        const int64_t here = count - i < block ? count - i : block;
        for (int64_t j = 0; j < here; ++j) is_there[j] = values[i + j] != not_a_time;
        pack_bits(is_there, here, missing.bits, done + i);
    }
}

// The first value that has no room in its column.
struct TooFar {
    int64_t element;  // -1 if there is none
    int64_t value;
};

[[gnu::always_inline]] inline void pack_days(
    const int64_t* days, int64_t count, int64_t done, int32_t* to, TooFar& too_far) {
    uint64_t any = 0;
    for (int64_t i = 0; i < count; ++i) {
        to[i] = static_cast<int32_t>(days[i]);
        any |= (days[i] != to[i]) & (days[i] != not_a_time);
    }
    for (int64_t i = 0; any != 0 && too_far.element < 0 && i < count; ++i) {
        if (days[i] != to[i] && days[i] != not_a_time) too_far = {done + i, days[i]};
    }
}

}  // namespace queueduct::gather
