"""A file that gets its name last: until then nobody sees a half of it."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

__all__ = ["WholeFile"]


class WholeFile:
    """Writes into a hidden file beside ``path``; ``commit`` gives it the name. Without a commit nothing is left.

    A path that leads to no regular file, such as a pipe or /dev/null, is written as it is.
    """

    def __init__(self, path: Path, *, replace: bool = False) -> None:
        self.path = path
        self.replace = replace
        self.hidden: Path | None = None
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISREG(os.stat(path).st_mode):
                self.stream: BinaryIO = os.fdopen(os.open(path, os.O_WRONLY | os.O_CLOEXEC), "wb")
                return
            if not replace:
                raise self.is_there()
        if not path.parent.is_dir():
            raise FileNotFoundError(
                f"there is no directory {path.parent} for {path.name}: make it, or name another file"
            )
        self.hidden = path.parent / f".{path.name[:200]}.{secrets.token_hex(4)}.part"
        descriptor = os.open(self.hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        self.stream = os.fdopen(descriptor, "wb")

    def is_there(self) -> FileExistsError:
        return FileExistsError(f"there is a file {self.path} already: --overwrite replaces it, or name another")

    def commit(self) -> None:
        """Gives the file its name, once all of it is on the disk."""
        if self.hidden is None:
            self.stream.close()
            return
        self.stream.flush()
        os.fsync(self.stream.fileno())
        self.stream.close()
        if self.replace:
            os.rename(self.hidden, self.path)
        else:
            try:
                os.link(self.hidden, self.path)  # unlike a rename it replaces nothing
            except FileExistsError:
                raise self.is_there() from None
            except OSError:  # a file system without links
                os.rename(self.hidden, self.path)
            else:
                os.unlink(self.hidden)
        self.hidden = None
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with contextlib.suppress(OSError):  # some file systems sync no directories
                os.fsync(folder)
        finally:
            os.close(folder)

    def discard(self) -> None:
        """Removes what was written, unless it has its name."""
        with contextlib.suppress(OSError):
            self.stream.close()
        hidden, self.hidden = self.hidden, None
        if hidden is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(hidden)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()
