"""The archive as any reader of Parquet finds it: which files count, and when each came to be seen.

A file that a recorder has written is seen when it gets its name. One that Spark has written is seen when Spark's log of
the batches, ``_spark_metadata``, has it: files that it does not have are left of tasks that failed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from queueduct.demo.ticks import SYMBOLS, TICK

__all__ = ["LakeFile", "files_of", "ticks_of"]

SPARK_LOG = "_spark_metadata"


class LakeFile(NamedTuple):
    """A file that counts."""

    seen_at: float
    """Seconds of the wall clock: a rename changes a file's ctime."""
    path: Path


def files_of(archive: Path) -> list[LakeFile]:
    """Returns the files in the order in which they came to be seen."""
    if (archive / SPARK_LOG).is_dir():
        return spark_files(archive)
    return sorted(LakeFile(path.stat().st_ctime, path) for path in archive.glob("*.parquet"))


def spark_files(archive: Path) -> list[LakeFile]:
    """Each file is seen from its first entry on; a compact entry repeats what those before it have."""
    entries = [
        (int(path.name.removesuffix(".compact")), path)
        for path in (archive / SPARK_LOG).iterdir()
        if path.name.removesuffix(".compact").isdecimal()
    ]
    found: dict[Path, float] = {}
    for _, entry in sorted(entries):
        for line in entry.read_text().splitlines()[1:]:  # the first one is the version
            path = Path(unquote(urlparse(json.loads(line)["path"]).path))
            found.setdefault(archive / path.name, entry.stat().st_ctime)
    return sorted(LakeFile(seen_at, path) for path, seen_at in found.items())


def ticks_of(file: LakeFile) -> Iterator[tuple[np.ndarray[Any, Any], dict[str, np.ndarray[Any, Any]]]]:
    """Yields the symbols' indices, and the other columns by name, for each row group."""
    names = [str(name) for name in TICK.names or ()]
    with pq.ParquetFile(file.path, read_dictionary=["sym"], coerce_int96_timestamp_unit="us") as opened:
        for number in range(opened.num_row_groups):
            group = opened.read_row_group(number, columns=names)
            symbols = pa.concat_arrays(group.column("sym").unify_dictionaries().chunks)
            known = [SYMBOLS.index(bytes(name, "ascii")) for name in symbols.dictionary.to_pylist()]
            columns = {name: group.column(name).to_numpy() for name in names if name != "sym"}
            columns["ts"] = columns["ts"].astype("M8[us]").astype("i8")
            yield np.array(known, "i8")[symbols.indices.to_numpy()], columns
