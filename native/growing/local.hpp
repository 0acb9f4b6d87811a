// A growing queue of references within a process.
#pragma once

#include "growing/operations.hpp"

namespace queueduct {

// Of references within this process: the same levels on private memory, with no participants.
class LocalGrowingQueue {
 public:
  static constexpr std::uint64_t first_bytes = 4096;
  static constexpr std::uint32_t steps = 11;

  [[nodiscard]] static GrowingOffsets offsets() noexcept {
    return growing_offsets(first_bytes, steps, sizeof(void*), 0, 0, 0, false);
  }

  // `base`: page-aligned, zeroed, offsets().total bytes.
  explicit LocalGrowingQueue(std::byte* base) noexcept
      : levels_(base, offsets(), first_bytes, steps, sizeof(void*), false, true),
        upkeep_(levels_, ReadGuards(nullptr), base, offsets().regions, 0),
        flow_(*this, levels_, upkeep_),
        lock_(&levels_.control().upkeep) {}

  [[nodiscard]] const Levels& levels() const noexcept { return levels_; }
  [[nodiscard]] GrowingFlow<LocalGrowingQueue>& flow() noexcept { return flow_; }
  [[nodiscard]] Event items() const noexcept { return Event(&levels_.control().items.word); }
  [[nodiscard]] Event room() const noexcept { return Event(&levels_.control().room.word); }

  // `Local` is how claims are made where the GIL is, or is not.
  template <class Local>
  [[nodiscard]] Outcome try_put_reference(Local ledger, void* reference) noexcept {
    LastRings fresh;
    return flow_.put(last_of<Local>(fresh), NoGuard{}, 1, [=](const GrowingRing& ring) {
      return queueduct::try_put_reference(ring, ledger, reference);
    });
  }
  template <class Local>
  [[nodiscard]] Outcome try_put_references(Local ledger, void* const* references, std::uint64_t count,
                                           std::uint64_t& put) noexcept {
    LastRings fresh;
    return flow_.put(last_of<Local>(fresh), NoGuard{}, 1, [&](const GrowingRing& ring) {
      return queueduct::try_put_references(ring, ledger, references, count, put);
    });
  }
  template <class Local>
  [[nodiscard]] Outcome peek(Local ledger, Peeked& peeked, GrowingRing& ring) noexcept {
    LastRings fresh;
    return flow_.peek(last_of<Local>(fresh), NoGuard{}, ledger, peeked, ring);
  }
  template <class Local>
  [[nodiscard]] Outcome try_get_reference(Local ledger, void*& reference) noexcept {
    LastRings fresh;
    LastRings& last = last_of<Local>(fresh);
    Peeked peeked;
    for (;;) {
      const Outcome outcome = flow_.peek(last, NoGuard{}, ledger, peeked);
      if (outcome != Outcome::done) return outcome;
      if (!claim_pop(last.get, ledger, peeked.span)) continue;
      void*& slot = reinterpret_cast<void**>(last.get.payload)[last.get.index(peeked.span.position)];
      reference = slot;
      slot = nullptr;
      release(last.get, peeked.span);
      flow_.after_get(last.get);
      return outcome;
    }
  }

  [[nodiscard]] bool looks_gettable() const noexcept { return flow_.looks_gettable(NoGuard{}); }
  [[nodiscard]] bool looks_puttable() const noexcept { return flow_.looks_puttable(NoGuard{}, 1, 0); }

  // For who finds nothing to get. As long as the queue has not grown there is nothing to give back.
  void rest() noexcept {
    if (levels_.stage().moves() != 0) flow_.rest();
  }
  static void wait_a_moment() noexcept {
    const timespec moment{.tv_sec = 0, .tv_nsec = 200'000};
    nanosleep(&moment, nullptr);
  }

  // True: gets were ended by this call, and what is left belongs to the caller.
  [[nodiscard]] bool shut_down(bool immediate) noexcept {
    const bool ended_gets = levels_.shut(immediate);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // W2
    items().wake_all();
    room().wake_all();
    return ended_gets;
  }

  // For the one who throws the queue away, or has closed both its ends: what is still in it.
  [[nodiscard]] bool try_drain_reference(void*& reference) noexcept {
    const LevelRange now = levels_.stage();
    for (std::uint32_t i = now.read_level(); i <= now.written_level(); ++i) {
      const GrowingRing ring = levels_.ring(i, now);
      const std::uint64_t popped = LevelNumbering::position_of(ring.pop_position->load(std::memory_order_relaxed));
      if (popped != LevelNumbering::position_of(ring.push_position->load(std::memory_order_relaxed)) &&
          queueduct::try_drain_reference(ring, reference))
        return true;
    }
    return false;
  }

  // Calls use(reference) for each that is there, until it returns something else than 0.
  template <class Use>
  int each_reference(Use use) const noexcept {
    const LevelRange now = levels_.stage();
    for (std::uint32_t i = now.read_level(); i <= now.written_level(); ++i) {
      const GrowingRing ring = levels_.ring(i, now);
      const std::uint64_t end = LevelNumbering::position_of(ring.push_position->load(std::memory_order_acquire));
      std::uint64_t p = LevelNumbering::position_of(ring.pop_position->load(std::memory_order_acquire));
      for (; p < end; ++p) {
        void* const reference = reinterpret_cast<void**>(ring.payload)[ring.index(p)];
        if (reference == nullptr) continue;
        if (const int stop = use(reference)) return stop;
      }
    }
    return 0;
  }

  [[nodiscard]] bool enter(bool must) noexcept {
    if (!must) return lock_.try_lock(0) != Locked::no;
    return lock_.lock(0, [](std::uint32_t) { return true; }, park_limit_ns) != Locked::no;
  }
  void leave() noexcept { lock_.unlock(); }
  [[nodiscard]] static int file() noexcept { return -1; }

 private:
  // Callers who hold one lock share what was last looked up.
  template <class Local>
  [[nodiscard]] LastRings& last_of([[maybe_unused]] LastRings& fresh) noexcept {
    if constexpr (std::is_same_v<Local, Serialized>)
      return last_;
    else
      return fresh;
  }

  Levels levels_;
  Upkeep upkeep_;
  GrowingFlow<LocalGrowingQueue> flow_;
  OwnerLock lock_;
  LastRings last_;
};

}  // namespace queueduct
