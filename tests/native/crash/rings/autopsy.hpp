// What a death must lead to, read from the raw words while nobody moves: each slot that the dead had claimed and
// not published becomes one tombstone, each item that it had taken and not released is redelivered once.
#pragma once

#include <set>
#include <utility>

#include "crash/rings/survivors.hpp"

namespace queueduct::crash {

class Autopsy {
 public:
  void reset() noexcept { *this = {}; }

  void examine(const Segment& segment, const Probe& probe) {
    ended_after_swap_ += std::strcmp(probe.last_point(), "recover.swapped") == 0;
    ended_after_redelivery_ += std::strcmp(probe.last_point(), "recover.redelivered") == 0;
    if (!had_claimed(probe)) return;
    const Ring ring = segment.ring();
    // positions in these tests are far below 2^40, so an intent's position is the whole one
    const Intent intent = Intent::unpack(segment.lines()[probe.line].intent.load());
    const std::uint64_t pushed = ring.push_position->load() & ~closed_bit;
    const std::uint64_t popped = ring.pop_position->load() & ~closed_bit;
    for (std::uint64_t p = intent.position; p != intent.position + intent.count; ++p) {
      const std::uint64_t seen = ring.generation_of(p).load();
      if (intent.side == Side::push && p < pushed && seen == p) unpublished_.insert(p);
      if (intent.side == Side::pop && p < popped &&
          (seen == generation::published(p) || generation::is_redelivered(seen, p)) &&
          (ring.lengths == nullptr || !(ring.length_of(p).load() & Length::continuation_bit)))
        unreleased_.insert({p, seen});
    }
  }

  // After all was drained. nullptr: as it must be.
  [[nodiscard]] const char* judge(const Segment& segment) const {
    const std::uint64_t tombstones = segment.control().tombstones.load();
    if (tombstones > unpublished_.size()) return "more slots were abandoned than the dead had claimed";
    if (tombstones + ended_after_swap_ < unpublished_.size())
      return "fewer slots were abandoned than the dead had claimed";
    if (is_discarded(segment.ring())) return nullptr;  // what was taken is nobody's any more
    if (segment.control().redelivered.load() + ended_after_redelivery_ != unreleased_.size())
      return "not every item was redelivered exactly once that the dead had taken and not released";
    return nullptr;
  }

 private:
  // Was what the line names claimed, or only declared? The claim is the step after the declaration.
  static bool had_claimed(const Probe& probe) {
    const std::uint32_t reached = std::min(probe.reached, trace_limit);
    const auto is_at = [&](std::uint32_t i, const char* name) {
      return i < reached && std::strcmp(probe.trace[i], name) == 0;
    };
    bool claimed = false;
    for (std::uint32_t i = 0; i < reached; ++i) {
      if (!is_at(i, "ledger.after_declare")) continue;
      claimed = is_at(i + 1, "push.claimed") || is_at(i + 1, "once.before_confirm") || is_at(i + 1, "pop.claimed") ||
                (is_at(i + 1, "recover.before_redeliver") && is_at(i + 2, "recover.redelivered"));
    }
    return claimed;
  }

  std::set<std::uint64_t> unpublished_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> unreleased_;
  std::uint64_t ended_after_swap_ = 0;  // the swap was made, and who made it did not live to count it
  std::uint64_t ended_after_redelivery_ = 0;
};

// What became of every item. Allowed: what is in comes out once, or went down with a consumer that had released
// it; what is not in never comes out; nothing is torn; what one producer put comes from the front in its order.
[[nodiscard]] inline const char* judge_items(const Segment& segment, const History& history) {
  if (history.torn.load() != 0) return "an item is torn";
  if (history.disordered.load() != 0) return "a producer's items changed their order";
  if (history.next_id.load() >= item_limit) return "the history is full";
  const bool may_be_left = is_discarded(segment.ring());
  for (std::uint32_t id = 1; id < history.next_id.load(); ++id) {
    const Item& item = history.items[id];
    const int times = item.delivered.load() + item.gone.load();
    if (!item.is_in.load() && times != 0) return "an item came out that was never in";
    if (times > 1) return "an item was delivered twice";
    if (item.is_in.load() && times == 0 && !may_be_left) return "an item is lost";
  }
  return nullptr;
}

}  // namespace queueduct::crash
