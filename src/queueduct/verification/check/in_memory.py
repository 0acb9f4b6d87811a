"""A history that fits in memory: one piece, and all work is done here."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator

from queueduct.verification.check.part import Part
from queueduct.verification.check.table import Carried, Piece, Pieces, Result
from queueduct.verification.history.format import History
from queueduct.verification.history.reader import read_parts

__all__ = ["InMemoryTable", "read_whole"]


def read_whole(history: History) -> InMemoryTable[Part]:
    parts = [Part.of(batch, history) for file in history.files for batch in read_parts(file)]
    return InMemoryTable([Part.joined(parts)] if parts else [])


class InMemoryTable(Pieces[Piece]):
    def __init__(self, pieces: list[Piece]) -> None:
        self.pieces = pieces

    def each(self, work: Callable[[Piece], Iterable[Result]]) -> list[Result]:
        return [found for piece in self.pieces for found in work(piece)]

    def mapped(self, work: Callable[[Piece], Iterable[Result]]) -> InMemoryTable[Result]:
        return InMemoryTable(self.each(work))

    def carried(
        self, split: Callable[[Piece], Iterable[tuple[int, Carried]]], tasks: int
    ) -> InMemoryTable[tuple[int, list[Carried]]]:
        found: list[list[Carried]] = [[] for _ in range(tasks)]
        for task, carried in self.each(split):
            found[task].append(carried)
        return InMemoryTable(list(enumerate(found)))

    @contextlib.contextmanager
    def kept(self) -> Iterator[InMemoryTable[Piece]]:
        yield self
