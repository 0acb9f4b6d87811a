"""A table in shared memory, one line a worker: which job it has just now, and how the worker ended.

A worker writes the position of a job into its line before it runs the job. If the worker dies, the queue redelivers
the job, and the line says that this job, and none of its neighbours in the batch, was the one in work.
The supervisor keeps a dead worker's line until nobody can need it any more: until its job was released.

One word says it all, so a kill between two stores leaves no half truth. A reader looks at another worker's line only
when it holds the job that this worker had: the kernel has told it that the worker is dead, which orders the accesses.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from pathlib import Path

import numpy as np

__all__ = ["JOBS", "LINES_LIMIT", "READY", "Lines", "job_word", "place_of"]

LINES_LIMIT = 2048
WORDS = 8  # of a line: 64 bytes, so that no two workers write to one line of the cache
OWNER, CURRENT, STARTED, STOP, DONE, PID, ENDED, ACTIVE = range(WORDS)
JOBS, READY = 0, 1  # the queue that a position belongs to
TIMED_OUT = 1
EXIT_BASE = 1 << 20  # ENDED is this plus the exit code


def job_word(source: int, position: int) -> int:
    """Returns what CURRENT says of a job; 0 means no job."""
    return (position << 1 | source) + 1


def place_of(word: int) -> tuple[int, int]:
    """Returns the source and the position of a job's word."""
    return (word - 1) & 1, (word - 1) >> 1


class Lines:
    """The table, mapped. Each word has one writer: its worker, or the supervisor for OWNER, STOP and ENDED."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        if create:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, LINES_LIMIT * WORDS * 8)
            finally:
                os.close(descriptor)
        self.path = path
        self.table = np.memmap(path, dtype=np.int64, mode="r+", shape=(LINES_LIMIT, WORDS))
        self.words = memoryview(self.table.reshape(-1))  # type: ignore[arg-type]  # an array is a buffer

    def allocate(self) -> tuple[int, int] | None:
        """Returns a free line and its owner's number, or None."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # another pool on the same queue may allocate, too
            free = np.flatnonzero(self.table[:, OWNER] == 0)
            if len(free) == 0:
                return None
            line = int(free[0])
            owner = secrets.randbits(62) | 1
            self.table[line, 1:] = 0
            self.table[line, PID] = os.getpid()  # the supervisor's, until the worker writes its own
            self.table[line, OWNER] = owner
            return line, owner
        finally:
            os.close(descriptor)

    def free(self, line: int, owner: int) -> None:
        """Gives the line up, unless another worker has it by now."""
        if int(self.table[line, OWNER]) == owner:
            self.table[line] = 0

    def suspects(self, mine: int) -> dict[int, tuple[int, int]]:
        """Returns the jobs in work, by other lines than mine: their words, with the line and its owner."""
        busy = np.flatnonzero(self.table[:, CURRENT])
        return {int(self.table[i, CURRENT]): (int(i), int(self.table[i, OWNER])) for i in busy if i != mine}

    def set_ended(self, line: int, owner: int, exit_code: int, *, timed_out: bool) -> None:
        if int(self.table[line, OWNER]) == owner:
            self.table[line, ENDED] = TIMED_OUT if timed_out else EXIT_BASE + exit_code

    def how_ended(self, line: int, owner: int) -> str | None:
        """Returns how the worker ended, or None while its supervisor has not said so."""
        if int(self.table[line, OWNER]) != owner:
            return "worker died"
        ended = int(self.table[line, ENDED])
        if ended == 0:
            return None
        if ended == TIMED_OUT:
            return "worker killed: task_timeout has passed"
        code = ended - EXIT_BASE
        return f"worker died (signal {-code})" if code < 0 else f"worker died (exit code {code})"

    def seconds_in_job(self, line: int) -> tuple[float, int]:
        """Returns for how long the worker has been at its job, and the job's word; 0 if it has none."""
        word = int(self.table[line, CURRENT])
        started = int(self.table[line, STARTED])
        if word == 0 or started == 0:
            return 0.0, 0
        return (time.monotonic_ns() - started) / 1e9, word
