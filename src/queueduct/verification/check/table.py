"""The interface to a history in memory or on Spark: work on each piece, and rows carried to a common task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar

from queueduct.verification.check.part import Part

__all__ = ["Carried", "Piece", "Pieces", "Result", "Table", "packed"]

Piece = TypeVar("Piece")
Result = TypeVar("Result")
Carried = TypeVar("Carried")


class Pieces(ABC, Generic[Piece]):
    """Pieces of a history. Work is a function of a module, or a partial of one: another process may run it."""

    @abstractmethod
    def each(self, work: Callable[[Piece], Iterable[Result]]) -> list[Result]:
        """Returns the results of every piece, in the order of the pieces."""

    @abstractmethod
    def mapped(self, work: Callable[[Piece], Iterable[Result]]) -> Pieces[Result]:
        """Returns the results of every piece, as pieces."""

    @abstractmethod
    def carried(
        self, split: Callable[[Piece], Iterable[tuple[int, Carried]]], tasks: int
    ) -> Pieces[tuple[int, list[Carried]]]:
        """Returns one piece for each task, of the parts that were split off for it, in the order of the pieces."""

    @abstractmethod
    def kept(self) -> AbstractContextManager[Pieces[Piece]]:
        """Returns the same pieces, computed once."""


Table = Pieces[Part]
"""The rows of a history."""


def packed(sizes: dict[Any, int], most: int) -> dict[Any, int]:
    """Returns each key's bucket: consecutive keys with at most ``most`` rows together, or a single key."""
    found: dict[Any, int] = {}
    bucket = filled = 0
    for key in sorted(sizes):
        if filled and filled + sizes[key] > most:
            bucket, filled = bucket + 1, 0
        found[key] = bucket
        filled += sizes[key]
    return found
