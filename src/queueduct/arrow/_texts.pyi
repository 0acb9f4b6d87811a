from typing import Any

from numpy.typing import NDArray

SPARE: int

def pack(values: NDArray[Any], offsets: NDArray[Any], data: NDArray[Any], row: int) -> tuple[bool, int]: ...
