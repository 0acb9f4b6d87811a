// A queue of references within a process: put and get for one ring and for the levels of a growing queue.
//
// Roles      threads of one process. `Claim` is how they claim: under one lock that all hold (Serialized), or NoLedger.
//            `Queue` brings its rings: put_into_ring(attempt), peek(found, scratch, ring), ring_of(found, scratch),
//            after_get(ring), each_ring(use), close_rings(immediate).
// Invariants Q1 of ring/operations.hpp. There are no dead participants: a process ends with all its threads.
//            T1  a task is an item that was put and is not reported as done: pushed() - done_. So a put counts nothing.
//            T2  both only rise, and done_ never passes pushed(). A joiner reads done_ first: if pushed() is the same
//                number afterwards, then at that moment nothing was unfinished.
//            T3  a consumer puts what follows from its task before it reports the task: a joiner that sees the report
//                sees that put. release in finish_task() with acquire in count_unfinished().
#pragma once

#include <sys/mman.h>

#include <utility>

#include "ring/items.hpp"
#include "segment/event.hpp"

namespace queueduct {

// Zeroed pages of this process alone.
class PrivateMemory {
 public:
  // Without `is_reserved` only touched pages count as memory.
  PrivateMemory(std::uint64_t bytes, bool is_reserved) noexcept : bytes_(bytes) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (is_reserved ? 0 : MAP_NORESERVE);
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory != MAP_FAILED) base_ = static_cast<std::byte*>(memory);
  }
  PrivateMemory(PrivateMemory&& other) noexcept : base_(std::exchange(other.base_, nullptr)), bytes_(other.bytes_) {}
  PrivateMemory& operator=(PrivateMemory&&) = delete;
  ~PrivateMemory() {
    if (base_ != nullptr) munmap(base_, bytes_);
  }
  // Returns nullptr if there was no memory.
  [[nodiscard]] std::byte* base() const noexcept { return base_; }

 private:
  std::byte* base_ = nullptr;
  std::uint64_t bytes_;
};

// References at the front that find() has found. Nothing is claimed yet.
struct LocalFound : Peeked {
  std::uint64_t level_range = 0;  // of a growing queue: when they were found
};

class LocalHandle {
 public:
  virtual ~LocalHandle() = default;
  LocalHandle(const LocalHandle&) = delete;
  LocalHandle& operator=(const LocalHandle&) = delete;

  [[nodiscard]] Event items() const noexcept { return Event(items_); }
  [[nodiscard]] Event room() const noexcept { return Event(room_); }

  // The queue owns the caller's count of a reference that is put; of several, of the first `put`.
  [[nodiscard]] virtual Outcome put(void* reference) noexcept = 0;
  [[nodiscard]] virtual Outcome put_many(void* const* references, std::uint64_t count, std::uint64_t& put) noexcept = 0;
  [[nodiscard]] virtual Outcome get(void*& reference) noexcept = 0;
  // Several: find, allocate found.span.slots references, take. take() returns false if another consumer was faster.
  [[nodiscard]] virtual Outcome find(std::uint64_t limit, LocalFound& found) noexcept = 0;
  [[nodiscard]] virtual bool take(const LocalFound& found, void** references) noexcept = 0;

  // Returns how many references one claim puts at most.
  [[nodiscard]] virtual std::uint64_t claim_limit() const noexcept = 0;
  [[nodiscard]] virtual bool may_be_gettable() const noexcept = 0;
  [[nodiscard]] virtual bool may_be_puttable() const noexcept = 0;
  // After a put that may not wait: returns true if it will be known in a moment whether there is room.
  [[nodiscard]] virtual bool is_worth_a_try(Outcome outcome) noexcept = 0;
  // For a consumer that finds nothing.
  virtual void upkeep_while_empty() noexcept = 0;

  [[nodiscard]] virtual std::uint64_t count_items() const noexcept = 0;
  // Returns true if gets were ended by this call: what is left belongs to the caller.
  [[nodiscard]] virtual bool shut_down(bool immediate) noexcept = 0;
  // Returns how many references were ever put. It may be too high while a growing queue moves to another level.
  [[nodiscard]] virtual std::uint64_t pushed() const noexcept = 0;

  // Tasks.
  [[nodiscard]] std::uint64_t count_unfinished() const noexcept {
    const std::uint64_t done = done_.load(std::memory_order_acquire);  // T2, T3
    const std::uint64_t put = pushed();
    return put > done ? put - done : 0;
  }
  // Reports a task as done. Returns false if none is unfinished.
  [[nodiscard]] bool finish_task() noexcept {
    std::uint64_t done = done_.load(std::memory_order_relaxed);
    do {
      if (done >= pushed()) return false;
    } while (!done_.compare_exchange_weak(done, done + 1, std::memory_order_release, std::memory_order_relaxed));  // T3
    if (count_unfinished() == 0) tasks().notify_all();
    return true;
  }
  // For references that were drained: nobody can report them.
  void discard_tasks(std::uint64_t count) noexcept {
    done_.fetch_add(count, std::memory_order_release);  // T3
    tasks().notify_all();
  }
  // Told when nothing is unfinished.
  [[nodiscard]] Event tasks() noexcept { return Event(&tasks_); }

  // Takes a reference that is left, for the owner that drops the queue, or has closed both its ends.
  [[nodiscard]] virtual bool try_drain(void*& reference) noexcept = 0;
  // Calls use(reference, argument) for each reference until it returns something other than 0.
  using Use = int (*)(void* reference, void* argument);
  virtual int each_reference(Use use, void* argument) const noexcept = 0;

 protected:
  explicit LocalHandle(PrivateMemory memory) noexcept : memory_(std::move(memory)) {}
  [[nodiscard]] std::byte* base() const noexcept { return memory_.base(); }
  void set_events(auto& control) noexcept {
    items_ = &control.items.word;
    room_ = &control.room.word;
  }

 private:
  PrivateMemory memory_;
  std::atomic<std::uint64_t> done_{0};
  std::atomic<std::uint32_t> tasks_{0};
  std::atomic<std::uint32_t>* items_ = nullptr;
  std::atomic<std::uint32_t>* room_ = nullptr;
};

template <class Queue, class Claim, class Ring>
class LocalOperations : public LocalHandle {
 public:
  [[nodiscard]] Outcome put(void* reference) noexcept final {
    return self().put_into_ring([=](const Ring& ring) { return try_put_reference(ring, Claim{}, reference); });
  }
  [[nodiscard]] Outcome put_many(void* const* references, std::uint64_t count, std::uint64_t& put) noexcept final {
    return self().put_into_ring(
        [&](const Ring& ring) { return try_put_references(ring, Claim{}, references, count, put); });
  }

  [[nodiscard]] Outcome get(void*& reference) noexcept final {
    LocalFound found;
    Ring scratch;
    const Ring* ring = nullptr;
    for (;;) {
      const Outcome outcome = self().peek(found, scratch, ring);
      if (outcome != Outcome::done) return outcome;
      if (!try_take_references(*ring, Claim{}, found.span, &reference)) continue;
      self().after_get(*ring);
      return outcome;
    }
  }
  [[nodiscard]] Outcome find(std::uint64_t limit, LocalFound& found) noexcept final {
    Ring scratch;
    const Ring* ring = nullptr;
    const Outcome outcome = self().peek(found, scratch, ring);
    if (outcome == Outcome::done) widen_records(*ring, limit, found);
    return outcome;
  }
  [[nodiscard]] bool take(const LocalFound& found, void** references) noexcept final {
    Ring scratch;
    const Ring* const ring = self().ring_of(found, scratch);
    if (ring == nullptr || !try_take_references(*ring, Claim{}, found.span, references)) return false;
    self().after_get(*ring);
    return true;
  }

  [[nodiscard]] std::uint64_t count_items() const noexcept final {
    std::uint64_t items = 0;
    self().each_ring([&](const Ring& ring) { items += slots_in_use(ring); });
    return items;
  }
  [[nodiscard]] bool shut_down(bool immediate) noexcept final {
    const bool ended_gets = self().close_rings(immediate);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // W2
    items().wake_all();
    room().wake_all();
    return ended_gets;
  }
  [[nodiscard]] bool try_drain(void*& reference) noexcept final {
    bool is_drained = false;
    self().each_ring([&](const Ring& ring) {
      const std::uint64_t popped = ring.position_of(ring.pop_position->load(std::memory_order_relaxed));
      const std::uint64_t pushed = ring.position_of(ring.push_position->load(std::memory_order_relaxed));
      if (!is_drained && popped != pushed) is_drained = try_drain_reference(ring, reference);
    });
    return is_drained;
  }
  int each_reference(Use use, void* argument) const noexcept final {
    int stop = 0;
    self().each_ring([&](const Ring& ring) {
      const std::uint64_t end = ring.position_of(ring.push_position->load(std::memory_order_acquire));
      for (std::uint64_t p = ring.position_of(ring.pop_position->load(std::memory_order_acquire)); p < end && stop == 0;
           ++p)
        if (void* const reference = reinterpret_cast<void**>(ring.payload)[ring.index(p)])
          stop = use(reference, argument);
    });
    return stop;
  }

 protected:
  using LocalHandle::LocalHandle;

 private:
  [[nodiscard]] Queue& self() noexcept { return static_cast<Queue&>(*this); }
  [[nodiscard]] const Queue& self() const noexcept { return static_cast<const Queue&>(*this); }
};

}  // namespace queueduct
