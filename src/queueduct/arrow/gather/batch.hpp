// Columns as a batch of Arrow's C data interface (arrow.apache.org/docs/format/CDataInterface.html).
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "arrow/gather/columns.hpp"

namespace queueduct::gather {

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void** buffers;
    ArrowArray** children;
    ArrowArray* dictionary;
    void (*release)(ArrowArray*);
    void* private_data;
};

// Memory on a cache line. Returns null if there is none.
inline char* allocate_block(int64_t size) {
    return static_cast<char*>(std::aligned_alloc(64, (size + 64) & ~int64_t{63}));
}

// Asks for huge pages. Where the pool has given its memory back, the faults of small pages take longer than the copy.
inline void prefer_huge_pages([[maybe_unused]] char* data, [[maybe_unused]] int64_t size) {
#if defined(__linux__)
    constexpr int64_t page = 2 << 20, least = 2 * page;  // less may hold no whole huge page
    if (size < least) return;
    const int64_t before = -reinterpret_cast<intptr_t>(data) & (page - 1);
    madvise(data + before, (size - before) & ~(page - 1), MADV_HUGEPAGE);  // refused, the pages stay small
#endif
}

// The memory of columns, and what gives it back.
struct Memory {
    char* data = nullptr;
    void* lender = nullptr;  // an object of Python, or null
    void (*give_back)(void*) = nullptr;

    void free() {
        if (lender != nullptr) {
            give_back(lender);
        } else {
            std::free(data);
        }
        *this = {};
    }
};

// One array of a batch, in the order of their fields, each before those inside it.
struct Node {
    int64_t column;    // -1: a struct, or a list of fixed size
    int64_t count;     // values of one record
    int64_t children;  // that follow
};

// Memory of all arrays of a batch. It is freed with the last of them: their new owner may move each away.
struct Owner {
    Memory memory;
    std::atomic<int64_t> arrays{0};
    std::vector<ArrowArray> nodes;
    std::vector<ArrowArray*> children;
    std::vector<const void*> buffers;

    ~Owner() { memory.free(); }
};

inline void release(ArrowArray* array) {
    for (int64_t i = 0; i < array->n_children; ++i) {
        ArrowArray* child = array->children[i];
        if (child->release != nullptr) child->release(child);
    }
    Owner* owner = static_cast<Owner*>(array->private_data);
    array->release = nullptr;
    if (owner->arrays.fetch_sub(1, std::memory_order_acq_rel) == 1) delete owner;
}

class Export {
public:
    Export(const Plan& plan, const std::vector<Node>& nodes, const std::vector<Column>& columns, int64_t rows)
        : plan_(plan), nodes_(nodes), columns_(columns), rows_(rows), owner_(std::make_unique<Owner>()) {
        owner_->nodes.resize(nodes.size());
        owner_->children.resize(nodes.size());
        owner_->buffers.resize(3 * nodes.size());
    }

    // Takes the memory. The first node is the batch.
    void to(ArrowArray* batch, Memory& memory) {
        size_t next = 0;
        add(next, *batch);
        owner_->arrays = static_cast<int64_t>(nodes_.size());
        owner_->memory = memory;
        memory = {};
        owner_.release();
    }

private:
    void add(size_t& next, ArrowArray& array) {
        const Node& node = nodes_[next];
        const void** buffers = owner_->buffers.data() + 3 * next;
        ++next;
        array = {rows_ * node.count, 0, 0, 1, node.children, buffers, nullptr, nullptr, release, owner_.get()};
        buffers[0] = nullptr;
        if (node.column >= 0) {
            fill(array, buffers, columns_[node.column], plan_.shapes[node.column].kind == Shape::Kind::texts);
            return;
        }
        array.children = owner_->children.data() + used_children_;
        used_children_ += node.children;
        for (int64_t i = 0; i < node.children; ++i) {
            array.children[i] = &owner_->nodes[next];
            add(next, owner_->nodes[next]);
        }
    }

    static void fill(ArrowArray& array, const void** buffers, const Column& column, bool is_text) {
        array.n_buffers = is_text ? 3 : 2;
        buffers[1] = is_text ? static_cast<const void*>(column.offsets) : column.data;
        if (is_text) buffers[2] = column.data;
        if (column.missing.is_any) {
            buffers[0] = column.missing.bits;
            array.null_count = -1;  // not counted yet
        }
    }

    const Plan& plan_;
    const std::vector<Node>& nodes_;
    const std::vector<Column>& columns_;
    int64_t rows_;
    size_t used_children_ = 0;
    std::unique_ptr<Owner> owner_;
};

// Makes a batch of the first rows. Takes the memory.
inline void export_batch(const Plan& plan, const std::vector<Node>& nodes, const std::vector<Column>& columns,
                         int64_t rows, Memory& memory, ArrowArray* batch) {
    Export(plan, nodes, columns, rows).to(batch, memory);
}

}  // namespace queueduct::gather
