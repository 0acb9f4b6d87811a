// Items of varying length, copied from a run of the log. Bounds and bytes are read in attempts, since a producer may
// give the chunk back meanwhile. No Python call is made inside an attempt: a fault jumps out of it.
#pragma once

#include <Python.h>

#include "events/queue.hpp"
#include "segment/fault_guard.hpp"

namespace queueduct {

namespace events_items {

inline void arm(fault_guard::Attempt** here, fault_guard::Attempt* attempt) noexcept {
  std::atomic_signal_fence(std::memory_order_seq_cst);  // the attempted reads stay between two of these
  *here = attempt;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

}  // namespace events_items

// Returns the run's first item, as bytes; None if its index is impossible or its page is missing; nullptr if Python's
// error is set.
[[nodiscard]] __attribute__((noinline)) inline PyObject* fetch_first_bytes(fault_guard::Attempt** here,
                                                                           const EventsMap& map,
                                                                           const Run& run) noexcept {
  fault_guard::Attempt attempt;
  PyObject* volatile item = nullptr;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  attempt.begin = reinterpret_cast<std::uintptr_t>(run.chunk.data);
  attempt.bytes = run.chunk.bytes;
  if (sigsetjmp(attempt.back, 0) != 0) {  // the handler of a fault has ended the attempt
    Py_XDECREF(item);
    Py_RETURN_NONE;
  }
  events_items::arm(here, &attempt);
  const bool is_sound = item_bounds(map, run.chunk, run.at, begin, end);
  events_items::arm(here, nullptr);
  if (!is_sound) Py_RETURN_NONE;
  PyObject* const made = PyBytes_FromStringAndSize(nullptr, end - begin);
  if (made == nullptr) return nullptr;
  item = made;
  events_items::arm(here, &attempt);
  std::memcpy(PyBytes_AS_STRING(made), items_of(map, run.chunk) + begin, end - begin);
  events_items::arm(here, nullptr);
  return made;
}

// The same for all items of the run: returns a list of bytes, None or nullptr.
[[nodiscard]] __attribute__((noinline)) inline PyObject* fetch_bytes(fault_guard::Attempt** here, const EventsMap& map,
                                                                     const Run& run) noexcept {
  PyObject* const list = PyList_New(static_cast<Py_ssize_t>(run.items));
  if (list == nullptr) return nullptr;
  fault_guard::Attempt attempt;
  attempt.begin = reinterpret_cast<std::uintptr_t>(run.chunk.data);
  attempt.bytes = run.chunk.bytes;
  if (sigsetjmp(attempt.back, 0) != 0) {  // the handler of a fault has ended the attempt
    Py_DECREF(list);
    Py_RETURN_NONE;
  }
  for (std::uint64_t i = 0; i < run.items; ++i) {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    events_items::arm(here, &attempt);
    const bool is_sound = item_bounds(map, run.chunk, run.at + i, begin, end);
    events_items::arm(here, nullptr);
    if (!is_sound) {
      Py_DECREF(list);
      Py_RETURN_NONE;
    }
    PyObject* const item = PyBytes_FromStringAndSize(nullptr, end - begin);
    if (item == nullptr) {
      Py_DECREF(list);
      return nullptr;
    }
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), item);  // before the copy: a jump must not leak it
    events_items::arm(here, &attempt);
    std::memcpy(PyBytes_AS_STRING(item), items_of(map, run.chunk) + begin, end - begin);
    events_items::arm(here, nullptr);
  }
  return list;
}

}  // namespace queueduct
