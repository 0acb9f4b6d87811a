"""Other processes: Python scripts with warnings as errors, and forks."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.deadline import PATIENCE_SECONDS, until

ROOT = Path(__file__).parents[2]
LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


class Children:
    """The processes that one test has started."""

    def __init__(self) -> None:
        self.scripts: list[subprocess.Popen[str]] = []
        self.forks: set[int] = set()

    def start(self, code: str, *arguments: object, options: tuple[str, ...] = ("-W", "error")) -> subprocess.Popen[str]:
        """Run code in a new interpreter. It can import what this one can."""
        process = subprocess.Popen(
            [sys.executable, *options, "-c", code, *map(str, arguments)],
            env=environment(PYTHONUNBUFFERED="1"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.scripts.append(process)
        return process

    def run(self, code: str, *arguments: object, options: tuple[str, ...] = ("-W", "error")) -> str:
        """Run code to its end; what it printed. Fails if it failed, was killed, or wrote to stderr."""
        process = self.start(code, *arguments, options=options)
        out, err = process.communicate(timeout=3 * PATIENCE_SECONDS)
        assert (process.returncode, err) == (0, ""), f"exit {process.returncode}\n{out}\n{err}"
        return out

    def fork(self, work: Callable[[], object]) -> int:
        """Run work in a forked child of this very process; it exits with 0, or with 1 after an exception.

        If the tests are killed, the child is killed too: work may be an endless loop.
        """
        is_main = threading.current_thread() is threading.main_thread()  # the kernel means the thread that forked
        pid = fork()
        if pid == 0:
            status = 1
            try:
                if is_main:
                    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
                work()
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        self.forks.add(pid)
        return pid

    def wait(self, pid: int) -> int:
        """The exit code of a forked child; negative for a signal."""
        status = 0

        def is_gone() -> bool:
            nonlocal status
            found, status = os.waitpid(pid, os.WNOHANG)
            return found == pid

        until(is_gone, f"the end of process {pid}", 3 * PATIENCE_SECONDS)
        self.forks.discard(pid)
        return os.waitstatus_to_exitcode(status)

    def kill(self, pid: int) -> None:
        """SIGKILL, and wait for its end."""
        os.kill(pid, signal.SIGKILL)
        assert self.wait(pid) == -signal.SIGKILL

    def kill_all(self) -> None:
        for process in self.scripts:
            if process.poll() is None:
                process.kill()
            process.communicate()
        for pid in tuple(self.forks):
            self.kill(pid)


def environment(**more: str) -> dict[str, str]:
    """Of a new interpreter: that of this process, and the way to the modules of the tests."""
    path = filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path), **more}


def open_descriptors() -> int:
    """How many of this process lead into the test's directory of queues. Earlier tests have had others."""
    gc.collect()  # handles that only a cycle still holds
    folder = os.environ["QUEUEDUCT_DIR"]
    count = 0
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            count += os.readlink(f"/proc/self/fd/{number}").startswith(folder + "/")
    return count


def fork() -> int:
    """os.fork() in a process that has threads, knowingly: from Python 3.12 on it warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()
