"""A query's checkpoint: which batches are planned, which are done, and how far the source is.

::

    <checkpoint>/metadata       the query's id
                 offsets/N      batch N is planned: where it ends
                 commits/N      batch N is done

Spark plans a batch, its sink writes it, and Spark notes it as done. So at most the last batch is planned and not done.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

__all__ = ["NONE", "Checkpoint", "HadoopDirectory", "first_lacking", "last_batch"]

NONE = -1  # where there is no batch yet


class HadoopDirectory:
    """A directory on any file system that Spark can use."""

    def __init__(self, spark: SparkSession, path: str | Path) -> None:
        classic: Any = spark  # a session on Spark Connect has no Java here
        self.jvm: Any = classic._jvm
        self.path: Any = self.jvm.org.apache.hadoop.fs.Path(str(path))
        self.system: Any = self.path.getFileSystem(classic._jsc.hadoopConfiguration())
        self.name = str(self.system.makeQualified(self.path).toUri().getPath())
        self.is_local = str(self.system.getUri().getScheme()) == "file"

    def under(self, name: str) -> Any:
        return self.jvm.org.apache.hadoop.fs.Path(self.path, name)

    def names(self, folder: str | None = None) -> list[str]:
        """Returns the names in it, or in a folder of it; none if that does not exist."""
        path = self.path if folder is None else self.under(folder)
        if not self.system.exists(path):
            return []
        return [str(status.getPath().getName()) for status in self.system.listStatus(path)]

    def text(self, name: str) -> str | None:
        path = self.under(name)
        if not self.system.exists(path):
            return None
        stream = self.system.open(path)
        try:
            return str(self.jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write_first(self, name: str, text: str) -> str:
        """Writes the file unless it exists. Returns its text: this one, or that of the process that was first."""
        if self.is_local:
            write_first(Path(self.name), name, text)
        else:
            self.system.mkdirs(self.path)
            with contextlib.suppress(Exception):  # the second process finds the file below
                stream = self.system.create(self.under(name), False)
                stream.write(bytearray(text.encode()))
                stream.close()
        found = self.text(name)
        if found is None:
            raise OSError(f"{self.path}/{name} could not be written; see to the directory, and start again")
        return found


def write_first(folder: Path, name: str, text: str) -> None:
    """Writes a file of this host unless it exists: complete or not at all, and synced."""
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f".{name}.{secrets.token_hex(6)}"
    try:
        with unfinished.open("x") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(unfinished, folder / name)
        directory = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    finally:
        unfinished.unlink(missing_ok=True)


def last_batch(names: list[str]) -> int:
    """Returns the highest number in a log of Spark's, where ``9.compact`` has all batches up to 9."""
    numbers = [name.removesuffix(".compact") for name in names]
    return max((int(number) for number in numbers if number.isdecimal()), default=NONE)


def first_lacking(names: list[str]) -> int | None:
    """Returns the first batch after the last ``.compact`` that such a log lacks, or None."""
    whole = last_batch([name for name in names if name.endswith(".compact")])
    return next((batch for batch in range(whole + 1, last_batch(names)) if str(batch) not in names), None)


class Checkpoint:
    """The checkpoint at the time it was read."""

    def __init__(self, spark: SparkSession, path: str | Path) -> None:
        self.directory = HadoopDirectory(spark, path)
        self.planned = last_batch(self.directory.names("offsets"))
        self.done = last_batch(self.directory.names("commits"))

    def offset(self, batch: int) -> dict[str, Any] | None:
        """Returns our source's offset at the end of a batch, if the log has it."""
        for line in (self.directory.text(f"offsets/{batch}") or "").splitlines():
            with contextlib.suppress(ValueError):
                found = json.loads(line)
                if isinstance(found, dict) and {"position", "reader", "began"} <= found.keys():
                    return found
        return None

    def position(self) -> int | None:
        """Returns the position up to which everything is done; None if nothing is."""
        return self.began() if self.done == NONE else self.position_after(self.done)

    def position_after(self, batch: int) -> int | None:
        """Returns where a batch ends; None if the log does not have it."""
        offset = self.offset(batch)
        return None if offset is None else int(offset["position"])

    def began(self) -> int | None:
        """Returns where the query began; None if it has not planned a batch."""
        offset = self.offset(self.planned)
        return None if offset is None else int(offset["began"]["at"])
