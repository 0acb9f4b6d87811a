// The parts of the bindings that need both Python.h and native/.
#pragma once

#include <Python.h>
#include <numpy/arrayobject.h>
#include <unistd.h>

#include <atomic>
#include <new>
#include <type_traits>
#include <vector>

#include "segment/event.hpp"
#include "segment/fault_guard.hpp"

namespace queueduct {

#ifdef Py_GIL_DISABLED
inline constexpr bool has_gil = false;
#else
inline constexpr bool has_gil = true;
#endif

// A bint that threads may read and write at the same time. A thread that sees it up sees all writes before.
class Flag {
 public:
  Flag& operator=(bool is_up) noexcept {
    word_.store(is_up ? 1 : 0, std::memory_order_seq_cst);
    return *this;
  }
  operator bool() const noexcept { return word_.load(std::memory_order_seq_cst) != 0; }
  [[nodiscard]] bool lower() noexcept { return word_.exchange(0, std::memory_order_seq_cst) != 0; }

 private:
  std::atomic<int> word_{0};
};
inline bool lower(Flag& flag) noexcept { return flag.lower(); }

// Takes the GIL again. While the interpreter ends, Python up to 3.13 ends a daemon thread that asks for the GIL by
// pthread_exit, which unwinds its stack; a noexcept function there would end the process. So the unwinding stops here,
// and the thread sleeps until the process has ended, without the GIL: from 3.14 on Python itself does the same.
inline void take_gil_again(PyThreadState* state) {
  try {
    PyEval_RestoreThread(state);
  } catch (...) {
    for (;;) pause();
  }
}

// Runs a step that may take long without the GIL, whether or not the caller holds it.
inline void run_without_gil(void (*step)(void*), void* argument) {
  if (!PyGILState_Check()) return step(argument);
  PyThreadState* const state = PyEval_SaveThread();
  step(argument);
  take_gil_again(state);
}

// Within a process the GIL, where there is one, serialises every put, get and announcement.
inline void notify_local(Event event) noexcept {
  if constexpr (has_gil)
    event.wake_one();
  else
    event.notify();
}

[[nodiscard]] inline bool is_broken(const fault_guard::Range* guard) noexcept {
  return guard != nullptr && guard->broken.load(std::memory_order_relaxed);
}

inline void mark_broken(fault_guard::Range* guard) noexcept {
  if (guard != nullptr) guard->broken.store(true, std::memory_order_relaxed);
}

inline void* array_data(PyObject* array) noexcept { return PyArray_DATA(reinterpret_cast<PyArrayObject*>(array)); }

// Cuts an array to its first rows, without the memory that a slice would need. Only the caller may have the array.
inline void shorten(PyObject* array, std::uint64_t rows) noexcept {
  PyArray_DIMS(reinterpret_cast<PyArrayObject*>(array))[0] = static_cast<npy_intp>(rows);
}

// Hands a reference that the queue owned to Cython, which drops it.
inline PyObject* owned(void* reference) noexcept { return static_cast<PyObject*>(reference); }

// Returns the array of references inside a list or tuple.
inline void** references_of(PyObject* sequence) noexcept {
  return reinterpret_cast<void**>(PySequence_Fast_ITEMS(sequence));
}

inline void count_each(void** references, std::uint64_t count) noexcept {
  for (std::uint64_t i = 0; i < count; ++i) Py_INCREF(static_cast<PyObject*>(references[i]));
}
inline void drop_each(void** references, std::uint64_t count) noexcept {
  for (std::uint64_t i = 0; i < count; ++i) Py_DECREF(static_cast<PyObject*>(references[i]));
}

// Drops the references that a queue held at its end. An item may be a queue whose end drops its items, and so on: from
// nesting_limit on the references wait until the outer ones are dropped, so that any stack is large enough. (A list
// does the same up to Python 3.12. From 3.13 on it counts frames of the default stack, whatever the thread's is.)
inline void drop_held(void** references, std::uint64_t count) noexcept {
  constexpr int nesting_limit = 16;
  static thread_local int nesting = 0;
  static thread_local std::vector<void*>* later = nullptr;
  if (nesting >= nesting_limit && later != nullptr) {
    try {
      later->insert(later->end(), references, references + count);
      return;
    } catch (const std::bad_alloc&) {  // then nested after all
    }
  }
  std::vector<void*> waiting;
  const bool is_outermost = later == nullptr;
  if (is_outermost) later = &waiting;
  ++nesting;
  drop_each(references, count);
  if (is_outermost) {
    while (!waiting.empty()) {
      void* const next = waiting.back();
      waiting.pop_back();
      drop_each(const_cast<void**>(&next), 1);
    }
    later = nullptr;
  }
  --nesting;
}

}  // namespace queueduct
