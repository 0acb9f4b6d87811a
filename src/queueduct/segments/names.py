"""The directory and the names of queues. Only this module reads ``QUEUEDUCT_DIR``; nothing writes it."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

__all__ = ["Directory", "check_name", "directory_of"]

Directory = str | os.PathLike[str] | None
NAME_LIMIT_BYTES = 255


def directory_of(given: Directory = None, *, make: bool = False) -> Path:
    """Returns ``given``, else ``$QUEUEDUCT_DIR``, else ``/dev/shm/queueduct-<uid>``, which only this user may enter.

    Makes a missing directory, but a given one only with ``make``: a typing error should not leave a directory.
    """
    chosen = os.environ.get("QUEUEDUCT_DIR") if given is None else checked_path(given)
    path = Path(chosen) if chosen else Path(f"/dev/shm/queueduct-{os.geteuid()}")
    if make or given is None:
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700, parents=bool(chosen))
    elif not path.exists():
        return path.absolute()
    status = os.stat(path, follow_symlinks=bool(chosen))
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(
            f"the directory of queues is not a directory: {path}; give another (directory= or QUEUEDUCT_DIR)"
        )
    if not chosen and (status.st_uid != os.geteuid() or status.st_mode & 0o077):
        raise PermissionError(
            f"{path} must belong to this user alone: owner={status.st_uid}, "
            f"mode={stat.S_IMODE(status.st_mode):o}; remove it, or set QUEUEDUCT_DIR to another directory"
        )
    return path.absolute()


def checked_path(given: str | os.PathLike[str]) -> str:
    path = os.fspath(given) if isinstance(given, str | os.PathLike) else given
    if not isinstance(path, str):
        raise TypeError(f"directory must be a str or a path: directory={given!r}")
    if not path:
        raise ValueError("directory must not be empty: directory=''; leave it out, or name one")
    return path


def check_name(name: str) -> str:
    """Raises unless the name is a file name: one component, not hidden."""
    if not isinstance(name, str):
        raise TypeError(f"a queue's name must be a str: name={name!r}")
    encoded = os.fsencode(name)
    if not encoded:
        raise ValueError("a queue's name must not be empty")
    if len(encoded) > NAME_LIMIT_BYTES:
        raise ValueError(
            f"a queue's name must be at most {NAME_LIMIT_BYTES} bytes long: {len(encoded)} bytes, {name[:40]!r}…"
        )
    if "/" in name or "\0" in name:
        raise ValueError(f"a queue's name must not contain '/' or NUL: name={name!r}")
    if name.startswith("."):
        raise ValueError(f"a queue's name must not start with a dot: name={name!r}")
    return name
