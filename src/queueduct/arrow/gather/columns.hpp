// Fields of records to columns: a block of records at a time, so it stays in the cache while all its fields are read.
//
// A plan has steps. Each of them reads a field, or a word of several fields, of all records of a block, and writes a
// column, or scratch memory that a later step reads. Where the processor has them, steps use its wide registers.
//
// As in texts.hpp, another process may overwrite the records meanwhile.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "arrow/gather/moves.hpp"
#include "arrow/gather/texts.hpp"
#include "arrow/gather/values.hpp"

namespace queueduct::gather {

struct Place {
    enum class Memory { nowhere, record, scratch, column };
    Memory memory = Memory::nowhere;
    int64_t at = 0;  // the offset in the record, the bytes a row before it in the scratch, or the column's number
};

struct Step {
    enum class Kind { copy, pairs, widen, split, bits, times, days, swap, words, bytes, points };
    Kind kind;
    int64_t width;  // bytes of one value
    int64_t count;  // values of one record
    Place from;
    Place to;
    Place second;  // of pairs and split
};

// What a column has, and so which memory it needs.
struct Shape {
    enum class Kind { values, bits, times, days, texts };
    Kind kind;
    int64_t width;  // bytes of one value in the record
    int64_t count;

    [[nodiscard]] int64_t value_bytes() const { return kind == Kind::days ? 4 : width; }
};

struct Column {
    char* data;
    int32_t* offsets;
    Missing missing;
    TooFar too_far;
    Packed packed;
};

struct Plan {
    int64_t itemsize = 0;
    int64_t scratch_bytes = 0;  // of one record
    std::vector<Step> steps;
    std::vector<Shape> shapes;

    [[nodiscard]] int64_t block_rows() const {
        constexpr int64_t block_bytes = 32 << 10;
        const int64_t rows = block_bytes / std::max<int64_t>(1, std::max(itemsize, scratch_bytes));
        return rows < 64 ? 8 : rows & ~int64_t{63};  // of 8, so that all that is in the scratch memory is aligned
    }
};

// Memory that columns have together. Each begins on a cache line.
class Layout {
public:
    int64_t take(int64_t bytes) {
        const int64_t at = size_;
        size_ += (bytes + 63) & ~int64_t{63};
        return at;
    }
    [[nodiscard]] int64_t size() const { return size_; }

private:
    int64_t size_ = 0;
};

inline int64_t bit_bytes(int64_t count) { return (count + 7) / 8; }

// Returns how much memory the columns of so many rows need. With `block` it also lays them out there.
inline int64_t lay_out(const Plan& plan, int64_t rows, char* block, std::vector<Column>& columns) {
    Layout layout;
    columns.resize(plan.shapes.size());
    for (size_t i = 0; i < plan.shapes.size(); ++i) {
        const Shape& shape = plan.shapes[i];
        const int64_t values = rows * shape.count;
        const bool is_text = shape.kind == Shape::Kind::texts;
        const bool may_miss = shape.kind == Shape::Kind::times || shape.kind == Shape::Kind::days;
        const int64_t bytes = shape.kind == Shape::Kind::bits ? bit_bytes(values) : values * shape.value_bytes();
        const int64_t data = layout.take(is_text ? bytes + spare : bytes);
        const int64_t offsets = is_text ? layout.take((values + 1) * 4) : 0;
        const int64_t bits = may_miss ? layout.take(bit_bytes(values)) : 0;
        if (block == nullptr) continue;
        columns[i] = {block + data, nullptr, {nullptr, false}, {-1, 0}, {0, -1, true}};
        if (is_text) {
            columns[i].offsets = reinterpret_cast<int32_t*>(block + offsets);
            columns[i].offsets[0] = 0;
        }
        if (may_miss) columns[i].missing.bits = reinterpret_cast<uint8_t*>(block + bits);
    }
    return layout.size();
}

enum class Isa { base, avx2, avx512 };

inline Isa best_isa() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512vbmi") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("lzcnt")) {
        return Isa::avx512;
    }
    if (__builtin_cpu_supports("avx2")) return Isa::avx2;
#endif
    return Isa::base;
}

// A block of records, and where its columns and its scratch memory are.
struct Block {
    const char* records;
    int64_t stride;
    int64_t rows;
    int64_t row;      // of the column: so many are before
    const char* end;  // of all records that are gathered in this call
    char* scratch;
    int64_t scratch_rows;
    int64_t scratch_bytes;
};

template <Isa isa>
[[gnu::always_inline]] inline void pack_texts(
    const Step& step, const char* from, int64_t stride, int64_t rows, int64_t row, const char* end, Column& column) {
    int32_t* offsets = column.offsets + row;
    char* const to = column.data;
    const int64_t at = column.packed.end, width = step.width;
    const bool is_points = step.kind == Step::Kind::points;
    Packed packed{};
#if defined(__x86_64__)
    if (isa == Isa::avx512 && width > 0) {
        packed = step.kind == Step::Kind::words ? pack_words_avx512(from, width, rows, offsets, to, at)
                 : is_points ? pack_blocks_avx512<true>(from, stride, width, rows, offsets, to, at, end)
                             : pack_blocks_avx512<false>(from, stride, width, rows, offsets, to, at, end);
    } else
#endif
    {
        packed = step.kind == Step::Kind::words ? pack_words(from, width, rows, offsets, to, at)
                 : is_points ? pack_points(from, stride, width / 4, rows, offsets, to, at)
                             : pack_bytes(from, stride, width, rows, offsets, to, at);
    }
    column.packed.end = packed.end;
    column.packed.is_ascii = column.packed.is_ascii && packed.is_ascii;
    if (packed.bad_row >= 0 && column.packed.bad_row < 0) column.packed.bad_row = row + packed.bad_row;
}

template <Isa isa>
[[gnu::always_inline]] inline void run_steps(const Plan& plan, Column* columns, const Block& block) {
    for (const Step& step : plan.steps) {
        const int64_t row_bytes = step.width * step.count;
        const int64_t values = block.rows * step.count;
        const int64_t done = block.row * step.count;
        const auto address_of = [&](const Place& place) -> char* {
            switch (place.memory) {
                case Place::Memory::scratch: return block.scratch + place.at * block.scratch_rows;
                case Place::Memory::column:
                    return columns[place.at].data + done * plan.shapes[place.at].value_bytes();
                default: return nullptr;
            }
        };
        const bool is_record = step.from.memory == Place::Memory::record;
        const char* from = is_record ? block.records + step.from.at : address_of(step.from);
        const int64_t stride = is_record ? block.stride : step.width;
        switch (step.kind) {
            case Step::Kind::copy: copy_fields(from, stride, row_bytes, block.rows, address_of(step.to)); break;
            case Step::Kind::pairs: {
#if defined(__x86_64__)
                if constexpr (isa != Isa::base)
                    copy_pairs_avx2(from, stride, block.rows, address_of(step.to), address_of(step.second));
                else
#endif
                    copy_pairs(from, stride, block.rows, address_of(step.to), address_of(step.second));
                break;
            }
            case Step::Kind::widen: widen(from, stride, step.width, block.rows, address_of(step.to)); break;
            case Step::Kind::split:
                split(from, step.width, block.rows, address_of(step.to), address_of(step.second));
                break;
            case Step::Kind::bits: {
                uint8_t* bits = reinterpret_cast<uint8_t*>(columns[step.to.at].data);
#if defined(__x86_64__)
                if constexpr (isa == Isa::avx512)
                    pack_bits_avx512(from, values, bits, done);
                else
#endif
                    pack_bits(from, values, bits, done);
                break;
            }
            case Step::Kind::times:
                note_missing(reinterpret_cast<const int64_t*>(from), values, done, columns[step.from.at].missing);
                break;
            case Step::Kind::days: {
                Column& column = columns[step.to.at];
                const int64_t* days = reinterpret_cast<const int64_t*>(from);
                pack_days(days, values, done, reinterpret_cast<int32_t*>(address_of(step.to)), column.too_far);
                note_missing(days, values, done, column.missing);
                break;
            }
            case Step::Kind::swap: swap_bytes(address_of(step.from), step.width, values); break;
            default: {
                const char* end = is_record ? block.end : block.scratch + block.scratch_bytes;
                pack_texts<isa>(step, from, stride, values, done, end, columns[step.to.at]);
                break;
            }
        }
    }
}

#if defined(__x86_64__)
[[gnu::target(QUEUEDUCT_AVX512)]] inline void run_avx512(const Plan& plan, Column* columns, const Block& block) {
    run_steps<Isa::avx512>(plan, columns, block);
}

[[gnu::target("avx2,lzcnt")]] inline void run_avx2(const Plan& plan, Column* columns, const Block& block) {
    run_steps<Isa::avx2>(plan, columns, block);
}
#endif

// Appends records after `row` earlier ones.
inline void gather(const Plan& plan, Isa isa, Column* columns, char* scratch, const char* from, int64_t stride,
                   int64_t rows, int64_t row) {
    const int64_t most = plan.block_rows();
    for (int64_t done = 0; done < rows; done += most) {
        const Block block{from + done * stride, stride, std::min(most, rows - done), row + done,
                          from + (rows - 1) * stride + plan.itemsize, scratch, most, most * plan.scratch_bytes};
#if defined(__x86_64__)
        if (isa == Isa::avx512) {
            run_avx512(plan, columns, block);
            continue;
        }
        if (isa == Isa::avx2) {
            run_avx2(plan, columns, block);
            continue;
        }
#endif
        run_steps<Isa::base>(plan, columns, block);
    }
}

// One column of texts alone, from its first row on. The first offset is set already.
inline Packed pack_column(Isa isa, bool is_points, const char* from, int64_t stride, int64_t width, int64_t rows,
                          int32_t* offsets, char* to) {
    const Step step{is_points ? Step::Kind::points : Step::Kind::bytes, width, 1, {}, {}, {}};
    const char* end = from + (rows - 1) * stride + width;
    Column column{to, offsets, {nullptr, false}, {-1, 0}, {0, -1, true}};
    if (isa == Isa::avx512) {
        pack_texts<Isa::avx512>(step, from, stride, rows, 0, end, column);
    } else {
        pack_texts<Isa::base>(step, from, stride, rows, 0, end, column);
    }
    return column.packed;
}

}  // namespace queueduct::gather
