from typing import Any

from numpy.typing import NDArray

SPARE: int

def pack(values: NDArray[Any], offsets: NDArray[Any], data: NDArray[Any], is_utf8: bool) -> int: ...
