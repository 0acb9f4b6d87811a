"""Waiting for a condition instead of sleeping for a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE_SECONDS = 30.0  # far more than anything here needs: a busy machine must not fail a test


def until(condition: Callable[[], object], what: str = "the condition", seconds: float = PATIENCE_SECONDS) -> None:
    """Poll until the condition holds; fail when it does not within the time.

    The longer it has waited, the less often it asks: a condition may read all of /proc.
    """
    start = time.monotonic()
    while not condition():
        waited = time.monotonic() - start
        assert waited < seconds, f"{what} did not come true within {seconds} s"
        time.sleep(min(max(waited / 20, 0.001), 0.1))


def is_parked(thread: threading.Thread) -> bool:
    """Does this thread sleep on a futex that other processes can wake, as a queue's wait does?"""
    return is_task_parked(f"/proc/self/task/{thread.native_id}")


def is_task_parked(task: str) -> bool:
    """The same for a task directory of /proc."""
    try:
        words = Path(task, "syscall").read_text().split()
    except OSError:
        return True  # gone, or not ours to see: then there is nothing to wait for
    private_flag = 128
    return len(words) > 2 and words[0] in FUTEX_NUMBERS and not int(words[2], 16) & private_flag


FUTEX_NUMBERS = {"202", "98"}  # x86-64, arm64


def until_parked(*threads: threading.Thread) -> None:
    """Until each of them waits inside a queue."""
    for thread in threads:
        until(lambda thread=thread: thread.native_id is not None and is_parked(thread), f"{thread.name} waits")
