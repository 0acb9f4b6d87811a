// How a handle's body is had by those in a call while another thread closes the handle.
//
// With a GIL reading the attribute and counting a reference are one step. Without one close() could drop the last
// reference between the two: so there the body is taken and replaced by native/handover.hpp.
#pragma once

#include <Python.h>

#include "core/handover.hpp"

namespace queueduct {

#ifdef Py_GIL_DISABLED

struct PythonCount {
  template <class Object>
  static void keep(Object* object) noexcept { Py_INCREF(reinterpret_cast<PyObject*>(object)); }
  static void drop(PyObject* object) noexcept { Py_DECREF(object); }
};

struct BodyHandover {
  Handover<PyObject, PythonCount> handover;

  template <class Backend>
  [[nodiscard]] Backend* take(Backend*& place) noexcept { return handover.take(place); }
  template <class Backend>
  [[nodiscard]] bool replace(Backend*& place, Backend* before, Backend* after) noexcept {
    return handover.replace(place, before, after);
  }
};

// An object that nobody else knows yet is counted by all threads alike from here on. Else a last reference that is
// given up by another thread than the object's own waits for that thread to come by: a closed handle would keep its
// memory and its descriptor as long as the thread that opened it sleeps.
inline void count_for_all_threads(PyObject* fresh) noexcept {
  const Py_ssize_t references = Py_REFCNT(fresh);
  fresh->ob_tid = 0;
  fresh->ob_ref_local = 0;
  fresh->ob_ref_shared = _Py_REF_SHARED(references, _Py_REF_MERGED);
}

#else

struct BodyHandover {
  template <class Backend>
  [[nodiscard]] Backend* take(Backend*& place) noexcept {
    Py_INCREF(reinterpret_cast<PyObject*>(place));
    return place;
  }
  template <class Backend>
  [[nodiscard]] bool replace(Backend*& place, Backend* before, Backend* after) noexcept {
    if (place != before) return false;
    place = after;
    Py_DECREF(reinterpret_cast<PyObject*>(before));
    return true;
  }
};

inline void count_for_all_threads(PyObject*) noexcept {}

#endif

// The body of a handle, with a reference for the caller.
template <class Queue>
[[nodiscard]] auto* held(Queue* queue) noexcept {
  return queue->handover.take(queue->backend);
}

// Put another body in its place, whose reference the handle gets. False: the handle has another one by now.
template <class Queue, class Backend>
[[nodiscard]] bool replace_backend(Queue* queue, Backend* before, Backend* after) noexcept {
  Py_INCREF(reinterpret_cast<PyObject*>(after));
  if (queue->handover.replace(queue->backend, before, after)) return true;
  Py_DECREF(reinterpret_cast<PyObject*>(after));
  return false;
}

// The first body: the one before it lives as long as the module.
template <class Queue, class Backend>
[[nodiscard]] bool install_backend(Queue* queue, Backend* unmade, Backend* body) noexcept {
  count_for_all_threads(reinterpret_cast<PyObject*>(body));
  Py_INCREF(reinterpret_cast<PyObject*>(body));
  Backend* expected = unmade;
  if (!std::atomic_ref<Backend*>(queue->backend).compare_exchange_strong(expected, body, std::memory_order_seq_cst)) {
    Py_DECREF(reinterpret_cast<PyObject*>(body));
    return false;
  }
  Py_DECREF(reinterpret_cast<PyObject*>(unmade));
  return true;
}

}  // namespace queueduct
