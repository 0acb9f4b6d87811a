"""What both forms of the demonstration do with the ticks: archive them, and make candles of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

__all__ = ["Accident", "Consumers", "Shown"]


class Shown(NamedTuple):
    """How far a consumer is."""

    name: str
    rows: int
    last: str
    """About its last batch."""


class Accident(NamedTuple):
    """A process that is killed on the way."""

    name: str
    kill: Callable[[], object]


class Consumers(Protocol):
    """Archives the ticks and makes candles of them, until the queue is shut down and everything in it is done."""

    def start(self) -> None:
        """Starts both, and waits until they hold the queue: no tick is put before that."""

    def is_warm(self) -> bool:
        """Returns true if both have worked off what was put first."""

    def check(self, seconds: float) -> None:
        """Waits at most that long. Raises an error that has ended one, and starts again what was killed."""

    def accidents(self) -> list[Accident]:
        """Returns what can be killed."""

    def shown(self) -> list[Shown]:
        """Returns what the display shows."""

    def is_done(self) -> bool:
        """Returns true if everything that was put is done. Asked after the shutdown of the queue."""

    def stop(self) -> None:
        """Ends both now."""
