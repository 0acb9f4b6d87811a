"""Plans: which steps bring the fields of a record into Arrow's columns.

A field that is narrower than a word of 8 bytes is read together with its neighbours: their word is copied into scratch
memory, and split there into halves until each field has a column of its own. Reading each field of each record alone
takes several times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from queueduct.arrow.gather._gatherer import GatherPlan
from queueduct.arrow.schema import ARROW_UNITS

__all__ = ["Leaf", "Plan", "Unplanned"]

WORD = 8
NOWHERE = ("nowhere", 0)

Place = tuple[str, int]


class Unplanned(Exception):
    """A field that no step converts."""


class Leaf(NamedTuple):
    """A field of values, also one inside a record of the field or inside its arrays."""

    kind: str
    """As a shape's."""
    offset: int
    width: int
    values: int
    """Of one record."""
    column: int
    path: str
    is_swapped: bool
    is_points: bool
    is_utf8: bool


class Piece(NamedTuple):
    """At most 8 bytes of a record, and where they go."""

    offset: int
    width: int
    to: Place


class Plan:
    """The columns of some fields of a record."""

    def __init__(self, itemsize: int) -> None:
        self.itemsize = itemsize
        self.leaves: list[Leaf] = []
        self.nodes: list[tuple[int, int, int]] = []
        self.steps: list[tuple[str, int, int, Place, Place, Place]] = []
        self.scratch_bytes = 0
        self.fields = 0

    def add(self, dtype: np.dtype[Any], offset: int, target: pa.DataType, path: str) -> None:
        """Adds a column. Raises Unplanned, and adds nothing, if it has a value that no step converts."""
        leaves, nodes = len(self.leaves), len(self.nodes)
        try:
            self.add_node(dtype, offset, target, path)
        except Unplanned:
            del self.leaves[leaves:]
            del self.nodes[nodes:]
            raise
        self.fields += 1

    def add_node(self, dtype: np.dtype[Any], offset: int, target: pa.DataType, path: str) -> None:
        if dtype.names is not None:
            fields: dict[str, Any] = dict(dtype.fields or {})
            self.nodes.append((-1, 1, len(dtype.names)))
            for name, field in zip(dtype.names, target, strict=True):
                inner, inside = fields[name][:2]
                self.add_node(inner, offset + inside, field.type, f"{path}.{name}")
            return
        base, shape = dtype.subdtype or (dtype, ())
        count = 1
        for length in shape:
            self.nodes.append((-1, count, 1))
            count *= length
            target = target.value_type
        self.nodes.append((len(self.leaves), count, 0))
        self.leaves.append(leaf_of(base, offset, count, target, len(self.leaves), path))

    def finished(self) -> GatherPlan:
        """Returns the plan of all columns that were added."""
        pieces: list[Piece] = []
        later: list[tuple[str, int, int, Place, Place, Place]] = []
        for leaf in self.leaves:
            self.convert(leaf, pieces, later)
        self.copy(pieces)
        shapes = [(leaf.kind, leaf.width, leaf.values) for leaf in self.leaves]
        root = (-1, 1, self.fields)
        return GatherPlan(self.itemsize, self.scratch_bytes, [*self.steps, *later], shapes, [root, *self.nodes])

    def convert(self, leaf: Leaf, pieces: list[Piece], later: list[Any]) -> None:
        """Adds what the leaf needs to be copied, and the steps after that."""
        own, record = ("column", leaf.column), ("record", leaf.offset)
        if leaf.kind == "texts":
            self.convert_texts(leaf, pieces, later)
            return
        goes_on = leaf.kind in ("bits", "days")
        to = self.scratch(leaf.width * leaf.values) if goes_on else own
        if leaf.values == 1:
            pieces.append(Piece(leaf.offset, leaf.width, to))
        else:
            self.steps.append(("copy", leaf.width, leaf.values, record, to, NOWHERE))
        if goes_on:
            later.append((leaf.kind, leaf.width, leaf.values, to, own, NOWHERE))
        elif leaf.kind == "times":
            later.append(("times", leaf.width, leaf.values, own, NOWHERE, NOWHERE))
        elif leaf.is_swapped:
            later.append(("swap", leaf.width, leaf.values, own, NOWHERE, NOWHERE))

    def convert_texts(self, leaf: Leaf, pieces: list[Piece], later: list[Any]) -> None:
        own, record = ("column", leaf.column), ("record", leaf.offset)
        kind = "points" if leaf.is_points else "bytes"
        source = record
        if leaf.values != 1:
            source = self.scratch(leaf.width * leaf.values)
            self.steps.append(("copy", leaf.width, leaf.values, record, source, NOWHERE))
        elif kind == "bytes" and 0 < leaf.width <= WORD:
            kind, source = "words", self.scratch(WORD)
            if leaf.offset + WORD <= self.itemsize:
                pieces.append(Piece(leaf.offset, WORD, source))
            else:
                self.steps.append(("widen", leaf.width, 1, record, source, NOWHERE))
        later.append((kind, leaf.width, leaf.values, source, own, NOWHERE))

    def scratch(self, size: int) -> Place:
        place = ("scratch", self.scratch_bytes)
        self.scratch_bytes += size
        return place

    def copy(self, pieces: Sequence[Piece]) -> None:
        """Adds the steps that copy all pieces, as words where that is possible."""
        words = [piece for piece in pieces if piece.width == WORD]
        narrow = sorted(piece for piece in pieces if piece.width < WORD)
        splits: list[Any] = []
        while narrow:
            start = min(narrow[0].offset, self.itemsize - WORD)
            members = word_members(narrow, start)
            if len(members) < 2:
                members = narrow[:1]
                self.steps.append(("copy", members[0].width, 1, ("record", members[0].offset), members[0].to, NOWHERE))
            else:
                words.append(Piece(start, WORD, self.split(start, WORD, members, splits)))
            narrow = [piece for piece in narrow if piece not in members]
        words.sort()
        while words:
            first = words.pop(0)
            neighbour = next((word for word in words if word.offset == first.offset + WORD), None)
            if neighbour is None:
                self.steps.append(("copy", WORD, 1, ("record", first.offset), first.to, NOWHERE))
            else:
                words.remove(neighbour)
                self.steps.append(("pairs", WORD, 1, ("record", first.offset), first.to, neighbour.to))
        self.steps += splits

    def split(self, start: int, width: int, members: Sequence[Piece], splits: list[Any]) -> Place:
        """Returns where the word must go so that the splits bring its members where they belong."""
        if not members:
            return NOWHERE
        if members[0].width == width:
            return members[0].to
        place, half, at = self.scratch(width), width // 2, len(splits)
        lower = self.split(start, half, [one for one in members if one.offset < start + half], splits)
        upper = self.split(start + half, half, [one for one in members if one.offset >= start + half], splits)
        splits.insert(at, ("split", width, 1, place, lower, upper))
        return place


def word_members(pieces: Sequence[Piece], start: int) -> list[Piece]:
    """Returns the pieces that splits into halves get out of the word that starts there."""
    members: list[Piece] = []
    end = start
    for piece in pieces:
        inside = piece.offset - start
        if piece.offset >= end and inside % piece.width == 0 and inside + piece.width <= WORD and start >= 0:
            members.append(piece)
            end = piece.offset + piece.width
    return members


def leaf_of(dtype: np.dtype[Any], offset: int, count: int, target: pa.DataType, column: int, path: str) -> Leaf:
    kind, is_native = kind_of(dtype), dtype.isnative
    if kind is None or (not is_native and dtype.kind not in "iuf"):
        raise Unplanned(path)
    is_utf8 = kind == "texts" and pa.types.is_string(target)
    return Leaf(kind, offset, dtype.itemsize, count, column, path, not is_native, dtype.kind == "U", is_utf8)


def kind_of(dtype: np.dtype[Any]) -> str | None:
    """Returns the kind of a shape, or None for values that numpy has to convert."""
    if dtype.kind in "Mm":
        unit, step = np.datetime_data(dtype)
        if step != 1:
            return None
        if unit in ARROW_UNITS:
            return "times"
        return "days" if unit == "D" and dtype.kind == "M" else None
    return {"i": "values", "u": "values", "f": "values", "b": "bits", "S": "texts", "U": "texts"}.get(dtype.kind)
