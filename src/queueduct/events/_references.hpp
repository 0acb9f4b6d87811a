// The references in a log within a process: for the garbage collector, and for the end of the log.
#pragma once

#include <Python.h>

#include <vector>

#include "events/queue.hpp"

namespace queueduct {

// Calls use(references, count) for each kept chunk, until it returns another value than 0.
template <class Use>
int for_each_chunk(const EventsMap& map, Use use) noexcept {
  const std::uint64_t end = map.end(std::memory_order_relaxed).position();
  const std::uint64_t made = map.control->chunks_made.load(std::memory_order_relaxed);
  for (std::uint64_t number = map.control->head_chunk.load(std::memory_order_relaxed); number < made; ++number) {
    Chunk chunk;
    if (!load_chunk(map, number, chunk)) return 0;
    const std::uint64_t ended = map.chunk(number).end_position.load(std::memory_order_relaxed);
    const std::uint64_t last = ended < end ? ended : end;
    if (last <= chunk.first) continue;
    if (const int stop = use(reinterpret_cast<PyObject**>(chunk.data), last - chunk.first)) return stop;
  }
  return 0;
}

inline int visit_events(const EventsMap& map, visitproc visit, void* arg) noexcept {
  return for_each_chunk(map, [&](PyObject** references, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i)
      if (const int stop = visit(references[i], arg)) return stop;
    return 0;
  });
}

// Takes all references out. The log is empty then, and is not used any more.
inline void collect_events(const EventsMap& map, std::vector<void*>& into) noexcept {
  for_each_chunk(map, [&](PyObject** references, std::uint64_t count) {
    into.insert(into.end(), references, references + count);
    return 0;
  });
  map.control->head_chunk.store(map.control->chunks_made.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

}  // namespace queueduct
