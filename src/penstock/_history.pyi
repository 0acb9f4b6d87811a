from os import PathLike
from typing import Any

from numpy.typing import NDArray

OPS: tuple[str, ...]
OUTCOMES: tuple[str, ...]
WEAK: int
REDELIVERED: int
LOST: int

class RowFile:
    def __init__(self, path: str | PathLike[str], worker: int, reader: int = -1, expected: int = 0) -> None: ...

def has_cycles() -> bool: ...
def read_clocks() -> tuple[int, int]: ...
def read_header(words: NDArray[Any]) -> tuple[int, int] | None: ...
def read_rows(words: NDArray[Any], start: int, limit: int) -> tuple[tuple[NDArray[Any], ...], int] | None: ...
