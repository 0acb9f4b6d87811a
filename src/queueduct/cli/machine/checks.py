"""What ``queueduct doctor`` looks at. Each function tries the real thing, and returns one finding."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import importlib.metadata
import os
import platform
import resource
import secrets
import statistics
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import queueduct
from queueduct.cli.machine.findings import Finding, fail, ok, warn
from queueduct.cli.output import in_bytes
from queueduct.segments.boot import boot_id
from queueduct.segments.names import directory_of

__all__ = [
    "build",
    "container",
    "directory",
    "holes",
    "kernel",
    "locks",
    "memory",
    "process_files",
    "processors",
    "pyarrow",
    "python",
    "unnamed_files",
    "wake_up",
]

LITTLE_MEMORY = 256 << 20
FALLOC_KEEP_SIZE, FALLOC_PUNCH_HOLE = 1, 2
OFD_SETLK = 37
LOCK = "hhqqi4x"
ROUNDS = 40
PAUSE_SECONDS = 0.005  # after which the other process sleeps, and has to be woken
SLOW_WAKE_UP_SECONDS = 1e-3


def python() -> Finding:
    found = f"{platform.python_implementation()} {platform.python_version()}, numpy {np.__version__}"
    if not (3, 11) <= sys.version_info[:2] <= (3, 13):
        return warn("Python", found, "queueduct is tested on CPython 3.11 to 3.13: use one of these")
    return ok("Python", found)


def build() -> Finding:
    from queueduct.native import _layout

    has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    found = (
        f"queueduct {queueduct.__version__}, layout {_layout.LAYOUT_VERSION}, {'with' if has_gil else 'without'} a GIL"
    )
    return ok("build", f"{found}, {platform.machine()}")


def kernel() -> Finding:
    name = platform.release()
    found = f"Linux {name}, pages of {resource.getpagesize():,} bytes"
    numbers = name.split(".")[:2]
    if all(number.isdigit() for number in numbers) and tuple(map(int, numbers)) < (4, 18):
        return warn("kernel", found, "queueduct is tested on Linux 4.18 and later")
    return ok("kernel", found)


def processors() -> Finding:
    usable, there = len(os.sched_getaffinity(0)), os.cpu_count()
    found = f"{usable} of {there}" if usable != there else f"{usable}"
    if usable == 1:
        return warn("processors", found, "on one processor each wait costs a switch of processes: more make it faster")
    return ok("processors", found)


def process_files() -> Finding:
    """The files of /proc that tell a process from a later one of the same number."""
    remedy = "mount a /proc of the container's own processes (subset=pid is enough)"
    try:
        Path("/proc/self/stat").read_text()
    except OSError as error:
        return fail("/proc", f"/proc/self/stat: {error.strerror}", remedy)
    if not boot_id():
        return warn("/proc", "it does not say which boot this is", "logs on a disk are then never cut after a crash")
    return ok("/proc", "tells processes and boots apart")


def directory(given: Path | None) -> Finding:
    try:
        path = directory_of(given)
        mode = path.stat().st_mode & 0o777
    except OSError as error:
        why = error.strerror or str(error)
        return fail("directory", f"{error.filename or given}: {why}", "name another one: --dir, or QUEUEDUCT_DIR")
    if not os.access(path, os.W_OK | os.X_OK):
        return fail(
            "directory", f"{path}, mode {mode:o}, not writable", "give this user write permission, or use --dir"
        )
    if mode & 0o022:
        return warn(
            "directory",
            f"{path}, mode {mode:o}",
            "other users can put items there, and unpickling objects runs code: chmod 700",
        )
    return ok("directory", f"{path}, mode {mode:o}")


def memory(path: Path) -> Finding:
    status = os.statvfs(path)
    free, size = status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize
    found = f"{in_bytes(free)} of {in_bytes(size)} free in {path}"
    if free < LITTLE_MEMORY:
        return warn(
            "memory",
            found,
            "the default of a log alone may take 268 MB; remount /dev/shm with a larger size= (docker run "
            "--shm-size=2g), or name a directory elsewhere by QUEUEDUCT_DIR",
        )
    if status.f_favail == 0 and status.f_files:
        return fail("memory", f"{found}, but no more files", "remove files there, or remount it with more nr_inodes=")
    return ok("memory", found)


def unnamed_files(path: Path) -> Finding:
    """A create fills a file before it has a name."""
    try:
        os.close(os.open(path, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR):
            return warn(
                "new files", "no files without a name here", "a killed create may leave a hidden file; tmpfs has them"
            )
        return fail("new files", f"{error.strerror}", "queues cannot be made there: see directory and memory")
    return ok("new files", "complete before they have a name")


def holes(path: Path) -> Finding:
    """Memory is returned by a hole in the file."""
    descriptor = os.open(path, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC)
    try:
        os.posix_fallocate(descriptor, 0, 1 << 20)
        libc = ctypes.CDLL(None, use_errno=True)
        size = ctypes.c_longlong
        mode = FALLOC_KEEP_SIZE | FALLOC_PUNCH_HOLE
        if libc.fallocate(descriptor, mode, size(0), size(1 << 20)) != 0:
            why = os.strerror(ctypes.get_errno())
            return warn("memory back", why, "queues that grow keep their memory on this file system: use tmpfs")
        left = os.fstat(descriptor).st_blocks * 512
    finally:
        os.close(descriptor)
    return ok("memory back", f"a hole of 1 MB leaves {in_bytes(left)}")


def locks(path: Path) -> Finding:
    """The kernel must tell a lock's owner dead: another process takes a lock that a killed one had."""
    descriptor = os.open(path, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC)
    try:
        wanted = struct.pack(LOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
        other = os.open(f"/proc/self/fd/{descriptor}", os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.fcntl(descriptor, OFD_SETLK, wanted)
            try:
                fcntl.fcntl(other, OFD_SETLK, wanted)
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    raise
            else:
                return fail("locks", "two owners have one lock", "this file system has no locks: use tmpfs or a disk")
            os.close(descriptor)
            descriptor = -1
            fcntl.fcntl(other, OFD_SETLK, wanted)  # the owner has gone, so it is free
        finally:
            os.close(other)
    except OSError as error:
        return fail("locks", f"{error.strerror}", "this file system has no locks of open files: use tmpfs or a disk")
    finally:
        if descriptor >= 0:
            os.close(descriptor)
    return ok("locks", "belong to open files, and go with their owner")


ECHO = """
import sys, queueduct
there = queueduct.open(sys.argv[1], directory=sys.argv[3])
back = queueduct.open(sys.argv[2], directory=sys.argv[3])
for item in there:
    back.put(item)
"""


def wake_up(path: Path) -> Finding:
    """An item to another process and back, in a queue of two bytes: memory, futexes and the liveness of others."""
    names = [f"queueduct-doctor-{secrets.token_hex(6)}-{end}" for end in ("there", "back")]
    there, back = (queueduct.BoundedQueue.create(name, 2, directory=path, participants=4) for name in names)
    times = []
    try:
        with subprocess.Popen(
            [sys.executable, "-c", ECHO, *names, str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as other:
            try:
                for _ in range(ROUNDS):
                    time.sleep(PAUSE_SECONDS)
                    began = time.perf_counter()
                    there.put(b"?", timeout=30)
                    back.get(timeout=30)
                    times.append(time.perf_counter() - began)
            finally:
                there.shutdown()
                if len(times) < ROUNDS:
                    other.kill()
    except queueduct.Empty:
        return fail("wake-up", "another process did not answer", "is it allowed to open files there? see directory")
    finally:
        for queue in (there, back):
            queue.close()
            queue.unlink(missing_ok=True)
    taken = statistics.median(times)
    found = f"{taken * 1e6:.0f} µs to another process and back"
    if taken > SLOW_WAKE_UP_SECONDS:
        return warn(
            "wake-up", found, "the machine is busy, or its processors sleep deeply: measure again when it is idle"
        )
    return ok("wake-up", found)


def container() -> Finding:
    """What limits the memory of this process, and so of the pages that it puts into /dev/shm."""
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        file = Path("/sys/fs/cgroup", name)
        try:
            text = file.read_text().strip()
        except OSError:
            continue
        if text.isdecimal() and int(text) < 1 << 50:
            found = f"{name} is {in_bytes(int(text))}"
            if int(text) < LITTLE_MEMORY:
                return warn("container", found, "queues count against it: raise the limit, or use small queues")
            return ok("container", found)
    return ok("container", "no limit of memory")


def pyarrow() -> Finding:
    try:
        return ok("pyarrow", importlib.metadata.version("pyarrow"))
    except importlib.metadata.PackageNotFoundError:
        return warn("pyarrow", "not installed", "Parquet and Arrow need it: pip install 'queueduct[arrow]'")
