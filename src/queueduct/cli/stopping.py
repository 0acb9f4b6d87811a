"""Ctrl-C asks a command to end in order: what it has begun is completed."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

__all__ = ["StopRequest", "stopping"]

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequest(threading.Event):
    """Set by the first signal."""

    number = 0
    """The number of that signal."""


@contextlib.contextmanager
def stopping() -> Iterator[StopRequest]:
    """Yields an event that the first Ctrl-C, SIGTERM or SIGHUP sets. The next one acts as before."""
    event = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    ours = [number for number in SIGNALS if before[number] is not signal.SIG_IGN]  # as nohup and shells set it

    def restore() -> None:
        for number in ours:
            signal.signal(number, before[number])

    def note(number: int, frame: object) -> None:
        restore()
        event.number = number
        event.set()

    for number in ours:
        signal.signal(number, note)
    try:
        yield event
    finally:
        restore()
