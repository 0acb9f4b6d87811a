"""What the check asks of a history, wherever its rows are: work on each piece, and rows carried together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar

from queueduct.verification.check.part import Part

__all__ = ["Carried", "Found", "Piece", "Pieces", "Table", "packed"]

Piece = TypeVar("Piece")
Found = TypeVar("Found")
Carried = TypeVar("Carried")


class Pieces(ABC, Generic[Piece]):
    """Work is a function of a module, or a partial of one: another process may have to do it."""

    @abstractmethod
    def each(self, work: Callable[[Piece], Iterable[Found]]) -> list[Found]:
        """What the work finds in every piece, in the order of the pieces."""

    @abstractmethod
    def mapped(self, work: Callable[[Piece], Iterable[Found]]) -> Pieces[Found]:
        """What it makes of every piece, as pieces."""

    @abstractmethod
    def carried(
        self, split: Callable[[Piece], Iterable[tuple[int, Carried]]], tasks: int
    ) -> Pieces[tuple[int, list[Carried]]]:
        """One piece a task, and in it what was split off for the task, in the order of the pieces."""

    @abstractmethod
    def kept(self) -> AbstractContextManager[Pieces[Piece]]:
        """The same, made once."""


Table = Pieces[Part]
"""A history."""


def packed(sizes: dict[Any, int], most: int) -> dict[Any, int]:
    """Each key's bucket: so many keys together, in their order, as have at most so many rows, or one."""
    found: dict[Any, int] = {}
    bucket = filled = 0
    for key in sorted(sizes):
        if filled and filled + sizes[key] > most:
            bucket, filled = bucket + 1, 0
        found[key] = bucket
        filled += sizes[key]
    return found
