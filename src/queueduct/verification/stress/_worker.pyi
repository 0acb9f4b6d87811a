from os import PathLike
from typing import Any, Self, final

from queueduct.core._queue import Queue
from queueduct.events.reading.reader import Reader
from queueduct.verification.history._rows import RowFile

WAIT: int
RUN: int
STOP_PRODUCERS: int
STOP: int
NO_CLOCK: int
MONOTONIC: int
CYCLES: int

@final
class Board:
    signal: int
    workers: int
    def __new__(cls, path: str | PathLike[str], workers: int, create: bool = False) -> Self: ...
    def ready(self, worker: int) -> None: ...
    def is_ready(self, worker: int) -> bool: ...
    def progress(self, worker: int) -> tuple[int, int, int, int]: ...
    def ended(self, worker: int) -> int: ...

def work(
    queue: Queue,
    kind: str,
    plan: Any,
    board: Board,
    number: int,
    rows: RowFile | None,
    clock: int,
    reader: Reader | None,
) -> str: ...
