"""The identity of this boot of the machine, as the kernel gives it, and not as a container replaces it.

A container may have a boot id of its own, mounted over the kernel's (systemd-nspawn, LXC), none at all (a service with
ProcSubset=pid), and a clock of its own (a time namespace). A value that is not the machine's counts as unknown.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

__all__ = ["Witnesses", "boot_id", "kernel_boot_id", "process_start_ticks", "start_ticks_of", "witnesses"]

PROC = Path("/proc")
INSIDE_PROC = "/sys/kernel/random/boot_id"
UNKNOWN_ID = bytes(16)


class Witnesses(NamedTuple):
    """What identifies the boot that this process runs in."""

    boot_id: bytes
    """16 bytes; zeros if unknown."""
    clock_offset_ns: int | None
    """How far this process's clock of the time since boot is ahead of the machine's; None if unknown."""


def witnesses() -> Witnesses:
    return Witnesses(kernel_boot_id(), clock_offset_ns())


@cache
def kernel_boot_id() -> bytes:
    """Returns the kernel's id of this boot; zeros if it cannot be read, or another file is mounted over it."""
    try:
        if not is_kernels_own(PROC / INSIDE_PROC[1:], (PROC / "self/mountinfo").read_text()):
            return UNKNOWN_ID
        return boot_id()
    except (OSError, ValueError):
        return UNKNOWN_ID


@cache
def boot_id() -> bytes:
    """Returns the id in ``/proc``, even a container's own: all processes that see each other see the same one."""
    try:
        return bytes.fromhex((PROC / INSIDE_PROC[1:]).read_text().strip().replace("-", ""))
    except (OSError, ValueError):
        return UNKNOWN_ID


def process_start_ticks() -> int:
    """Returns when this process started, in ticks since boot; 0 if unknown. With the pid it is unique in a boot."""
    return start_ticks_of(PROC / "self")


def start_ticks_of(folder: Path) -> int:
    """The same for the process of that folder of ``/proc``."""
    try:
        after_name = (folder / "stat").read_text(errors="replace").rpartition(")")[2]
        return int(after_name.split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def is_kernels_own(path: Path, mounts: str) -> bool:
    """Returns true if the path leads to proc's own file: the last mount at it, or above it, decides."""
    found = ("", "", "")
    for line in mounts.splitlines():
        fields, _, rest = line.partition(" - ")
        root, point = fields.split()[3:5]
        if (point == str(path) or str(path).startswith(point.rstrip("/") + "/")) and len(point) >= len(found[1]):
            found = (root, point, rest.split()[0])
    root, point, kind = found
    return kind == "proc" and root.rstrip("/") + str(path)[len(point.rstrip("/")) :] == INSIDE_PROC


def clock_offset_ns() -> int | None:
    """Returns what a time namespace adds to CLOCK_BOOTTIME; 0 outside of one, None if unknown."""
    try:
        if os.readlink(PROC / "self/ns/time") != os.readlink(PROC / "self/ns/time_for_children"):
            return None  # /proc shows only the children's offset
        lines = (PROC / "self/timens_offsets").read_text().splitlines()
    except FileNotFoundError:
        return 0 if (PROC / "self/ns/pid").exists() else None  # a kernel without time namespaces, or no /proc
    except OSError:
        return None
    for name, seconds, nanoseconds in map(str.split, lines):
        if name in ("boottime", "7"):  # the clock's number, in the form that can be written
            return int(seconds) * 1_000_000_000 + int(nanoseconds)
    return None
