"""The record of a run: a directory with manifest.json and Parquet files. What cannot be checked is refused by name."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.spark.pipelines.checking.verdict import HistoryError

__all__ = ["COLUMNS", "KINDS", "History", "read_history"]

KINDS = ("bounded", "growing", "overwriting", "slots", "events", "unbounded")
LIMITED = ("bounded", "slots", "overwriting")

COLUMNS = {
    "worker": "int",
    "op": "string",
    "outcome": "string",
    "value": "bigint",
    "ticket": "bigint",
    "invoke_ns": "bigint",
    "return_ns": "bigint",
    "reader": "int",
    "redelivered": "boolean",
    "weak": "boolean",
}
OPTIONAL = {"torn": "boolean"}
NULLABLE = ("value", "ticket", "return_ns", "reader", "redelivered", "weak", "torn")
UNFINISHED = (".tmp", ".temp", ".partial", ".part", ".inprogress", ".crc.tmp", ".recording")
RUN_KEYS = ("run", "run_id")


@dataclass(frozen=True)
class History:
    """A record that is whole, as far as its manifest and the ends of its files tell."""

    directory: Path
    kind: str
    capacity: int | None
    first_ticket: int
    manifest: dict[str, Any]
    files: tuple[tuple[str, ...], ...]
    """Grouped by their schema: a column without any value has no type in some files."""
    untyped: tuple[frozenset[str], ...]
    """For each group the columns that have no type, or are optional and absent."""
    operations: int


def read_history(directory: str | Path) -> History:
    folder = Path(directory)
    if not folder.is_dir():
        raise HistoryError(f"a history is a directory with manifest.json and Parquet files: {folder} is none")
    manifest = read_manifest(folder)
    kind = manifest.get("kind")
    if kind not in KINDS:
        raise HistoryError(f"manifest.json must name a kind that is known: kind={kind!r}; one of {', '.join(KINDS)}")
    groups: dict[tuple[str, frozenset[str]], list[str]] = {}
    operations = 0
    for path in data_files(folder, manifest):
        schema, rows = read_footer(path, manifest)
        groups.setdefault((str(schema), check_schema(path, schema)), []).append(str(path))
        operations += rows
    expected = manifest.get("operations", manifest.get("rows"))
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
        manifest=manifest,
        files=tuple(tuple(paths) for paths in groups.values()),
        untyped=tuple(untyped for _, untyped in groups),
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
        manifest = json.loads(path.read_text())
    except (ValueError, OSError) as error:
        raise HistoryError(f"manifest.json must be JSON: {path}: {error}; record the run again") from error
    if not isinstance(manifest, dict):
        raise HistoryError(f"manifest.json must be an object: it is a {type(manifest).__name__}; record the run again")
    state = str(manifest.get("state", manifest.get("status", "finished")))
    if state not in ("finished", "complete", "done", "ok"):
        raise HistoryError(f"the run must have finished: manifest.json says {state!r}; wait for its end")
    if manifest.get("finished") is False or manifest.get("complete") is False:
        raise HistoryError("the run must have finished: manifest.json says that it has not; wait for its end")
    return manifest


def whole_number(manifest: dict[str, Any], name: str, least: int) -> int | None:
    number = manifest.get(name)
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise HistoryError(f"{name} in manifest.json must be a whole number from {least} on, or null: {number!r}")
    return number


def data_files(folder: Path, manifest: dict[str, Any]) -> list[Path]:
    for path in sorted(folder.rglob("*")):
        if path.name.endswith(UNFINISHED) or path.name == "_temporary":
            raise HistoryError(f"a finished history has no temporary files: {path}; wait for the end of the run")
    found = [path for path in sorted(folder.rglob("*.parquet")) if path.is_file()]
    if not found:
        raise HistoryError(f"a history has Parquet files: {folder} has none; record the run again")
    listed = manifest.get("files")
    if isinstance(listed, list) and all(isinstance(name, str) for name in listed):
        there = {str(path.relative_to(folder)) for path in found}
        for name in sorted(set(listed) - there):
            raise HistoryError(
                f"every file that manifest.json lists must be there: {name} is not; record the run again"
            )
        for name in sorted(there - set(listed)):
            raise HistoryError(
                f"a history is of one run: manifest.json does not list {name}; give each run a directory of its own"
            )
    return found


def read_footer(path: Path, manifest: dict[str, Any]) -> tuple[pa.Schema, int]:
    try:
        with pq.ParquetFile(path) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
            check_extent(path, file.metadata)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise HistoryError(f"every Parquet file must be whole: {path}: {reason}; record the run again") from error
    own = {key.decode(): value.decode() for key, value in (schema.metadata or {}).items() if key.decode() in RUN_KEYS}
    for key in RUN_KEYS:
        if key in own and manifest.get(key) is not None and own[key] != str(manifest[key]):
            raise HistoryError(
                f"a history is of one run: {path} is of {own[key]}, manifest.json of {manifest[key]}; "
                f"give each run a directory of its own"
            )
    return schema.remove_metadata(), rows


def check_extent(path: Path, metadata: Any) -> None:
    """The footer may be whole where the data is not."""
    size = path.stat().st_size
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(column)
            begin = chunk.dictionary_page_offset or chunk.data_page_offset
            if begin + chunk.total_compressed_size > size:
                raise HistoryError(f"every Parquet file must be whole: {path} ends too soon; record the run again")


def check_schema(path: Path, schema: pa.Schema) -> frozenset[str]:
    """Are the columns there, of their types? Returns those that have no type, since they have no values."""
    untyped = set()
    for name, wanted in (COLUMNS | OPTIONAL).items():
        if name not in schema.names:
            if name in OPTIONAL:
                untyped.add(name)
                continue
            raise HistoryError(f"a history has the columns {', '.join(COLUMNS)}: {path} has no {name}")
        kind = schema.field(name).type
        if pa.types.is_null(kind) and name in NULLABLE:
            untyped.add(name)
        elif not fits(kind, wanted):
            raise HistoryError(f"the column {name} must be {wanted}: in {path} it is {kind}; write it as {wanted}")
    return frozenset(untyped)


def fits(kind: pa.DataType, wanted: str) -> bool:
    if wanted == "string":
        inner = kind.value_type if pa.types.is_dictionary(kind) else kind
        return bool(pa.types.is_string(inner) or pa.types.is_large_string(inner))
    if wanted == "boolean":
        return bool(pa.types.is_boolean(kind))
    return bool(pa.types.is_integer(kind) and not pa.types.is_uint64(kind))
