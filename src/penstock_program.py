"""The program ``penstock``: Ctrl-C is one line from its first moment on, while everything of weight is imported.

It stands beside the package, since whatever stands in the package imports all of it first.
"""

from __future__ import annotations

import os
import signal

__all__ = ["main"]


def main() -> None:
    """The command line of penstock.cli."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, end)
    from penstock.cli import main as command

    signal.signal(signal.SIGINT, before)
    command()


def end(number: int, frame: object) -> None:
    os.write(2, b"stopped by Ctrl-C: all that it had started has ended\n")
    os._exit(128 + number)
