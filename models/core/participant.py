"""What the participants of every model share: they end, and they may find a promise broken."""

from __future__ import annotations

from typing import NamedTuple, NoReturn, Protocol, TypeVar

from models.core.search import Violation

Part = TypeVar("Part")
World = TypeVar("World", contravariant=True)
Outcome = TypeVar("Outcome", covariant=True)


class Step(Protocol[World, Outcome]):
    """The next atomic step of a participant: program counter and registers in one.

    Steps are named tuples, and tuples of different classes with equal fields are equal.
    So each class has a last field `at` with its own name, which also labels the trace.
    """

    @property
    def at(self) -> str: ...

    def run(self, world: World, me: int) -> Outcome: ...


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
