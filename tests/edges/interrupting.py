"""Objects whose unpickling is interrupted, by whatever can interrupt Python code, at an item of one's choice."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.support.deadline import until

armed: dict[int, Callable[[], object]] = {}  # by the number of the item whose unpickling is struck


class Item:
    """Says which one it is, and runs what it is armed with when it is unpickled."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __setstate__(self, state: dict[str, int]) -> None:
        self.__dict__.update(state)
        if self.number in armed:
            armed[self.number]()


@contextlib.contextmanager
def arm(number: int, strike: Callable[[], object]) -> Iterator[None]:
    """Strike whenever the item with that number is unpickled in this block."""
    armed[number] = strike
    try:
        yield
    finally:
        armed.clear()


def numbers_of(items: Any) -> list[int]:
    return [item.number for item in items]


class Struck(Exception):
    """Raised by a signal's handler."""


def struck_by(*_: object) -> None:
    raise Struck


def exit_by(*_: object) -> None:
    sys.exit(3)


@contextlib.contextmanager
def handling(number: int, handler: Any) -> Iterator[None]:
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def send(number: int, handler: Any) -> None:
    """A signal whose handler runs, and raises, in the midst of what is running now."""
    with handling(number, handler):
        os.kill(os.getpid(), number)


def raise_one(error: BaseException) -> None:
    raise error


def send_to_thread(error: type[BaseException]) -> None:
    """What PyThreadState_SetAsyncExc raises here, from another thread."""

    def work() -> None:
        while not may_begin:  # the start of this thread must be over: it uses locks of threading's own
            time.sleep(0.0001)
        assert ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(target), ctypes.py_object(error)) == 1

    may_begin: list[bool] = []
    target = threading.get_ident()
    other = threading.Thread(target=work)
    other.start()
    try:
        may_begin.append(True)
        until(lambda: False, "what the other thread sends")  # it is raised at one of the next instructions
    finally:
        other.join()


STRIKES: dict[str, tuple[type[BaseException], Callable[[], object]]] = {
    "Ctrl-C": (KeyboardInterrupt, lambda: send(signal.SIGINT, signal.default_int_handler)),
    "a handler that exits": (SystemExit, lambda: send(signal.SIGTERM, exit_by)),
    "a handler's own error": (Struck, lambda: send(signal.SIGALRM, struck_by)),
    "no memory": (MemoryError, lambda: raise_one(MemoryError())),
    "no stack": (RecursionError, lambda: raise_one(RecursionError())),
    "a generator's end": (GeneratorExit, lambda: raise_one(GeneratorExit())),
    "another thread": (KeyboardInterrupt, lambda: send_to_thread(KeyboardInterrupt)),
}
