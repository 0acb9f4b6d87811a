"""Writes the files of an archive, one after another. A file gets its name last:

1. write the columns under the temporary name,
2. sync the file,
3. make sure that the queue itself keeps these positions (a log on a disk),
4. rename,
5. sync the directory; only then the recorder tells the queue that it is done with the items.

A kill before step 4 leaves a temporary file, which the next recorder removes, and the items, which the queue still has.
A kill after it leaves the file, whose name tells the next recorder what not to record again.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from queueduct.recording.archive import Archive, Facts
from queueduct.recording.columns import Shape

__all__ = ["COMPRESSIONS", "FileWriter"]

COMPRESSIONS = ("snappy", "zstd", "lz4", "gzip", "brotli", "none")
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class FileWriter:
    """Writes one file at a time. All calls are of one thread."""

    def __init__(self, archive: Archive, shape: Shape, compression: str) -> None:
        self.archive = archive
        self.shape = shape
        self.compression = compression
        self.written_bytes = 0
        """Of complete files."""
        self.rows = 0
        """Of the open file."""
        self.descriptor = -1
        self.sink: Any = None
        self.parquet: Any = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Writes one group of rows. The first one begins a file."""
        with told_of_room(self.archive):
            if self.parquet is None:
                self.begin()
            self.parquet.write_table(pa.Table.from_batches([batch]), row_group_size=batch.num_rows)
        self.rows += batch.num_rows

    def begin(self) -> None:
        path = self.archive.temporary
        # opened first, so that the sync reports every error of writing since then
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        self.sink = pa.OSFile(str(path), "wb")
        self.parquet = pq.ParquetWriter(
            self.sink,
            self.shape.schema,
            compression=self.compression,
            use_dictionary=self.shape.dictionary_columns(),
            column_encoding=self.shape.difference_columns(),
        )

    def finish(self, facts: Facts, is_kept: Callable[[int], object]) -> Facts:
        """Gives the file its name. ``is_kept`` returns when the queue cannot lose what is before a position."""
        name = f"{facts.first:016d}-{facts.last:016d}.parquet"
        path = self.archive.directory / name
        if self.rows != facts.rows:
            raise RuntimeError(f"a file is complete with {facts.rows} rows: {self.rows} were written")
        with told_of_room(self.archive):
            self.parquet.add_key_value_metadata(facts.as_metadata())
            self.parquet.close()
            self.sink.close()
            os.fsync(self.descriptor)
        size = os.fstat(self.descriptor).st_size
        is_kept(facts.last + 1)
        if os.path.lexists(path):
            raise FileExistsError(
                f"a recorder writes each position once, and another program has made {path}; take it away"
            )
        os.rename(self.archive.temporary, path)
        self.parquet = self.sink = None
        self.rows = 0
        self.close_descriptor()
        os.fsync(self.archive.descriptor)
        self.written_bytes += size
        return facts

    def discard(self) -> None:
        """Removes the file that is not complete. The queue still has its items."""
        if self.descriptor < 0:
            return
        with contextlib.suppress(OSError, pa.ArrowException):  # a full disk refuses the footer
            self.parquet.close()
        with contextlib.suppress(OSError, pa.ArrowException):
            self.sink.close()
        self.parquet = self.sink = None
        self.close_descriptor()
        with contextlib.suppress(OSError):
            os.unlink(self.archive.temporary)

    def close_descriptor(self) -> None:
        descriptor, self.descriptor = self.descriptor, -1
        os.close(descriptor)


@contextlib.contextmanager
def told_of_room(archive: Archive) -> Any:
    """Tells of a full disk what the user can do."""
    try:
        yield
    except OSError as error:
        number = error.errno or next((each for each in NO_ROOM if os.strerror(each) in str(error)), None)
        if number not in NO_ROOM:
            raise
        raise OSError(
            number,
            f"{os.strerror(number)}: a file of {archive.directory} could not be completed, and was removed; nothing is "
            "lost: make room and record again into the same directory",
        ) from error
