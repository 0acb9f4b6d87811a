"""The record of a run: a directory with manifest.json and Parquet files. An error names what cannot be checked."""

from __future__ import annotations

import json
import posixpath
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from queueduct.segments.kinds import KINDS as REGISTERED
from queueduct.verification.history import COLUMNS

__all__ = ["COLUMNS", "KINDS", "DataFile", "History", "HistoryError", "read_history"]

KINDS = (*REGISTERED, "unbounded")
LIMITED = tuple(kind.name for kind in REGISTERED.values() if kind.has_capacity)
FARTHEST = 1 << 62
"""Positions and capacities stay below it, and times this near to 0: then a sum of two fits 64 bits."""

OPTIONAL = {"torn": "bool"}
NULLABLE = ("value", "ticket", "return_ns", "reader", "redelivered", "weak", "torn")
ENDINGS = (".parquet", ".parq", ".pq")
UNFINISHED = (".tmp", ".temp", ".partial", ".part", ".inprogress", ".crc.tmp", ".recording")
ENDED = ("finished", "complete", "completed", "done", "ok", "success", "succeeded")
RUN_KEYS = ("run", "run_id")


class HistoryError(ValueError):
    """The history cannot be checked as it is: the message names the rule, the value, and what to do."""


@dataclass(frozen=True)
class DataFile:
    """A file that has rows."""

    path: str
    row_groups: int
    untyped: frozenset[str]
    """The columns that have no type, since they have no values, or are optional and absent."""


@dataclass(frozen=True)
class History:
    """A record that is complete, as far as its manifest and the footers of its files tell."""

    directory: Path
    kind: str
    capacity: int | None
    first_ticket: int
    files: tuple[DataFile, ...]
    operations: int


def read_history(directory: str | Path) -> History:
    folder = Path(directory)
    if not folder.is_dir():
        raise HistoryError(f"a history is a directory with manifest.json and Parquet files: {folder} is none")
    manifest = read_manifest(folder)
    kind = manifest.get("kind")
    if kind not in KINDS:
        raise HistoryError(f"manifest.json must name a kind that is known: kind={kind!r}; one of {', '.join(KINDS)}")
    files: list[DataFile] = []
    operations = 0
    runs: dict[str, tuple[str, str]] = {}
    for path in data_files(folder, manifest):
        metadata, schema = read_footer(path)
        check_run(path, schema.metadata or {}, manifest, runs)
        untyped = check_schema(path, schema, metadata.num_rows)
        if metadata.num_rows:
            files.append(DataFile(str(path.absolute()), metadata.num_row_groups, untyped))
        operations += metadata.num_rows
    expected = manifest.get("operations")
    if isinstance(expected, int) and not isinstance(expected, bool) and expected != operations:
        raise HistoryError(
            f"the files must have the operations that manifest.json counts: {operations:,} of {expected:,}; "
            f"record the run again, or give each run a directory of its own"
        )
    return History(
        directory=folder,
        kind=str(kind),
        capacity=whole_number(manifest, "capacity", least=1),
        first_ticket=whole_number(manifest, "first_ticket", least=0) or 0,
        files=tuple(files),
        operations=operations,
    )


def read_manifest(folder: Path) -> dict[str, Any]:
    found = sorted(folder.rglob("manifest*.json"))
    if len(found) > 1:
        names = ", ".join(str(path.relative_to(folder)) for path in found[:3])
        raise HistoryError(f"a history is of one run: it has {names}; give each run a directory of its own")
    path = folder / "manifest.json"
    if not path.is_file():
        raise HistoryError(
            f"a finished history has manifest.json, which is written last: {folder} has none; "
            f"wait for the end of the run, or record it again"
        )
    try:
        manifest = json.loads(path.read_text(encoding="utf-8-sig"))
    except RecursionError as error:
        raise HistoryError(f"manifest.json must be an object: {path} nests too deep; record the run again") from error
    except (ValueError, OSError) as error:
        raise HistoryError(f"manifest.json must be JSON: {path}: {error}; record the run again") from error
    if not isinstance(manifest, dict):
        raise HistoryError(f"manifest.json must be an object: it is a {type(manifest).__name__}; record the run again")
    for key in ("state", "status"):
        state = manifest.get(key)
        if state is not None and str(state).lower() not in ENDED:
            raise HistoryError(f"the run must have finished: manifest.json says {key} {state!r}; wait for its end")
    if manifest.get("finished") is False or manifest.get("complete") is False:
        raise HistoryError("the run must have finished: manifest.json says that it has not; wait for its end")
    return manifest


def whole_number(manifest: dict[str, Any], name: str, least: int) -> int | None:
    number = manifest.get(name)
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise HistoryError(f"{name} in manifest.json must be a whole number from {least} on, or null: {number!r}")
    if number >= FARTHEST:
        raise HistoryError(f"{name} in manifest.json must be below 2^62: {number!r}; write null if there is no limit")
    return number


def data_files(folder: Path, manifest: dict[str, Any]) -> list[Path]:
    for path in sorted(folder.rglob("*")):
        if path.name.endswith(UNFINISHED) or path.name == "_temporary":
            raise HistoryError(f"a finished history has no temporary files: {path}; wait for the end of the run")
    found = [path for path in sorted(folder.rglob("*")) if path.name.lower().endswith(ENDINGS) and path.is_file()]
    if not found:
        raise HistoryError(f"a history has Parquet files: {folder} has none; record the run again")
    listed = manifest.get("files")
    if isinstance(listed, list) and all(isinstance(name, str) for name in listed):
        there = {str(path.relative_to(folder)) for path in found}
        known = {posixpath.normpath(name) for name in listed} - {"manifest.json"}
        for name in sorted(known - there):
            raise HistoryError(
                f"every file that manifest.json lists must be there: {name} is not; record the run again"
            )
        for name in sorted(there - known):
            raise HistoryError(
                f"a history is of one run: manifest.json does not list {name}; give each run a directory of its own"
            )
    return found


def read_footer(path: Path) -> tuple[Any, pa.Schema]:
    """Returns Parquet's description of the file and Arrow's."""
    try:
        with pq.ParquetFile(path) as file:
            check_extent(path, file.metadata)
            return file.metadata, file.schema_arrow
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise HistoryError(f"every Parquet file must be whole: {path}: {reason}; record the run again") from error


def check_run(
    path: Path, texts: dict[bytes, bytes], manifest: dict[str, Any], runs: dict[str, tuple[str, str]]
) -> None:
    """``runs``: what the manifest and the files before this one say, and which of them does."""
    for key in (key for key in RUN_KEYS if key.encode() in texts):
        run = texts[key.encode()].decode(errors="replace")
        if manifest.get(key) is not None:
            runs.setdefault(key, (str(manifest[key]), "manifest.json"))
        before, where = runs.setdefault(key, (run, str(path)))
        if run != before:
            raise HistoryError(
                f"a history is of one run: {path} is of {run}, {where} of {before}; "
                f"give each run a directory of its own"
            )


def check_extent(path: Path, metadata: Any) -> None:
    """Checks the data: the footer may be complete where the data is not."""
    size = path.stat().st_size
    numbers = product(range(metadata.num_row_groups), range(metadata.num_columns))
    for chunk in (metadata.row_group(group).column(column) for group, column in numbers):
        begin = chunk.dictionary_page_offset or chunk.data_page_offset
        if begin + chunk.total_compressed_size > size:
            raise HistoryError(f"every Parquet file must be whole: {path} ends too soon; record the run again")


def check_schema(path: Path, schema: pa.Schema, rows: int) -> frozenset[str]:
    """Raises unless all columns are there, with their types. Returns those without a type: they have no values."""
    untyped = set()
    for name, wanted in (COLUMNS | OPTIONAL).items():
        number = schema.names.count(name)
        if number > 1:
            raise HistoryError(f"a history has each column once: {path} has {number} named {name}; write one of them")
        if not number:
            if name in OPTIONAL:
                untyped.add(name)
                continue
            raise HistoryError(f"a history has the columns {', '.join(COLUMNS)}: {path} has no {name}")
        kind = schema.field(name).type
        if pa.types.is_null(kind) and (name in NULLABLE or not rows):
            untyped.add(name)
        elif not fits(kind, wanted):
            raise HistoryError(f"the column {name} must be {wanted}: in {path} it is {kind}; write it as {wanted}")
    return frozenset(untyped)


def fits(kind: pa.DataType, wanted: str) -> bool:
    """Accepts floats too: pandas makes them of whole numbers and nulls. The reader checks that they are whole."""
    if wanted == "string":
        inner = kind.value_type if pa.types.is_dictionary(kind) else kind
        return bool(pa.types.is_string(inner) or pa.types.is_large_string(inner) or pa.types.is_string_view(inner))
    if wanted == "bool":
        return bool(pa.types.is_boolean(kind))
    return bool(pa.types.is_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind))
