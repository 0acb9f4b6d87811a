from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self, final

from numpy.typing import NDArray

MEMORIES: dict[str, int]
STEPS: dict[str, int]
SHAPES: dict[str, int]
ISAS: dict[str, int]
POOLED_BYTES: int

def use_isa(name: str) -> bool: ...

@final
class GatherPlan:
    """How fields of a record become columns. Never changes."""

    def __init__(
        self,
        itemsize: int,
        scratch_bytes: int,
        steps: Iterable[Sequence[Any]],
        shapes: Iterable[tuple[str, int, int]],
        nodes: Iterable[tuple[int, int, int]],
    ) -> None: ...

@final
class Gatherer:
    """Gathers the columns of at most ``rows`` records. One thread at a time uses it."""

    def __new__(cls, plan: GatherPlan, rows: int, lend: Callable[[int], Any]) -> Self: ...
    def gather(self, records: NDArray[Any]) -> None: ...
    def batch_address(self, rows: int) -> int: ...
    def has_doubts(self) -> bool: ...
    def bad_text(self, column: int, rows: int, is_utf8: bool) -> int: ...
    def text_at(self, column: int, element: int) -> bytes: ...
    def too_far(self, column: int) -> tuple[int, int]: ...
