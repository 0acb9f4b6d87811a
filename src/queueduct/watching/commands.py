"""The command of a participant's process, where this process can know it."""

from __future__ import annotations

from pathlib import Path

from queueduct.segments.boot import PROC, boot_id, start_ticks_of

__all__ = ["command_of"]

LENGTH_LIMIT = 4096


def command_of(pid: int, start_ticks: int, boot: bytes) -> str | None:
    """Returns the command line of the process that has this pid, or its name if the line is empty.

    Returns None if the process is gone, or is not the one that was meant: it began at another time, in another boot, or
    has its pid in another pid namespace.
    """
    folder = PROC / str(pid)
    if boot != boot_id() or start_ticks == 0 or start_ticks_of(folder) != start_ticks:
        return None
    try:
        words = head_of(folder / "cmdline").rstrip(b"\0").replace(b"\0", b" ")
        text = (words or head_of(folder / "comm").rstrip(b"\n")).decode(errors="replace")
    except OSError:
        return None
    if start_ticks_of(folder) != start_ticks:  # it may have ended meanwhile
        return None
    return "".join(each if each.isprintable() else " " for each in text)  # in one line, and harmless to a terminal


def head_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(LENGTH_LIMIT)
