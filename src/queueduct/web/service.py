"""What the server serves: the last snapshot, as JSON that is made once for all viewers, and who waits for the next."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

from queueduct.monitoring import Detail, Monitor, QueueSeen, Snapshot, as_json

__all__ = ["Service"]

LATELY = 120  # looks that are drawn beside a queue's name


class Service:
    """Looks at the queues every ``interval`` seconds in a thread of its own, as long as it is in a ``with``."""

    def __init__(self, monitor: Monitor) -> None:
        self.monitor = monitor
        self.interval = monitor.span.interval
        self._changed = threading.Condition()
        self._number = 0
        self._snapshot = monitor.look()
        self._made: dict[str, str] = {}
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="queueduct-web-looks", daemon=True)

    def __enter__(self) -> Service:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
        self._thread.join()

    @property
    def snapshot(self) -> Snapshot:
        with self._changed:
            return self._snapshot

    def next(self, number: int, seconds: float) -> int | None:
        """Waits for a snapshot later than that number. Returns its number, the same one after so many seconds, or None
        at the end of the service."""
        with self._changed:
            self._changed.wait_for(lambda: self._number > number or self._is_over, seconds)
            return None if self._is_over else self._number

    def queues_json(self) -> str:
        """All queues, without what only a queue's own page shows."""
        return self._json("", lambda snapshot: as_json(snapshot._replace(queues=tuple(map(brief, snapshot.queues)))))

    def queue_json(self, name: str) -> str:
        """One queue without its history, or ``{"queue": null}``."""

        def of(snapshot: Snapshot) -> Any:
            detail = self.monitor.detail(name)
            if detail is not None:
                shown = detail._replace(history=None)  # type: ignore[arg-type]  # left out
                return {"at": snapshot.at, **as_json(shown)}
            return {"at": snapshot.at, "queue": as_json(snapshot.queue(name))}

        return self._json("queue " + name, of)

    def lately_json(self) -> str:
        """The last rates in and out of every queue, for a page that has just come."""
        histories = self.monitor.histories().items()
        lately = {name: [past.items_in[-LATELY:], past.items_out[-LATELY:]] for name, past in histories}
        return json.dumps(lately, separators=(",", ":"))

    def detail(self, name: str) -> Detail | QueueSeen | None:
        """One queue with its history; without, if it cannot be read any more."""
        return self.monitor.detail(name) or self.snapshot.queue(name)

    def _json(self, key: str, of: Any) -> str:
        with self._changed:
            number, snapshot, made = self._number, self._snapshot, self._made.get(key)
        if made is None:
            made = json.dumps(of(snapshot), separators=(",", ":"))
            with self._changed:
                if number == self._number:
                    self._made[key] = made
        return made

    def _run(self) -> None:
        due = time.monotonic()
        while True:
            due = max(due + self.interval, time.monotonic())
            with self._changed:
                if self._changed.wait_for(lambda: self._is_over, due - time.monotonic()):
                    return
            snapshot = self.monitor.look()
            with self._changed:
                self._snapshot, self._made = snapshot, {}
                self._number += 1
                self._changed.notify_all()


def brief(queue: QueueSeen) -> QueueSeen:
    return queue._replace(participants=(), pipelines=())
