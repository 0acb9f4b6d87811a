from os import PathLike
from typing import Any, Self, final

from numpy.typing import NDArray

OPS: tuple[str, ...]
OUTCOMES: tuple[str, ...]
WEAK: int
REDELIVERED: int
LOST: int
OVER: int
MOST_ITEMS: int
MOST_TICKETS: int

@final
class RowFile:
    def __new__(
        cls, path: str | PathLike[str], worker: int, reader: int = -1, expected: int = 0, tick_step: int = 1
    ) -> Self: ...

@final
class RowReader:
    def __new__(cls, words: NDArray[Any]) -> Self: ...
    def read(self, limit: int) -> tuple[NDArray[Any], ...] | None: ...

def has_cycles() -> bool: ...
def read_clocks() -> tuple[int, int]: ...
def read_header(words: NDArray[Any]) -> tuple[int, int] | None: ...
