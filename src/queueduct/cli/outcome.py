"""How a command ends: its exit code, and the one line that it says then.

0 done, 1 failed, 2 wrong usage, 3 time is up, 130 stopped by Ctrl-C, 141 nobody reads the output any more.
A command that goes on until Ctrl-C is done by it: it completes what it has begun, and ends with 0.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import IO, Any, NoReturn

import click

from queueduct.errors import QueueNotFound

__all__ = [
    "CLOSED_PIPE",
    "INTERRUPTED",
    "TIME_IS_UP",
    "Failure",
    "Stopped",
    "TimeIsUp",
    "code_of_signal",
    "end_by_signal",
    "give_up_output",
    "held_back",
    "told",
    "without_output",
]

FAILED, TIME_IS_UP, INTERRUPTED, CLOSED_PIPE = 1, 3, 128 + signal.SIGINT, 128 + signal.SIGPIPE


class Failure(click.ClickException):
    """An error of a subcommand: one line on stderr, and its exit code."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc]  # click reads it of the instance


class TimeIsUp(click.ClickException):
    """The time that --timeout gives is over."""

    exit_code = TIME_IS_UP


class Stopped(click.ClickException):
    """Ctrl-C, and what was done until then."""

    def __init__(self, message: str, *, is_the_end: bool = False) -> None:
        super().__init__(message)
        self.exit_code = code_of_signal(signal.SIGINT, is_the_end=is_the_end)  # type: ignore[misc]  # as above

    def show(self, file: IO[Any] | None = None) -> None:
        with contextlib.suppress(OSError):
            click.echo(f"stopped by Ctrl-C{': ' if self.message else ''}{self.message}", err=True)


def told(error: BaseException) -> str:
    """Returns what an error of the package says, with the remedy as a command where the package names a call."""
    text = str(error) or type(error).__name__
    if isinstance(error, QueueNotFound) and text.startswith("there is no queue named") and "--create" not in text:
        return f"{text}; queueduct ls lists those that are there, queueduct create makes one"
    if isinstance(error, ImportError) and "pip install" not in text:
        return f"{text}; Spark is an extra: pip install 'queueduct[spark]'"
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        return f"there is no {os.fspath(error.filename)}: make it first, or name another"
    return text


def code_of_signal(number: int, *, is_the_end: bool) -> int:
    """Returns the exit code of a command that a signal has stopped. ``is_the_end``: it goes on until then, and is done.

    A command that has an end of its own to reach, and has not reached it, ends with 128 and the signal's number.
    """
    return 0 if is_the_end else 128 + number


def end_by_signal(number: int, *, is_the_end: bool) -> NoReturn:
    """Ends the process; with one line if its end was not reached."""
    code = code_of_signal(number, is_the_end=is_the_end)
    if code:
        name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
        with contextlib.suppress(OSError):
            click.echo(f"stopped by {name}", err=True)
    sys.exit(code)


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Lets Ctrl-C wait until the end of the block: what is done in it is done wholly, and counted."""
    is_ours = threading.current_thread() is threading.main_thread()
    if not is_ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    pressed = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed = True

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if pressed:
        raise KeyboardInterrupt


def give_up_output() -> None:
    """After an error: what cannot be written is not tried again at Python's end, which would change the exit code."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError):
        without_output()


def without_output() -> None:
    """Sends what is still to be written to nowhere: Python writes it at its end, and would complain."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.__stdout__.fileno())  # type: ignore[union-attr]  # None has no fileno: suppressed
        os.close(nowhere)
