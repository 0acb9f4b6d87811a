"""How a reader is doing, told from its last positions and lags alone, as Burrow does for Kafka: without thresholds."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from queueduct.monitoring.seen import Status

__all__ = ["Judge", "worst"]

SEVERITY = {status: number for number, status in enumerate(Status)}


def worst(statuses: Iterable[Status]) -> Status | None:
    """Returns the most severe of them, or None if there is none."""
    return max(statuses, key=SEVERITY.__getitem__, default=None)


class Look(NamedTuple):
    at: float
    committed: int
    lag: int


class Judge:
    """Keeps a window of looks at one reader."""

    __slots__ = ("_looks", "_window")

    def __init__(self, window: float) -> None:
        self._window = window
        self._looks: deque[Look] = deque()

    def look(self, at: float, committed: int, lag: int) -> None:
        """Adds a look. One that is older than the window stays, so that the window is covered."""
        looks = self._looks
        looks.append(Look(at, committed, lag))
        while len(looks) > 2 and looks[1].at <= at - self._window:
            looks.popleft()

    @property
    def speed(self) -> float:
        """Items a second that the reader has moved on by, over about the last second."""
        newest = self._looks[-1]
        before = next((look for look in reversed(self._looks) if look.at <= newest.at - 1), self._looks[0])
        return max(0, newest.committed - before.committed) / (newest.at - before.at) if newest.at > before.at else 0.0

    def status(self, *, is_attached: bool, is_dropped: bool) -> Status:
        """Judges an ephemeral reader, or a durable one."""
        if is_dropped:
            return Status.DROPPED
        if not is_attached:
            return Status.UNATTENDED
        looks = self._looks
        newest = looks[-1]
        if any(look.lag == 0 for look in looks):
            return Status.OK
        if looks[0].at > newest.at - self._window:
            return Status.UNKNOWN
        if all(look.committed == newest.committed for look in looks):
            return Status.STALLED
        # A reader that commits in batches has a lag that rises and falls: it is behind if both its edges rise.
        middle = newest.at - self._window / 2
        before = [look.lag for look in looks if look.at <= middle]
        after = [look.lag for look in looks if look.at > middle]
        return Status.BEHIND if min(before) < min(after) and max(before) < max(after) else Status.OK
