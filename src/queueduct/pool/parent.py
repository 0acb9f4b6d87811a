"""A worker ends with the process that started its pool, however that ends."""

from __future__ import annotations

import ctypes
import fcntl
import multiprocessing
import os
import select
import signal

__all__ = ["end_with_parent", "is_parent_gone"]

PR_SET_PDEATHSIG = 1


def end_with_parent(pool_pid: int) -> None:
    """Asks the kernel to kill this process when the pool's process ends, even in the middle of a job.

    A forked or spawned worker is a child of the pool's process, and the kernel watches the thread that started it:
    the supervisor, which lives as long as its process. A worker from a fork server is the server's child. It has the
    read end of a pipe whose write end only the pool's process has, and the kernel signals the end of that.
    """
    if os.getppid() == pool_pid:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != pool_pid:
            os._exit(0)
        return
    parent = multiprocessing.parent_process()
    if parent is None or is_parent_gone(pool_pid):
        os._exit(0)
    sentinel = int(parent.sentinel)
    fcntl.fcntl(sentinel, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(sentinel, 10, signal.SIGKILL)  # F_SETSIG
    fcntl.fcntl(sentinel, fcntl.F_SETFL, fcntl.fcntl(sentinel, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([sentinel], [], [], 0)[0]:  # it ended before the kernel was asked
        os._exit(0)


def is_parent_gone(pool_pid: int) -> bool:
    try:
        os.kill(pool_pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False
