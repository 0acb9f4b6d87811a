// The operations of a named producer, as BoundedQueue does them for Python: own the line, settle what a dead
// predecessor left, go on where it stopped. And the ways to do it wrong that the campaign has to notice.
#pragma once

#include "crash/rings/operations.hpp"

namespace queueduct::crash {

inline constexpr std::uint8_t planned_putter = 100;

// The protocol with two of its steps in the wrong order.
class BrokenLedger {
 public:
  BrokenLedger(Participant shared, ProducerLine* line, bool is_one_item) noexcept
      : shared_(shared), line_(line), is_one_item_(is_one_item) {}

  [[nodiscard]] bool claim(std::atomic<std::uint64_t>& word, Side side, std::uint64_t position,
                           std::uint64_t count) noexcept {
    line_->kept.store(Kept{position, count}.packed(), std::memory_order_relaxed);
    intend(*line_, position, {count, is_one_item_ ? 1 : count});
    if (!shared_.claim(word, side, position, count)) return false;
    if (sabotage == Sabotage::early_complete) finish();
    return true;
  }

  void clear() noexcept {
    if (sabotage == Sabotage::late_confirm) {
      confirm(*line_);
      finish();
    }
    shared_.clear();
  }
  void count_put(std::uint64_t items, std::uint64_t bytes) noexcept { shared_.count_put(items, bytes); }

 private:
  void finish() noexcept { complete(*line_, Extent::unpack(line_->extent.load()).items); }

  Participant shared_;
  ProducerLine* line_;
  bool is_one_item_;
};

[[nodiscard]] inline std::uint64_t owner_word(Context& context) {
  return owner::word_of(context.queue().participant_table(), context.attached.ledger().number());
}

[[nodiscard]] inline Outcome settle_predecessor(Context& context, ProducerLine& line) {
  if (sabotage == Sabotage::hasty && progress_of(line).phase == Phase::claimed) {
    complete(line, std::min(Kept::unpack(line.kept.load()).slots, Extent::unpack(line.extent.load()).items));
    return Outcome::done;
  }
  if (sabotage == Sabotage::fresh) complete(line, 0);
  return context.queue().settle_producer(line);
}

template <class Ledger>
[[nodiscard]] Outcome try_put_planned(Context& context, ProducerLine& line, const std::vector<Buffer>& items,
                                      std::uint64_t done, std::uint64_t& put) {
  const Participant ledger = context.attached.ledger();
  if (context.ring().lengths != nullptr)
    return try_put_bytes_once<Ledger>(context.ring(), ledger, line, items.data() + done, items.size() - done, put);
  return try_put_records_once<Ledger>(context.ring(), ledger, line, items[done].data, items.size() - done, put);
}

// What is missing of a sequence of the plan, as far as there is room. The line is ours.
[[nodiscard]] inline Outcome put_missing(Context& context, ProducerLine& line, const std::vector<Buffer>& items,
                                         std::uint32_t sequence) {
  const Outcome settled = settle_predecessor(context, line);
  if (settled == Outcome::corrupt) context.probe.complain("put_once found the line of its producer corrupt");
  if (settled != Outcome::done) return settled;
  const Begun begun = begin(line, sequence, items.size());
  if (begun == Begun::complete) return Outcome::done;
  if (begun != Begun::yes) return context.probe.complain("put_once could not begin its sequence"), Outcome::corrupt;
  std::uint64_t done = progress_of(line).done;
  for (int tries = 0; tries < 16 && done < items.size(); ++tries) {
    std::uint64_t put = 0;
    const bool is_broken = sabotage == Sabotage::late_confirm || sabotage == Sabotage::early_complete;
    const Outcome outcome = is_broken ? try_put_planned<BrokenLedger>(context, line, items, done, put)
                                      : try_put_planned<OnceLedger>(context, line, items, done, put);
    done += put;
    if (outcome == Outcome::done) {
      context.queue().items().notify();
      continue;
    }
    if (outcome == Outcome::corrupt) context.probe.complain("put_once found the queue corrupt");
    if (outcome != Outcome::full) return outcome;
    if (!context.queue().make_room(context.attached.ledger())) break;
  }
  return done == items.size() ? Outcome::done : Outcome::full;
}

// The plan from its beginning, as a process does that was started again and knows nothing.
// busy: somebody alive is at it, or in the way of knowing what is in.
inline Outcome put_planned(Context& context) {
  Probe& probe = context.probe;
  probe.begin_operation();
  Outcome outcome = Outcome::done;
  for (std::uint32_t s = 0; s < Plan::sequences && outcome == Outcome::done; ++s) {
    const PlannedItems planned(context.history, s);
    const std::vector<Buffer>& items = planned.buffers;
    for (const Buffer& item : items)
      if (item.bytes > context.ring().slot_bytes) context.queue().note_long_items();
    ProducerLine* line = nullptr;
    const Producers::Taken taken =
        context.attached.producers().take(name_of_producer("planned"), owner_word(context), s, items.size(), line);
    if (taken == Producers::Taken::in_use || taken == Producers::Taken::table_busy) {
      outcome = Outcome::busy;
    } else if (taken != Producers::Taken::yes) {
      probe.complain("put_once found no line for its producer");
      outcome = Outcome::corrupt;
    } else {
      outcome = put_missing(context, *line, items, s);
      Producers::leave(*line);
    }
  }
  probe.has_returned = true;
  return outcome;
}

}  // namespace queueduct::crash
