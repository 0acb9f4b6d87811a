"""What the check asks of a history, wherever its rows are: work on each piece, and rows carried together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from queueduct.verification.check.part import Part

__all__ = ["Pieces", "Table", "packed"]

Piece_co = TypeVar("Piece_co", covariant=True)
Found = TypeVar("Found")
Carried = TypeVar("Carried")


class Pieces(Protocol[Piece_co]):
    """Work is a function of a module, or a partial of one: another process may have to do it."""

    def each(self, work: Callable[[Piece_co], Iterable[Found]]) -> list[Found]:
        """What the work finds in every piece, in the order of the pieces."""
        ...

    def mapped(self, work: Callable[[Piece_co], Iterable[Found]]) -> Pieces[Found]:
        """What it makes of every piece, as pieces."""
        ...

    def carried(
        self, split: Callable[[Piece_co], Iterable[tuple[int, Carried]]], tasks: int
    ) -> Pieces[tuple[int, list[Carried]]]:
        """One piece a task, and in it what was split off for the task, in the order of the pieces."""
        ...

    def kept(self) -> AbstractContextManager[Pieces[Piece_co]]:
        """The same, made once."""
        ...


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
