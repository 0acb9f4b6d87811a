"""Threads whose outcome a test looks at."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from tests.support.deadline import PATIENCE_SECONDS, until_parked


class Outcome(threading.Thread):
    """Does its work and keeps the result, or the class of what it raised."""

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self.work = work
        self.found: list[Any] = []
        self.start()

    def run(self) -> None:
        try:
            self.found.append(self.work())
        except BaseException as error:
            self.found.append(type(error))

    def result(self) -> Any:
        """What came of it, once it has ended."""
        self.join(PATIENCE_SECONDS)
        assert not self.is_alive(), "it has not ended"
        return self.found[0]


def parked(works: Iterable[Callable[[], Any]]) -> list[Outcome]:
    """A thread for each, once all of them wait inside a queue."""
    threads = [Outcome(work) for work in works]
    until_parked(*threads)
    return threads


def results(threads: Iterable[Outcome]) -> list[Any]:
    return [thread.result() for thread in threads]
