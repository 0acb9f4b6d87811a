"""A process of the demonstration that may be killed at any instruction, and is started again."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable
from multiprocessing import resource_tracker
from typing import Any

__all__ = ["CONTEXT", "Worker"]

CONTEXT = multiprocessing.get_context("spawn")
END_SECONDS = 60.0  # for what it has begun


class Worker:
    """Runs ``work(*arguments)`` in a process of its own. Ctrl-C is blocked there: the parent decides when it ends."""

    def __init__(self, name: str, work: Callable[..., object], *arguments: Any) -> None:
        self.name = name
        self.work = work
        self.arguments = arguments
        self.kills = 0
        self.process = self.made()

    def made(self) -> Any:
        return CONTEXT.Process(target=self.work, args=self.arguments, name=self.name)

    def start(self) -> None:
        resource_tracker.ensure_running()  # else the first start would do it, and unblock Ctrl-C
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def kill_and_restart(self) -> None:
        """``kill -9``, and then a new process with the same work."""
        self.process.kill()
        self.process.join()
        self.kills += 1
        self.process = self.made()
        self.start()

    def check(self) -> None:
        """Raises if it has ended by an error."""
        if self.process.exitcode:
            raise RuntimeError(
                f"the demonstration's {self.name} must run to its end: exit code {self.process.exitcode}"
            )

    def has_ended(self) -> bool:
        self.check()
        return self.process.exitcode is not None

    def join(self) -> None:
        """Waits for its end, which it was asked for."""
        deadline = time.monotonic() + END_SECONDS
        self.process.join(END_SECONDS)
        self.check()
        if time.monotonic() > deadline:
            raise RuntimeError(f"the demonstration's {self.name} must end within {END_SECONDS:.0f} s of being asked")

    def end(self) -> None:
        """Ends it now, whatever it does."""
        if self.process.pid is not None:
            self.process.kill()
            self.process.join()
