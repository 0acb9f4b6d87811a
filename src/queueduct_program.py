"""The program ``queueduct``: from its first moment on, also during imports, Ctrl-C and SIGTERM print one line.

It is beside the package, since every module of the package imports all of it first.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys

__all__ = ["main"]

NAMES = {signal.SIGINT: b"Ctrl-C", signal.SIGTERM: b"SIGTERM"}


def main() -> None:
    """Runs the command line of queueduct.cli."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    ours = {number: handler for number, handler in usual.items() if signal.getsignal(number) is handler}
    for number in ours:
        signal.signal(number, end)
    atexit.register(ignore, list(ours))  # the first to be registered is the last to be called
    is_chosen = "OPENBLAS_NUM_THREADS" in os.environ
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # else numpy starts a thread a processor, which no command uses
    from queueduct.cli import main as command

    if not is_chosen:
        del os.environ["OPENBLAS_NUM_THREADS"]  # child processes may use them
    for number, handler in ours.items():
        signal.signal(number, handler)
    try:
        command()
    finally:  # Java ends after this process
        for number in ours:
            signal.signal(number, end)


def end(number: int, frame: object) -> None:
    if ending := sys.modules.get("queueduct.spark.ending"):
        ending.end_everything(number, frame)
    os.write(2, b"stopped by %s: all that it had started has ended\n" % NAMES[number])
    os._exit(128 + number)


def ignore(numbers: list[signal.Signals]) -> None:
    """Ignores signals when the exit code is known: they would only kill the end of Python itself."""
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)
