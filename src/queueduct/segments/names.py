"""The directory and the names of queues. Only this module reads ``QUEUEDUCT_DIR``; nothing writes it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

__all__ = ["Directory", "check_name", "directory_of", "no_fork", "renaming"]

Directory = str | os.PathLike[str] | None
NAME_LIMIT_BYTES = 255

no_fork = threading.RLock()  # held while a file is locked: a forked child would share the lock, and keep it
os.register_at_fork(before=no_fork.acquire, after_in_parent=no_fork.release, after_in_child=no_fork.release)


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
    with contextlib.suppress(UnicodeEncodeError):
        if b"\0" not in os.fsencode(path):
            return path
    raise ValueError(f"directory must be a path without NUL and lone surrogates: directory={path!r}")


def check_name(name: str) -> str:
    """Raises unless the name is a file name: one component, not hidden."""
    if not isinstance(name, str):
        raise TypeError(f"a queue's name must be a str: name={name!r}")
    try:
        encoded = os.fsencode(name)
    except UnicodeEncodeError as error:
        raise ValueError(f"a queue's name must be text without lone surrogates: name={name!r}") from error
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


@contextlib.contextmanager
def renaming(folder: Path) -> Iterator[None]:
    """Holds the directory's lock, under which a queue's name is removed or given to another queue.

    So a process may look whose the name is, and then remove it. A new name needs no lock: a link never replaces one.
    The kernel drops the lock of a process that dies. File systems without such locks go without.
    """
    with no_fork:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)
