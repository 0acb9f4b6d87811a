// How a call gets a reference to a handle's backend while another thread closes the handle.
//
// With a GIL, reading the attribute and counting a reference are one step. Without one, close() could drop the last
// reference between the two; so there native/core/handover.hpp takes and replaces the backend.
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

struct BackendHandover {
  Handover<PyObject, PythonCount> handover;

  template <class Backend>
  [[nodiscard]] Backend* take(Backend*& member) noexcept { return handover.take(member); }
  template <class Backend>
  [[nodiscard]] bool replace(Backend*& member, Backend* before, Backend* after) noexcept {
    return handover.replace(member, before, after);
  }
};

// Makes a new object, which no other thread knows yet, one whose references all threads count alike. Otherwise a last
// reference that another thread drops waits for the thread that made the object: a closed handle would keep its memory
// and its descriptor as long as the thread that opened it sleeps.
inline void count_for_all_threads(PyObject* fresh) noexcept {
  const Py_ssize_t references = Py_REFCNT(fresh);
  fresh->ob_tid = 0;
  fresh->ob_ref_local = 0;
  fresh->ob_ref_shared = _Py_REF_SHARED(references, _Py_REF_MERGED);
}

#else

struct BackendHandover {
  template <class Backend>
  [[nodiscard]] Backend* take(Backend*& member) noexcept {
    Py_INCREF(reinterpret_cast<PyObject*>(member));
    return member;
  }
  template <class Backend>
  [[nodiscard]] bool replace(Backend*& member, Backend* before, Backend* after) noexcept {
    if (member != before) return false;
    member = after;
    Py_DECREF(reinterpret_cast<PyObject*>(before));
    return true;
  }
};

inline void count_for_all_threads(PyObject*) noexcept {}

#endif

// Returns the backend of a handle, with a reference for the caller.
template <class Queue>
[[nodiscard]] auto* held(Queue* queue) noexcept {
  return queue->handover.take(queue->backend);
}

// Replaces the backend; the handle gets a reference to `after`. Returns false if the handle's is not `before` any more.
template <class Queue, class Backend>
[[nodiscard]] bool replace_backend(Queue* queue, Backend* before, Backend* after) noexcept {
  Py_INCREF(reinterpret_cast<PyObject*>(after));
  if (queue->handover.replace(queue->backend, before, after)) return true;
  Py_DECREF(reinterpret_cast<PyObject*>(after));
  return false;
}

// Replaces `unmade`, which lives as long as the module, by the first backend. Returns false if there is one already.
template <class Queue, class Backend>
[[nodiscard]] bool install_backend(Queue* queue, Backend* unmade, Backend* backend) noexcept {
  count_for_all_threads(reinterpret_cast<PyObject*>(backend));
  Py_INCREF(reinterpret_cast<PyObject*>(backend));
  Backend* expected = unmade;
  std::atomic_ref<Backend*> member(queue->backend);
  if (!member.compare_exchange_strong(expected, backend, std::memory_order_seq_cst)) {
    Py_DECREF(reinterpret_cast<PyObject*>(backend));
    return false;
  }
  Py_DECREF(reinterpret_cast<PyObject*>(unmade));
  return true;
}

}  // namespace queueduct
