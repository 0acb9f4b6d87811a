"""Looks of a monitor, one or until something is seen."""

from __future__ import annotations

from collections.abc import Callable

from queueduct.monitoring import Detail, Monitor, ParticipantSeen, QueueSeen
from tests.support.deadline import until


def look(monitor: Monitor, name: str = "q") -> QueueSeen:
    found = monitor.look().queue(name)
    assert found is not None
    return found


def watched_until(monitor: Monitor, condition: Callable[[QueueSeen], object], name: str = "q") -> QueueSeen:
    """Looks every few milliseconds, as the views do more slowly."""
    seen: list[QueueSeen] = []

    def holds() -> object:
        seen[:] = [look(monitor, name)]
        return condition(seen[0])

    until(holds, "what a monitor should see")
    return seen[0]


def detail_of(monitor: Monitor, name: str = "q") -> Detail:
    found = monitor.detail(name)
    assert found is not None
    return found


def by_pid(seen: QueueSeen, pid: int) -> list[ParticipantSeen]:
    return [each for each in seen.participants if each.pid == pid]
