"""Directories that hold rows on their way: this user's own, and closed to everybody else.

Whoever can write into such a directory can put rows of his own into a queue, and whoever can read it sees everybody's
rows. So it must belong to this user with mode 0700, must not be a link that somebody may turn elsewhere, and must not
lie in a directory where anybody may put another one in its place. An open one is refused and not closed: what is in it
may be somebody else's already, and only its owner can tell.

A parent that a group may write to is that group's administrator's decision, and is left alone.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

__all__ = ["make_private"]

PRIVATE = 0o700
PARENT = 0o755  # of what is made on the way: where the rows are is no secret


def make_private(directory: Path, option: str) -> Path:
    """Make sure of the directory, made if it is not there; ``option`` is the one that names another."""
    directory = directory.absolute()
    if not directory.is_symlink():
        make_parents(directory.parent)
        with contextlib.suppress(FileExistsError):
            directory.mkdir(mode=PRIVATE)
    check_private(directory, option)
    check_parents(directory, option)
    return directory


def make_parents(directory: Path) -> None:
    if not directory.exists():
        make_parents(directory.parent)
        with contextlib.suppress(FileExistsError):
            directory.mkdir(mode=PARENT)


def check_private(directory: Path, option: str) -> None:
    found = directory.lstat()
    another = f"name another directory with the option {option}"
    if stat.S_ISLNK(found.st_mode):
        raise PermissionError(
            f"{directory} must be a directory and no link to one: it leads to {directory.resolve()}; "
            f"name that one with the option {option}"
        )
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(f"{directory} must be a directory, and is none; {another}")
    if found.st_uid != os.geteuid():
        raise PermissionError(
            f"{directory} must belong to the user {os.geteuid()}: it belongs to {found.st_uid}; {another}"
        )
    mode = stat.S_IMODE(found.st_mode)
    if mode & ~PRIVATE:
        raise PermissionError(
            f"{directory} must be closed to others, mode 0700: its mode is {mode:04o}; see that what is in it is "
            f"yours and chmod 700 it, or {another}"
        )


def check_parents(directory: Path, option: str) -> None:
    for parent in directory.resolve().parents:
        mode = parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise PermissionError(
                f"{directory} must not lie where anybody can put another directory in its place: {parent} has mode "
                f"{stat.S_IMODE(mode):04o}; chmod o-w or +t it, or name a directory elsewhere with the option {option}"
            )
