// An overwriting queue in a stress run: the calls that its bindings make, with each operation's position.
#pragma once

#include "overwriting/queue.hpp"
#include "verification/worker.hpp"

namespace queueduct {

class StressedOverwriting {
 public:
  static constexpr bool has_batches = false;

  StressedOverwriting(OverwritingShared& queue, std::uint32_t line, std::uint64_t item_bytes) noexcept
      : queue_(queue), line_(line), item_bytes_(item_bytes) {}

  // Positions are given under the header's lock.
  [[nodiscard]] Answer try_put(const std::byte* items, std::uint64_t, Seen& seen) noexcept {
    claim_ = queue_.try_put(line_, items, item_bytes_, true, limit(), [&](Saw, std::uint64_t position) {
      seen = {position, 1};
    });
    return answer();
  }

  [[nodiscard]] Answer try_get(std::byte* to, std::uint64_t, Seen& seen, auto& notes) noexcept {
    claim_ = queue_.try_get(line_, to, item_bytes_, limit(), [&](Saw saw, std::uint64_t position) {
      if (saw == Saw::taken) notes.took(position);
      if (saw == Saw::lost) notes.lost(position);
      seen = saw == Saw::lost ? Seen{} : Seen{position, saw == Saw::taken};
    });
    if (claim_ == Claim::done) {
      notes.read(to, 1);
      if (std::exchange(waited_, false) && queue_.ring().may_be_gettable()) queue_.items().notify();
      return Answer::done;
    }
    // empty without a position: it was answered without the lock, so the count of puts at that moment is not known
    if (claim_ == Claim::empty) return Answer::refused;
    if (claim_ != Claim::busy) return answer();
    seen.weak = true;  // its producer is copying; without a position: overwritten again and again
    return Answer::refused;
  }

  // A put never waits for a get: it yields now and then, else no get would run on a machine with few cores.
  void after_put() noexcept {
    if (++puts_ % queue_.ring().capacity() == 0) sched_yield();
  }

  void wait_for_room(std::int64_t limit_ns) noexcept {
    if (claim_ != Claim::locked) queue_.wait_for_copy(limit_ns);  // else the next attempt waits
  }
  void wait_for_items(std::int64_t limit_ns) noexcept {
    if (claim_ != Claim::locked) queue_.wait_for_items(limit_ns);
    waited_ = true;
  }

 private:
  using Saw = OverwritingShared::Saw;

  // A put that overwrites is never refused: it waits for the header's lock, and for a producer in the same message.
  [[nodiscard]] Answer answer() const noexcept {
    if (claim_ == Claim::done) return Answer::done;
    if (claim_ == Claim::busy || claim_ == Claim::locked) return Answer::busy;
    return claim_ == Claim::closed ? Answer::closed : Answer::corrupt;
  }
  [[nodiscard]] std::int64_t limit() const noexcept { return claim_ == Claim::locked ? park_limit_ns : 0; }

  OverwritingShared& queue_;
  std::uint32_t line_;
  std::uint64_t item_bytes_;
  std::uint64_t puts_ = 0;
  Claim claim_ = Claim::done;
  bool waited_ = false;
};

}  // namespace queueduct
