"""Writes event queues to their disks at intervals: one thread a process, while a queue needs it."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol

__all__ = ["sync_at_intervals"]


class Syncable(Protocol):
    """The call of a queue's backend that the thread uses."""

    def sync_if_needed(self) -> bool:
        """Returns false if the handle is closed."""
        ...


class SyncThread:
    """Wakes at the shortest interval that a queue asks for."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._backends: dict[int, tuple[weakref.ref[Syncable], float]] = {}
        self._changed = threading.Event()
        self._is_running = False

    def add(self, backend: Syncable, interval: float) -> None:
        with self._mutex:
            self._backends[id(backend)] = (weakref.ref(backend), interval)
            self._changed.set()
            self._start()

    def _start(self) -> None:
        if self._is_running or not self._backends:
            return
        threading.Thread(target=self._run, name="queueduct-sync", daemon=True).start()
        self._is_running = True  # only now: if no thread could be started, the next queue tries again

    def start_in_child(self) -> None:
        """Called in a forked child: the thread is the parent's."""
        self._mutex = threading.Lock()
        self._changed = threading.Event()
        self._is_running = False
        with self._mutex:
            self._start()

    def _run(self) -> None:
        while True:
            with self._mutex:
                if not self._backends:
                    self._is_running = False
                    return
                pause = min(interval for _, interval in self._backends.values())
                current = [(key, reference) for key, (reference, _) in self._backends.items()]
            for key, reference in current:
                if not self._sync(reference()):
                    self._forget(key, reference)
            self._changed.wait(pause)
            self._changed.clear()

    def _forget(self, key: int, reference: weakref.ref[Syncable]) -> None:
        """Removes a backend, unless another one has its id by now."""
        with self._mutex:
            if key in self._backends and self._backends[key][0] is reference:
                del self._backends[key]

    @staticmethod
    def _sync(backend: Syncable | None) -> bool:
        """Holds the backend only during its sync, so that a closed one can be freed."""
        try:
            return backend is not None and backend.sync_if_needed()
        except Exception:  # the user's next put or sync meets the same error, and raises it
            return True


_thread = SyncThread()
sync_at_intervals = _thread.add
os.register_at_fork(after_in_child=_thread.start_in_child)
