"""Rows on their way to a queue: each attempt of a task writes a file, and the commit puts the files that won.

::

    <staging directory>/<queue>-<its id>/
        stream-<query id>/            one query; or producer-<name>/; or batch-<driver>-<number>/, one unnamed write
            <batch>-<partition>-<random>.rows
            <batch>.files             which of them are being put; written before the first is
            <batch>.done              how many rows the last batch had that was put
        batch-….done                  an unnamed write that is over: what a task still writes is removed

A batch that Spark repeats after a crash may come in another order, or in other partitions. A commit that was begun must
end with the same rows: so if there is a ``.files``, its files are put, and not those of the repetition.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from queueduct.arrow.schema import dtype_of
from queueduct.spark.private import make_private, replace_text

__all__ = ["Folder", "clean_up", "read_rows", "staging_root", "unnamed_folder"]

BYTES_SCHEMA = pa.schema([pa.field("value", pa.binary(), nullable=False)])


def staging_root(chosen: str | None, queue: str, segment: str) -> Path:
    """Returns the directory in which all writes to this queue are staged, private to this user."""
    base = Path(chosen) if chosen else Path(tempfile.gettempdir(), f"queueduct-staging-{os.geteuid()}")
    root = make_private(base, "stagingDir") / f"{queue}-{segment[:12]}"
    root.mkdir(mode=0o700, exist_ok=True)
    return root


@dataclass(frozen=True)
class Folder:
    """The staged rows of one producer."""

    path: Path

    def write(self, batch: int, partition: int, parts: Iterable[Any]) -> tuple[str, int]:
        """Writes one attempt's rows. Returns its file's name, and how many rows it has."""
        self.path.mkdir(mode=0o700, exist_ok=True)
        name = f"{batch}-{partition}-{secrets.token_hex(8)}.rows"
        path = self.path / name
        try:
            rows = write_rows(path, parts)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        if self.is_done():  # the write was aborted while this task still ran
            self.remove()
        return name, rows

    def begin(self, batch: int, names: list[str]) -> list[str]:
        """Returns the files to put for this batch, in order: those of a commit that was begun, else these."""
        record = self.path / f"{batch}.files"
        if record.exists():
            begun: list[str] = json.loads(record.read_text())
            if all((self.path / name).exists() for name in begun):
                return begun
        replace_text(record, json.dumps(names))
        return names

    def finish(self, batch: int) -> None:
        """Removes the files of this batch and of all before it, also those of late tasks."""
        (self.path / f"{batch}.files").unlink(missing_ok=True)  # first: with its files gone it would mislead
        for path in self.path.iterdir():
            if path.suffix != ".done" and int(path.name.split("-")[0].split(".")[0]) <= batch:
                path.unlink(missing_ok=True)

    def note_done(self, batch: int, rows: int) -> None:
        """Notes the batch before its files are removed: a repetition is known by its number and its number of rows."""
        replace_text(self.done_note(batch), str(rows))
        for older in self.path.glob("*.done"):
            if int(older.stem) < batch:
                older.unlink(missing_ok=True)

    def done_note(self, batch: int) -> Path:
        return self.path / f"{batch}.done"

    def rows_done(self, batch: int) -> int | None:
        """Returns the number of rows of a batch that was put; None if that is no longer known."""
        try:
            return int(self.done_note(batch).read_text())
        except FileNotFoundError:
            return None

    def discard(self, names: Iterable[str]) -> None:
        for name in names:
            (self.path / name).unlink(missing_ok=True)

    def remove(self) -> None:
        """Ends an unnamed write, whether it succeeded or not."""
        self.path.with_suffix(".done").touch()
        shutil.rmtree(self.path, ignore_errors=True)

    def is_done(self) -> bool:
        return self.path.with_suffix(".done").exists()


def write_rows(path: Path, parts: Iterable[Any]) -> int:
    """Records as they are in memory; byte strings as an Arrow file."""
    rows, file = 0, path.open("xb")
    with file:
        arrow: pa.RecordBatchFileWriter | None = None
        for part in parts:
            rows += len(part)
            if isinstance(part, np.ndarray):
                part.tofile(file)
            else:
                arrow = arrow or pa.ipc.new_file(file, BYTES_SCHEMA)
                arrow.write_batch(pa.record_batch([pa.array(part, pa.binary())], schema=BYTES_SCHEMA))
        if arrow is not None:
            arrow.close()
    return rows


def read_rows(path: Path, item: object) -> Any:
    if path.stat().st_size == 0:
        return []
    if item is bytes:
        with pa.memory_map(str(path)) as file:
            return pa.ipc.open_file(file).read_all().column(0).to_pylist()
    dtype = dtype_of(item)
    base, shape = dtype.subdtype or (dtype, ())
    flat = np.memmap(path, base, mode="r")
    return np.asarray(flat).reshape(-1, *shape)


def unnamed_folder(root: Path) -> Folder:
    """Returns a name for a write that is not repeated: it names the driver, so that it can be removed after that."""
    pid = driver()
    return Folder(root / f"batch-{pid}-{started(pid)}-{secrets.token_hex(6)}")


def clean_up(root: Path) -> None:
    """Removes the files of unnamed writes that are over, or whose driver is dead."""
    for path in root.glob("batch-*"):
        _, pid, start, _ = path.name.split("-")
        is_dead = started(int(pid)) != start
        if path.suffix == ".done":
            shutil.rmtree(path.with_suffix(""), ignore_errors=True)
            if is_dead:
                path.unlink(missing_ok=True)
        elif is_dead:
            shutil.rmtree(path, ignore_errors=True)


def driver() -> int:
    """Returns the Java process above this one."""
    pid = os.getpid()
    while pid > 1:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
        if Path(f"/proc/{pid}/comm").read_text().startswith("java"):
            return pid
        pid = int(after_name.split()[1])
    return os.getppid()


def started(pid: int) -> str:
    """Returns when a process started, in ticks since boot; nothing if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
