"""What a queue must offer to be measured: the same few calls for ours and for every peer."""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar


@dataclass(frozen=True)
class Room:
    """What a queue is made from; every name it leaves behind carries the tag."""

    tag: str
    directory: Path
    capacity: int = 1024
    item_bytes: int = 64
    producers: int = 1
    consumers: int = 1


def nothing() -> None:
    """Finish a sender that has nothing to finish."""


@dataclass(frozen=True)
class Sender:
    """The calls of one producer."""

    put: Callable[[Any], object]
    put_many: Callable[[Sequence[Any]], object] | None = None
    finish: Callable[[], object] = nothing


@dataclass(frozen=True)
class Receiver:
    """The calls of one consumer; `get` waits until there is an item."""

    get: Callable[[], Any]
    get_many: Callable[[int], Sequence[Any]] | None = None


class Adapter(ABC):
    """One queue under test.

    The constructor runs in the process that then forks the workers;
    `sender` and `receiver` run in the worker that uses them.
    """

    name: ClassVar[str]
    requirement: ClassVar[str] = ""
    capacity: ClassVar[str] = ""
    note: ClassVar[str] = ""
    only_for: ClassVar[str] = ""

    def __init__(self, room: Room) -> None:
        self.room = room

    @classmethod
    def fits(cls, producers: int, consumers: int) -> bool:
        """Say whether the queue can carry this topology at all; `only_for` says why not."""
        return True

    @abstractmethod
    def sender(self, index: int) -> Sender:
        """The calls of a producer, in its own process."""

    @abstractmethod
    def receiver(self, index: int) -> Receiver:
        """The calls of a consumer, in its own process."""

    def close(self) -> None:
        """Remove what the queue has left in the system: nothing, as a rule."""
        return


def load(module: str) -> Any:
    """Import a peer when it is first used: one that is missing is a row, not an error."""
    return importlib.import_module(module)
