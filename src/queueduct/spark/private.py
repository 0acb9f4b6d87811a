"""Directories that hold rows on their way: this user's own, and closed to other users.

A user that can write into such a directory can put rows into a queue, and a user that can read it sees all rows. So it
must belong to this user with mode 0700, must not be a link that another user may turn elsewhere, and must not lie in a
directory where any user may replace it, nor be reached through a link in such a one. An open one is
refused and not closed: what is in it may be another user's already, and only its owner can tell.

Of the mode only what others may do counts. A directory in one with the set-group-ID bit inherits that bit, which opens
nothing, and which ``chmod 700`` leaves as it is.

A parent that a group may write to is that group's administrator's decision, and is left alone.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

__all__ = ["make_private", "replace_text"]

PRIVATE = 0o700
OTHERS = 0o077
PARENT = 0o755  # of what is made on the way: where the rows are is no secret
BY = {
    "spoolDir": "the option spoolDir (of a command with --checkpoint: it lies beside that)",
    "stagingDir": "the option stagingDir (of a command with TMPDIR: it lies in that)",
}


def make_private(directory: Path, option: str) -> Path:
    """Makes the directory, or raises if it is not private. ``option`` is the option that names another one."""
    directory = directory.absolute()
    if not directory.is_symlink():
        make_parents(directory.parent)
        with contextlib.suppress(FileExistsError):
            directory.mkdir(mode=PRIVATE)
    check_private(directory, option)
    check_parents(directory, option)
    return directory


def replace_text(path: Path, text: str) -> None:
    """Replaces the file: a reader finds the old text or the new one, complete."""
    temporary = path.with_suffix(f".{secrets.token_hex(4)}")
    temporary.write_text(text)
    temporary.replace(path)


def make_parents(directory: Path) -> None:
    if not directory.exists():
        make_parents(directory.parent)
        with contextlib.suppress(FileExistsError):
            directory.mkdir(mode=PARENT)


def check_private(directory: Path, option: str) -> None:
    found = directory.lstat()
    another = f"name another directory with {BY[option]}"
    if stat.S_ISLNK(found.st_mode):
        raise PermissionError(
            f"{directory} must be a directory and no link to one: it leads to {directory.resolve()}; "
            f"name that one with {BY[option]}"
        )
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(f"{directory} must be a directory, and is none; {another}")
    if found.st_uid != os.geteuid():
        raise PermissionError(
            f"{directory} must belong to the user {os.geteuid()}: it belongs to {found.st_uid}; {another}"
        )
    mode = stat.S_IMODE(found.st_mode)
    if mode & OTHERS:
        raise PermissionError(
            f"{directory} must be closed to others, mode 0700: its mode is {mode:04o}; see that what is in it is "
            f"yours and chmod 700 it, or {another}"
        )


def check_parents(directory: Path, option: str) -> None:
    for parent in lookups_of(directory):
        mode = parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise PermissionError(
                f"{directory} must not lie where any user can put another directory in its place: {parent} has mode "
                f"{stat.S_IMODE(mode):04o}; chmod o-w or +t it, or name a directory elsewhere with {BY[option]}"
            )


def lookups_of(path: Path) -> Iterator[Path]:
    """Yields every directory in which a name of the path is looked up, also through links on the way."""
    at, names = Path("/"), list(reversed(path.parts[1:]))
    while names:
        name = names.pop()
        if name == "..":
            at = at.parent
            continue
        yield at
        step = at / name
        if not step.is_symlink():
            at = step
            continue
        target = step.readlink()
        if target.is_absolute():
            at = Path("/")
        names.extend(name for name in reversed(target.parts) if name != "/")
