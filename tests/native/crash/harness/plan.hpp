// What a named producer has to put, whoever puts it: one sequence after the other, and each item exactly once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/platform.hpp"
#include "crash/harness/item_bytes.hpp"
#include "segment/producers.hpp"

namespace queueduct::crash {

struct Plan {
  static constexpr std::uint32_t sequences = 2;
  static constexpr std::uint32_t longest = 16;
  std::uint32_t ids[sequences][longest] = {};
  std::uint32_t counts[sequences] = {};  // 0: there is no plan

  [[nodiscard]] bool exists() const noexcept { return counts[0] != 0; }
  void add(std::uint32_t sequence, std::uint32_t id) noexcept { ids[sequence][counts[sequence]++] = id; }

  template <class Visit>
  void for_each(Visit visit) const {
    for (std::uint32_t s = 0; s < sequences; ++s)
      for (std::uint32_t i = 0; i < counts[s]; ++i) visit(ids[s][i]);
  }
};

// The items of one sequence, one after the other in memory.
class PlannedItems {
 public:
  template <class History>
  PlannedItems(const History& history, std::uint32_t sequence) {
    const Plan& plan = history.plan;
    const auto length_of = [&](std::uint32_t i) { return history.items[plan.ids[sequence][i]].length.load(); };
    std::size_t all = 0;
    for (std::uint32_t i = 0; i < plan.counts[sequence]; ++i) all += length_of(i);
    bytes_.resize(all);
    unsigned char* at = bytes_.data();
    for (std::uint32_t i = 0; i < plan.counts[sequence]; ++i) {
      write_item(plan.ids[sequence][i], length_of(i), at);
      buffers.push_back({at, length_of(i)});
      at += length_of(i);
    }
  }
  PlannedItems(const PlannedItems&) = delete;
  PlannedItems& operator=(const PlannedItems&) = delete;

  std::vector<Buffer> buffers;

 private:
  std::vector<unsigned char> bytes_;
};

[[nodiscard]] inline ProducerName name_of_producer(const std::string& text) noexcept {
  ProducerName name;
  (void)ProducerName::of(text.data(), text.size(), name);
  return name;
}

// A name comes and goes beside the plan's.
inline void forget_another(Producers& producers, std::uint64_t me) {
  const ProducerName name = name_of_producer("another");
  ProducerLine* line = nullptr;
  if (producers.take(name, me, 7, 1, line) == Producers::Taken::yes) Producers::leave(*line);
  (void)producers.forget(name, me);
}

// Whatever died where: beside the plan's own, every line can be named and forgotten.
[[nodiscard]] inline bool every_line_is_usable(Producers& producers, std::uint64_t me) {
  (void)producers.forget(name_of_producer("another"), me);
  std::uint32_t named = 1;
  for (; named < producers.count(); ++named) {
    ProducerLine* line = nullptr;
    const ProducerName name = name_of_producer("line " + std::to_string(named));
    if (producers.take(name, me, 0, 0, line) != Producers::Taken::yes) return false;
    Producers::leave(*line);
  }
  while (--named > 0)
    if (producers.forget(name_of_producer("line " + std::to_string(named)), me) != Producers::Taken::yes) return false;
  return true;
}

}  // namespace queueduct::crash
