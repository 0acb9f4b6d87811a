// A growing queue of references within a process: the same levels on private memory, with no participants.
#pragma once

#include "growing/operations.hpp"
#include "ring/local.hpp"

namespace queueduct {

template <class Claim>
class GrowingLocal final : public LocalOperations<GrowingLocal<Claim>, Claim, GrowingRing> {
  using Operations = LocalOperations<GrowingLocal<Claim>, Claim, GrowingRing>;

 public:
  static constexpr std::uint64_t first_bytes = 4096;
  static constexpr std::uint32_t steps = 11;
  static constexpr std::uint64_t longest_claim = 65536;

  [[nodiscard]] static GrowingOffsets offsets() noexcept {
    return growing_offsets(first_bytes, steps, sizeof(void*), 0, 0, 0, false);
  }
  // Memory for the constructor; its base() is null if there is no such address space.
  [[nodiscard]] static PrivateMemory memory() noexcept { return {offsets().total, false}; }
  explicit GrowingLocal(PrivateMemory memory) noexcept
      : Operations(std::move(memory)),
        levels_(this->base(), offsets(), first_bytes, steps, sizeof(void*), false, true),
        upkeep_(levels_, ReadGuards(nullptr), this->base(), offsets().regions, 0),
        lock_(nullptr, upkeep_, &levels_.control().upkeep),
        flow_(lock_, levels_, upkeep_) {
    this->set_events(levels_.control());
  }
  [[nodiscard]] const Levels& levels() const noexcept { return levels_; }

  // What LocalOperations needs, without guards: see NoGuard.
  [[nodiscard, gnu::always_inline]] inline Outcome put_into_ring(auto attempt) noexcept {
    LastRings fresh;
    return flow_.put(last_of(fresh), NoGuard{}, 1, attempt);
  }
  [[nodiscard, gnu::always_inline]] inline Outcome peek(LocalFound& found, GrowingRing& scratch,
                                                        const GrowingRing*& ring) noexcept {
    LastRings fresh;
    LastRings& last = last_of(fresh);
    const Outcome outcome = flow_.peek(last, NoGuard{}, Claim{}, found);
    found.level_range = last.get.range_seen;
    if constexpr (is_serialized)
      ring = &last.get;
    else
      ring = &(scratch = last.get);
    return outcome;
  }
  [[nodiscard]] const GrowingRing* ring_of(const LocalFound& found,
                                           [[maybe_unused]] GrowingRing& scratch) const noexcept {
    if constexpr (is_serialized) return last_.get.range_seen == found.level_range ? &last_.get : nullptr;
    const LevelRange now = levels_.level_range();
    if (now.word != found.level_range) return nullptr;
    return &(scratch = levels_.ring(now.read_level(), now));
  }
  void after_get(const GrowingRing& ring) noexcept { flow_.after_get(ring); }
  void each_ring(auto use) const noexcept {
    const LevelRange now = levels_.level_range();
    for (std::uint32_t i = now.read_level(); i <= now.written_level(); ++i) use(levels_.ring(i, now));
  }
  [[nodiscard]] bool close_rings(bool immediate) noexcept { return levels_.shut(immediate); }

  // Each opening of a level but the first skips a position, and is counted when the level range has moved there: so the
  // count is read before the position.
  [[nodiscard]] std::uint64_t pushed() const noexcept override {
    const GrowingControl& control = levels_.control();
    const std::uint64_t skipped =
        control.grown.load(std::memory_order_acquire) + control.shrunk.load(std::memory_order_acquire);
    const LevelRange now = levels_.level_range();
    const GrowingRing ring = levels_.ring(now.written_level(), now);
    return GrowingRing::position_of(ring.push_position->load(std::memory_order_acquire)) - skipped;
  }
  [[nodiscard]] std::uint64_t claim_limit() const noexcept override { return longest_claim; }
  [[nodiscard]] bool may_be_gettable() const noexcept override { return flow_.may_be_gettable(NoGuard{}); }
  [[nodiscard]] bool may_be_puttable() const noexcept override { return flow_.may_be_puttable(NoGuard{}, 1, 0); }
  [[nodiscard]] bool is_worth_a_try(Outcome outcome) noexcept override { return flow_.is_worth_a_try(outcome); }
  // A queue that has not grown has nothing to reclaim.
  void upkeep_while_empty() noexcept override {
    if (levels_.level_range().moves() != 0) flow_.rest();
  }

 private:
  static constexpr bool is_serialized = std::is_same_v<Claim, Serialized>;

  // Callers that hold one lock share the last rings.
  [[nodiscard]] LastRings& last_of([[maybe_unused]] LastRings& fresh) noexcept {
    if constexpr (is_serialized)
      return last_;
    else
      return fresh;
  }

  Levels levels_;
  Upkeep upkeep_;
  UpkeepLock lock_;
  GrowingFlow flow_;
  LastRings last_;
};

}  // namespace queueduct
