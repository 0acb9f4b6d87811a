"""Ctrl-C at any moment ends everything that a command has started, and says so in one line.

A command starts a Java, which starts Pythons, which start more; a Java that is only about to start hears of nothing. So
a command becomes the parent of all that are orphaned below it (``PR_SET_CHILD_SUBREAPER``): every process that is
started here is found below this process until it has ended. The signal's handler ends them and then this process,
on the spot: no exception travels through Spark's code, which would answer with the stacks of two languages. Queues,
checkpoints and archives are made for processes that end at any instruction.

A stream reader is asked to end, since it may have to remove its durable reader. Other Pythons are killed: asked, they
would print what they had been doing. Java is asked, to remove its files, and killed if it takes its time, or if the
signal comes again.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

__all__ = [
    "Interrupts",
    "at_the_end",
    "end_everything",
    "ending_with_all",
    "in_a_thread",
    "interruptible",
    "noted_interrupts",
    "stream_readers",
    "whenever_it_ends",
]

Result = TypeVar("Result")

SIGNALS = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "its terminal's end"}
JAVA_END_SECONDS = 4.0  # for Java to remove its files
GROUP_SECONDS = 0.25  # between the effect of a signal on Java and on this process
POLL_SECONDS = 0.02
STREAM_READER = b"python_streaming_source_runner"
SET_CHILD_SUBREAPER = 36  # of prctl

works: list[Callable[[], object]] = []


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """The context manager around all that a command does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    adopt_orphans(True)
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # by nohup, or by a shell for what runs in its background
            signal.signal(number, end_everything)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        adopt_orphans(False)


@contextlib.contextmanager
def at_the_end(work: Callable[[], object]) -> Iterator[None]:
    """Calls this at the end of the block, also if a signal ends the process."""
    works.append(work)
    try:
        yield
    finally:
        works.remove(work)
        work()


def whenever_it_ends(work: Callable[[], object]) -> None:
    """Calls this when the process ends, normally or by a signal."""
    atexit.register(work)
    works.append(work)


def in_a_thread(work: Callable[[], Result]) -> Result:
    """Returns or raises what ``work`` does. Signals stay ours: Spark takes them over in the main thread only."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


class Interrupts(threading.Event):
    """Set by the first signal."""

    number: int | None = None
    """The number of that signal."""


@contextlib.contextmanager
def ending_with_all(interrupted: Interrupts) -> Iterator[None]:
    """A signal to the whole group, as service managers send it, has ended Java too: then nothing ends in order."""
    try:
        yield
    except Exception:
        if interrupted.wait(GROUP_SECONDS) and interrupted.number is not None:
            end_everything(interrupted.number, None)
        raise


@contextlib.contextmanager
def noted_interrupts(interrupted: Interrupts | None = None) -> Iterator[Interrupts]:
    """Makes the first Ctrl-C or SIGTERM only set the event, for an orderly end. The next one acts as before."""
    interrupted = interrupted or Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number: int, frame: object) -> None:
        interrupted.number = number
        interrupted.set()
        restore()

    for number in before:
        signal.signal(number, note)
    try:
        yield interrupted
    finally:
        restore()


def end_everything(number: int, frame: object) -> None:
    """The signal handler. A second signal ends its wait."""
    terminal = os.dup(2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # hides what other threads print about Java's end
    for each in SIGNALS:
        signal.signal(each, lambda *_: end_at_once(number, terminal))
    asked: set[int] = set()
    deadline = time.monotonic() + JAVA_END_SECONDS
    while (found := descendants()) and time.monotonic() < deadline:
        for pid in found:
            if pid not in asked:
                asked.add(pid)
                send(pid, signal.SIGTERM if may_be_asked(pid) else signal.SIGKILL)
        reap()
        time.sleep(POLL_SECONDS)
    end_at_once(number, terminal)


def end_at_once(number: int, terminal: int) -> None:
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)  # a further signal would interrupt the rest
    while found := descendants():
        for pid in found:
            send(pid, signal.SIGKILL)
        reap()
        time.sleep(POLL_SECONDS)
    for work in works:
        with contextlib.suppress(Exception):
            work()
    clean_line = "\r\x1b[2K\x1b[?25h" if os.isatty(terminal) else ""  # of a spinner, which hides the cursor
    with contextlib.suppress(OSError):
        os.write(
            terminal,
            f"{clean_line}stopped by {SIGNALS[signal.Signals(number)]}: all that it had started has ended\n".encode(),
        )
    os._exit(128 + number)


def may_be_asked(pid: int) -> bool:
    command = command_of(pid)
    return STREAM_READER in command or b"python" not in command.split(b"\0")[0]


def command_of(pid: int) -> bytes:
    """Returns its command line; none if it has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def stream_readers() -> list[int]:
    """Returns the processes below this one in which Spark plans the queries of a Python source."""
    return [pid for pid in descendants() if STREAM_READER in command_of(pid)]


def descendants() -> list[int]:
    """Returns all processes below this one that have not ended, or have not been waited for."""
    found, parents = [], [os.getpid()]
    while parents:
        children = children_of(parents.pop())
        found += children
        parents += children
    return found


def children_of(pid: int) -> list[int]:
    found = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                found += [int(child) for child in (task / "children").read_text().split()]
    return found


def send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def adopt_orphans(is_wanted: bool) -> None:
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, int(is_wanted), 0, 0, 0)
