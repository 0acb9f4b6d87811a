// The few lines of the bindings that need both Python.h and native/.
#pragma once

#include <Python.h>
#include <numpy/arrayobject.h>

#include <atomic>
#include <type_traits>

#include "bounded_queue.hpp"
#include "fault_guard.hpp"

namespace penstock {

#ifdef Py_GIL_DISABLED
inline constexpr bool has_gil = false;
#else
inline constexpr bool has_gil = true;
#endif

// Within a process the GIL, where there is one, serialises every put, get and announcement.
using Local = std::conditional_t<has_gil, Serialized, NoLedger>;

inline void notify_local(Event event) noexcept {
  if constexpr (has_gil)
    event.notify_serialized();
  else
    event.notify();
}

[[nodiscard]] inline bool is_broken(const fault_guard::Range* guard) noexcept {
  return guard != nullptr && guard->broken.load(std::memory_order_relaxed);
}

inline void* array_data(PyObject* array) noexcept { return PyArray_DATA(reinterpret_cast<PyArrayObject*>(array)); }

// A reference that the queue owned, handed to Cython, which will drop it.
inline PyObject* owned(void* reference) noexcept { return static_cast<PyObject*>(reference); }

// The items of a list or tuple, in place.
inline void** references_of(PyObject* sequence) noexcept {
  return reinterpret_cast<void**>(PySequence_Fast_ITEMS(sequence));
}

inline void count_each(void** references, std::uint64_t count) noexcept {
  for (std::uint64_t i = 0; i < count; ++i) Py_INCREF(static_cast<PyObject*>(references[i]));
}
inline void drop_each(void** references, std::uint64_t count) noexcept {
  for (std::uint64_t i = 0; i < count; ++i) Py_DECREF(static_cast<PyObject*>(references[i]));
}

// For the cycle collector.
inline int visit_references(const Ring& ring, visitproc visit, void* arg) noexcept {
  auto** references = reinterpret_cast<PyObject**>(ring.payload);
  for (std::uint64_t i = 0; i < ring.capacity; ++i) {
    if (references[i] == nullptr) continue;
    if (const int stop = visit(references[i], arg)) return stop;
  }
  return 0;
}

}  // namespace penstock
