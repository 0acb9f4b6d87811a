"""Reads an archive by position, whoever wrote it: ``record``, or Spark's ``archive``.

Files, and the groups of rows in them, come in the order of their first positions. Where their ranges overlap, rows are
kept back until no later group can have a smaller position. A few groups are read ahead, each in a thread, which makes
records of some tens of thousands of rows at a time: what the processor's cache holds, and memory that is used again.

Spark's files count only if its log of the batches, ``_spark_metadata``, has them: others are left of tasks that failed.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc  # now: its first use would take the time of the replay
import pyarrow.parquet as pq

from queueduct import BoundedQueue
from queueduct.arrow.records import chosen_columns, values_of
from queueduct.arrow.sources import records_from
from queueduct.errors import ShutDown
from queueduct.items.types import ItemType
from queueduct.recording.archive import ArchiveFile, Facts, facts_of, footer
from queueduct.recording.columns import POSITION, RECORDED

__all__ = ["Chunk", "Recording"]

SPARK_LOG = "_spark_metadata"
SPARK_NULL = "__HIVE_DEFAULT_PARTITION__"
READERS = min(4, max(2, os.cpu_count() or 2))  # threads, of which each reads a group
PIECE_ROWS, PIECE_BYTES = 1 << 16, 4 << 20  # that become records at a time
PIECES_AHEAD = 4  # of each group


class Group(NamedTuple):
    """A row group of a file, by its positions."""

    first: int
    last: int
    path: Path
    number: int


def is_rising(positions: np.ndarray[Any, Any]) -> bool:
    return bool((positions[1:] > positions[:-1]).all())  # np.diff takes ten times as long


class Chunk(NamedTuple):
    """Items by rising position, and when each is due."""

    items: Any
    """An array of records, or a list of bytes."""
    positions: np.ndarray[Any, Any]
    times_ns: np.ndarray[Any, Any] | None

    def __len__(self) -> int:
        return len(self.positions)

    def part(self, start: int, stop: int | None = None) -> Chunk:
        rows = slice(start, stop)
        times = None if self.times_ns is None else self.times_ns[rows]
        return Chunk(self.items[rows], self.positions[rows], times)

    def taken(self, rows: np.ndarray[Any, Any]) -> Chunk:
        items = self.items[rows] if isinstance(self.items, np.ndarray) else [self.items[row] for row in rows]
        return Chunk(items, self.positions[rows], None if self.times_ns is None else self.times_ns[rows])

    @classmethod
    def sorted(cls, chunks: Sequence[Chunk]) -> Chunk:
        """Returns all rows as one chunk, by position."""
        if len(chunks) == 1:
            found = chunks[0]
        else:
            is_array = isinstance(chunks[0].items, np.ndarray)
            times = [chunk.times_ns for chunk in chunks if chunk.times_ns is not None]
            found = cls(
                np.concatenate([chunk.items for chunk in chunks])
                if is_array
                else [item for chunk in chunks for item in chunk.items],
                np.concatenate([chunk.positions for chunk in chunks]),
                np.concatenate(times) if times else None,
            )
        if is_rising(found.positions):
            return found
        found = found.taken(np.argsort(found.positions, kind="stable"))
        again = np.flatnonzero(found.positions[1:] == found.positions[:-1])
        if len(again):
            raise ValueError(
                f"an archive has each position once: position {found.positions[again[0]]} is there twice; "
                "take out the files of another queue, or of an earlier archive"
            )
        return found


class Piece(NamedTuple):
    """Rows of a group."""

    chunk: Chunk
    following: int | None
    """The position of the group's next row; None if there is none."""


class Recording:
    """An archive, to be read."""

    def __init__(self, directory: str | Path, position_column: str | None = None) -> None:
        self.directory = Path(directory)
        self.paths = parquet_files(self.directory)
        self.facts: Facts | None = facts_of(self.paths[0], footer(self.paths[0]))
        named = POSITION if self.facts is None else self.facts.position_column
        self.position_column = position_column or named

    @property
    def item(self) -> Any:
        """The items' type as ``create`` takes it; None if the archive does not say it, as Spark's."""
        return None if self.facts is None else self.facts.item.spec

    def check(self, item: Any, time: str | None, is_timed: bool) -> None:
        """Raises unless the archive has items of this type, and the time that is asked for."""
        if self.item is not None and ItemType.of(item).text != ItemType.of(self.item).text:
            raise TypeError(
                f"a queue must have the items that were recorded: it has {item}, and {self.directory} has {self.item}; "
                "create another one, as with --create"
            )
        names = [*pq.read_schema(self.paths[0]).names, *partition_of(self.paths[0], self.directory)]
        own = {self.position_column, RECORDED if self.facts is None else self.facts.recorded_column}
        if self.position_column not in names:
            raise ValueError(
                f"an archive has a column of positions: {self.position_column!r} is none of {', '.join(names)}; "
                "name it with position_column (--position-column)"
            )
        chosen_columns([name for name in names if name not in own], item)
        if time is not None and not (isinstance(item, np.dtype) and time in (item.names or ()) and is_time(item[time])):
            times = [name for name in getattr(item, "names", None) or () if is_time(item[name])]
            raise ValueError(
                f"the time must be a field of type M8: time={time!r}; there is {', '.join(times) or 'none'}"
            )
        if is_timed and time is None and (self.facts is None or self.facts.recorded_column is None):
            raise ValueError(
                f"{self.directory} does not say when its items were recorded; name a field of theirs with time "
                "(--time), or replay at the speed 'max'"
            )

    def chunks(self, item: Any, time: str | None, *, is_timed: bool, start: int = 0) -> Iterator[Chunk]:
        """Yields all items from a position on, in order. ``time`` is a field; by default the recorded time counts."""
        kept: list[Chunk] = []
        reached = -1
        with ThreadPoolExecutor(READERS, "queueduct-replay") as readers:
            for chunk, bound in self.read_ahead(readers, item, time, is_timed, start):
                kept.append(chunk)
                found = Chunk.sorted(kept)
                ready = len(found) if bound is None else int(np.searchsorted(found.positions, bound))
                kept = [found.part(ready)] if ready < len(found) else []
                out = found.part(int(np.searchsorted(found.positions[:ready], start)), ready)
                if not len(out):
                    continue
                if out.positions[0] <= reached:
                    raise ValueError(
                        f"an archive has each position once: position {out.positions[0]} is there twice; take out the "
                        "files of another queue, or of an earlier archive"
                    )
                reached = int(out.positions[-1])
                yield out

    def read_ahead(
        self, readers: ThreadPoolExecutor, item: Any, time: str | None, is_timed: bool, start: int
    ) -> Iterator[tuple[Chunk, int | None]]:
        """Yields the rows of each group, and the first position that may come after them."""
        groups = (group for group in self.groups() if group.last >= start)
        waiting: deque[tuple[Group, BoundedQueue[Any]]] = deque()
        try:
            while True:
                while len(waiting) < READERS and (group := next(groups, None)) is not None:
                    pieces: BoundedQueue[Any] = BoundedQueue(PIECES_AHEAD)
                    readers.submit(self.read, group, item, time, is_timed, pieces)
                    waiting.append((group, pieces))
                if not waiting:
                    return
                _, pieces = waiting[0]
                following = waiting[1][0].first if len(waiting) > 1 else None
                while (piece := pieces.get()) is not None:
                    if isinstance(piece, BaseException):
                        raise piece
                    bounds = [bound for bound in (piece.following, following) if bound is not None]
                    yield piece.chunk, min(bounds, default=None)
                waiting.popleft()
        finally:
            for _, pieces in waiting:
                pieces.shutdown(immediate=True)

    def groups(self) -> Iterator[Group]:
        """Yields all row groups by their first positions; reads footers only when their turn has come."""
        near: list[ArchiveFile] = []
        for file in sorted(ArchiveFile.of(path) or self.ranged(path) for path in self.paths):
            if near and file.first > max(each.last for each in near):
                yield from sorted(group for each in near for group in self.groups_of(each.path))
                near = []
            near.append(file)
        yield from sorted(group for each in near for group in self.groups_of(each.path))

    def ranged(self, path: Path) -> ArchiveFile:
        groups = list(self.groups_of(path)) or [Group(0, -1, path, 0)]
        return ArchiveFile(min(group.first for group in groups), max(group.last for group in groups), path)

    def groups_of(self, path: Path) -> Iterator[Group]:
        found = footer(path)
        columns = [found.schema.column(index).path for index in range(found.num_columns)]
        if self.position_column not in columns:
            raise ValueError(
                f"each file of an archive has the column of positions: {path} has no {self.position_column!r}; take it "
                "out of the archive, or name the column with position_column (--position-column)"
            )
        column = columns.index(self.position_column)
        for number in range(found.num_row_groups):
            if found.row_group(number).num_rows == 0:
                continue
            statistics = found.row_group(number).column(column).statistics
            if statistics is not None and statistics.has_min_max:
                yield Group(statistics.min, statistics.max, path, number)
                continue
            with pq.ParquetFile(path) as file:
                found_positions = file.read_row_group(number, [self.position_column], use_threads=False)
                positions = values_of(one_array(found_positions, self.position_column))
            yield Group(int(positions.min()), int(positions.max()), path, number)

    def read(self, group: Group, item: Any, time: str | None, is_timed: bool, pieces: BoundedQueue[Any]) -> None:
        """Puts the pieces of a group, and None at the end, or an error. Runs in a thread."""
        with contextlib.suppress(ShutDown):  # nobody takes them any more
            try:
                for piece in self.pieces(group, item, time, is_timed):
                    pieces.put(piece)
                pieces.put(None)
            except ShutDown:
                raise
            except BaseException as error:  # it is raised where the pieces are taken
                pieces.put(error)

    def pieces(self, group: Group, item: Any, time: str | None, is_timed: bool) -> Iterator[Piece]:
        """Yields the rows of a group in pieces if they are in the order of their positions, else as one."""
        named = partition_of(group.path, self.directory)
        texts = [name for name in getattr(item, "names", None) or () if item[name].kind == "S" and name not in named]
        recorded = RECORDED if self.facts is None else self.facts.recorded_column
        unread = {self.position_column} | ({recorded} if not is_timed or time is not None else set())
        with pq.ParquetFile(group.path, read_dictionary=texts, coerce_int96_timestamp_unit="us") as file:
            number = group.number
            read = file.read_row_group(number, [self.position_column], use_threads=False)
            positions = values_of(one_array(read, self.position_column))
            columns = [name for name in file.schema_arrow.names if name not in unread] or [self.position_column]
            if is_rising(positions):
                batches = file.iter_batches(piece_rows(item), [number], columns, use_threads=False)
                tables: Iterable[pa.Table] = (pa.Table.from_batches([batch]) for batch in batches)
            else:
                tables = [file.read_row_group(number, columns, use_threads=False)]
            stop = 0
            for table in tables:
                start, stop = stop, stop + table.num_rows
                following = int(positions[stop]) if stop < len(positions) else None
                chunk = self.chunk(table, positions[start:stop], item, time, is_timed, named)
                yield Piece(chunk, following)

    def chunk(
        self,
        table: pa.Table,
        positions: np.ndarray[Any, Any],
        item: Any,
        time: str | None,
        is_timed: bool,
        named: dict[str, str | None],
    ) -> Chunk:
        """Returns rows as records. ``named`` are the columns of directories' names."""
        for name, value in named.items():
            table = table.append_column(name, pa.repeat(pa.scalar(value, pa.string()), table.num_rows))
        recorded = RECORDED if self.facts is None else self.facts.recorded_column
        times = None
        if is_timed and time is None:
            times = values_of(one_array(table, recorded).view(pa.int64())) * 1000
        own = {self.position_column, recorded}
        chosen = table.select([name for name in table.column_names if name not in own])
        records = records_from(typed(chosen, item, named), item)
        if is_timed and time is not None:
            times = records[time].astype("M8[ns]").astype(np.int64)
        return Chunk(records, positions, times)


def piece_rows(item: Any) -> int:
    return PIECE_ROWS if item is bytes else max(1, min(PIECE_ROWS, PIECE_BYTES // max(1, item.itemsize)))


def one_array(table: pa.Table, name: str | None) -> pa.Array:
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def is_time(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "M" and dtype.subdtype is None


def parquet_files(directory: Path) -> list[Path]:
    """Returns the files that count, one at least."""
    if not directory.is_dir():
        raise FileNotFoundError(f"an archive is a directory: there is none at {directory}")
    found = [
        path
        for path in sorted(directory.rglob("*.parquet"))
        if not any(part[0] in "._" for part in path.relative_to(directory).parts)
    ]
    if (directory / SPARK_LOG).is_dir():
        counted = spark_files(directory / SPARK_LOG)
        found = [path for path in found if path.name in counted]
        if missing := counted - {path.name for path in found}:
            raise FileNotFoundError(f"Spark has written {min(missing)}, and {directory} has it no more")
    if not found:
        raise FileNotFoundError(f"an archive has Parquet files: there is none in {directory}; record into it first")
    return found


def spark_files(log: Path) -> set[str]:
    """Returns the names of the files that Spark's log has. A compact entry repeats what all before it have."""
    entries: dict[int, Path] = {}
    for path in log.iterdir():
        batch, _, kind = path.name.partition(".")
        if batch.isdecimal() and kind in ("", "compact"):
            entries[int(batch)] = path
    compact = max((number for number, path in entries.items() if path.suffix == ".compact"), default=-1)
    names: set[str] = set()
    for number in sorted(number for number in entries if number >= compact):
        for line in entries[number].read_text().splitlines()[1:]:  # the first one is the version
            found = json.loads(line)
            name = unquote(urlparse(found["path"]).path).rpartition("/")[2]
            if found.get("action", "add") == "add":
                names.add(name)
            else:
                names.discard(name)
    return names


def partition_of(path: Path, directory: Path) -> dict[str, str | None]:
    """Returns the columns that Spark keeps in the names of directories."""
    pairs = [part.partition("=") for part in path.relative_to(directory).parts[:-1]]
    return {name: None if value == SPARK_NULL else unquote(value) for name, equals, value in pairs if equals}


def typed(table: pa.Table, item: Any, texts: dict[str, str | None]) -> pa.Table:
    """Returns the table with the columns of directories' names, which are texts, as the item has them."""
    for name in texts:
        dtype = item[name]
        if dtype.kind not in "SU":
            wanted = pa.timestamp("us") if dtype.kind == "M" else pa.from_numpy_dtype(dtype)
            table = table.set_column(table.column_names.index(name), name, pc.cast(table.column(name), wanted))
    return table
