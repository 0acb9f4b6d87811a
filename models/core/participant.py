"""What the participants of every model share: they end, and they may find a promise broken."""

from __future__ import annotations

from typing import NamedTuple, NoReturn, TypeVar

from models.core.search import Violation

Part = TypeVar("Part")


class PromiseBroken(Exception):
    """Raised by a step that sees, or does, what must never be."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.violation = Violation(kind, message)


class Ended(NamedTuple):
    at: str

    def run(self, world: object, me: int) -> NoReturn:
        raise AssertionError(f"a participant that ended takes no step: participant={me}, at={self.at}")


DEAD = Ended("dead")
FINISHED = Ended("finished")


def replaced(parts: tuple[Part, ...], index: int, part: Part) -> tuple[Part, ...]:
    return (*parts[:index], part, *parts[index + 1 :])
