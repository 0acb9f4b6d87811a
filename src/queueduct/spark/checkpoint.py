"""What a query's checkpoint says: which batches were planned and which are done, and how far the source is.

::

    <checkpoint>/metadata       the query's id
                 offsets/N      batch N is planned: where it ends
                 commits/N      batch N is done

Spark plans a batch, has its sink write it, and notes it as done; so of the batches at most the last is planned only.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

__all__ = ["NONE", "Checkpoint", "Place", "first_lacking", "last_batch"]

NONE = -1  # where there is no batch yet


class Place:
    """A directory on whatever file system Spark knows it by."""

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
        """What is in it, or in a folder of it; nothing if that is not there."""
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
        """What the file has from now on: this, or what another process has written before."""
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
    """On a disk of this host: whole or not at all, and not lost with the machine."""
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
    """The highest number among the files of a log of Spark's, where ``9.compact`` is one of all batches up to 9."""
    numbers = [name.removesuffix(".compact") for name in names]
    return max((int(number) for number in numbers if number.isdecimal()), default=NONE)


def first_lacking(names: list[str]) -> int | None:
    """The first batch that such a log should have one by one, after the last file of many, and has not."""
    whole = last_batch([name for name in names if name.endswith(".compact")])
    return next((batch for batch in range(whole + 1, last_batch(names)) if str(batch) not in names), None)


class Checkpoint:
    """As it was when it was read."""

    def __init__(self, spark: SparkSession, path: str | Path) -> None:
        self.place = Place(spark, path)
        self.planned = last_batch(self.place.names("offsets"))
        self.done = last_batch(self.place.names("commits"))

    def offset(self, batch: int) -> dict[str, Any] | None:
        """Where our source is at the end of a batch, if it is in the log."""
        for line in (self.place.text(f"offsets/{batch}") or "").splitlines():
            with contextlib.suppress(ValueError):
                found = json.loads(line)
                if isinstance(found, dict) and {"position", "reader", "began"} <= found.keys():
                    return found
        return None

    def position(self) -> int | None:
        """Up to where everything is done; None if nothing is."""
        return self.began() if self.done == NONE else self.position_after(self.done)

    def position_after(self, batch: int) -> int | None:
        """Where a batch ends; None if the log does not have it."""
        offset = self.offset(batch)
        return None if offset is None else int(offset["position"])

    def began(self) -> int | None:
        """Where the query began; None if it has not planned a batch."""
        offset = self.offset(self.planned)
        return None if offset is None else int(offset["began"]["at"])
