from os import PathLike
from typing import Any

from numpy.typing import NDArray

OPS: tuple[str, ...]
OUTCOMES: tuple[str, ...]
WEAK: int
REDELIVERED: int
LOST: int
OVER: int
MOST_ITEMS: int
MOST_TICKETS: int

class RowFile:
    def __init__(
        self, path: str | PathLike[str], worker: int, reader: int = -1, expected: int = 0, tick_step: int = 1
    ) -> None: ...

class RowReader:
    def __init__(self, words: NDArray[Any]) -> None: ...
    def read(self, limit: int) -> tuple[NDArray[Any], ...] | None: ...

def has_cycles() -> bool: ...
def read_clocks() -> tuple[int, int]: ...
def read_header(words: NDArray[Any]) -> tuple[int, int] | None: ...
