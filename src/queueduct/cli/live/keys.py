"""The terminal of a live view: keys without an echo, and the terminal as it was afterwards, whatever happens."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from typing import NoReturn

__all__ = ["Keys", "Stopped", "stopping_on_signals"]

NAMES = {
    b"\x1b[A": "up",
    b"\x1bOA": "up",
    b"\x1b[B": "down",
    b"\x1bOB": "down",
    b"\x1b[C": "right",
    b"\x1bOC": "right",
    b"\x1b[D": "left",
    b"\x1bOD": "left",
    b"\x1b[5~": "page up",
    b"\x1b[6~": "page down",
    **dict.fromkeys((b"\x1b[H", b"\x1bOH", b"\x1b[1~"), "home"),
    **dict.fromkeys((b"\x1b[F", b"\x1bOF", b"\x1b[4~"), "end"),
    b"\r": "enter",
    b"\n": "enter",
    b"\x1b": "escape",
    b"\x7f": "backspace",
}


class Stopped(BaseException):
    """A signal asks the view to end. Not an Exception: nothing on the way may take it for an error of its own."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def stopping_on_signals() -> Iterator[None]:
    """Makes Ctrl-C, SIGTERM and a closed terminal end the view by an exception, so that the terminal is restored."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def stop(number: int, frame: object) -> NoReturn:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)  # a second one must not break the restoring
        raise Stopped(number)

    before = {number: signal.getsignal(number) for number in numbers}
    try:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:  # as under nohup
                signal.signal(number, stop)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Keys:
    """Reads keys of the terminal, one at a time and unechoed, and no key where there is no terminal."""

    def __init__(self) -> None:
        self._descriptor: int | None = None
        self._held = b""

    def __enter__(self) -> Keys:
        with contextlib.suppress(OSError, ValueError, termios.error):
            descriptor = sys.stdin.fileno()
            self._before = termios.tcgetattr(descriptor)
            self._descriptor = descriptor
            tty.setcbreak(descriptor, termios.TCSANOW)
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor is not None:
            with contextlib.suppress(OSError, termios.error):
                termios.tcsetattr(self._descriptor, termios.TCSANOW, self._before)

    def wait(self, seconds: float) -> str | None:
        """Returns the name of the next key, or None if none comes in time."""
        if not self._held and not self._read(max(0.0, seconds)):
            return None
        for length in (4, 3):
            if (name := NAMES.get(self._held[:length])) is not None:
                self._held = self._held[length:]
                return name
        first, self._held = self._held[:1], self._held[1:]
        if first == b"\x1b" and self._held[:1] in (b"[", b"O"):
            self._held = b""  # a key that means nothing here
            return ""
        return NAMES.get(first) or first.decode("latin-1")

    def _read(self, seconds: float) -> bool:
        if self._descriptor is None:
            select.select([], [], [], seconds)
            return False
        if not select.select([self._descriptor], [], [], seconds)[0]:
            return False
        try:
            self._held = os.read(self._descriptor, 64)
        except OSError:
            self._held = b""
        if not self._held:  # the terminal has gone
            raise Stopped(signal.SIGHUP)
        return True
