"""Writes event queues to their disks now and then: one thread a process, while there is anything to keep."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol

__all__ = ["keep"]


class Kept(Protocol):
    """What the keeper needs of a queue's body."""

    def sync_if_needed(self) -> bool:
        """False: the handle is closed."""
        ...


class Keeper:
    """Wakes as often as the most impatient queue asks."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._kept: dict[int, tuple[weakref.ref[Kept], float]] = {}
        self._changed = threading.Event()
        self._is_running = False

    def keep(self, body: Kept, interval: float) -> None:
        with self._mutex:
            self._kept[id(body)] = (weakref.ref(body), interval)
            self._changed.set()
            self._start()

    def _start(self) -> None:
        if self._is_running or not self._kept:
            return
        threading.Thread(target=self._run, name="queueduct-sync", daemon=True).start()
        self._is_running = True  # only now: where no thread can be started, the next one to ask tries again

    def start_in_child(self) -> None:
        """After a fork: the thread is the parent's."""
        self._mutex = threading.Lock()
        self._changed = threading.Event()
        self._is_running = False
        with self._mutex:
            self._start()

    def _run(self) -> None:
        while True:
            with self._mutex:
                if not self._kept:
                    self._is_running = False
                    return
                pause = min(interval for _, interval in self._kept.values())
                kept = [(key, reference) for key, (reference, _) in self._kept.items()]
            for key, reference in kept:
                if not self._sync(reference()):
                    self._forget(key, reference)
            self._changed.wait(pause)
            self._changed.clear()

    def _forget(self, key: int, reference: weakref.ref[Kept]) -> None:
        """Unless its number belongs to another by now."""
        with self._mutex:
            if key in self._kept and self._kept[key][0] is reference:
                del self._kept[key]

    @staticmethod
    def _sync(body: Kept | None) -> bool:
        """Holds the body no longer than it takes: a closed one is to go."""
        try:
            return body is not None and body.sync_if_needed()
        except Exception:  # the next put or sync of its user meets the same error, and is told
            return True


_keeper = Keeper()
keep = _keeper.keep
os.register_at_fork(after_in_child=_keeper.start_in_child)
