from collections.abc import Iterable
from typing import Any

from queueduct.stats import ProducerInfo

class PutOnceMethods:
    """The methods of every kind of queue with named producers."""

    def put_once(
        self, items: Iterable[Any], producer: str, sequence: int, *, block: bool = True, timeout: float | None = None
    ) -> int: ...
    def producers(self) -> list[ProducerInfo]: ...
    def forget_producer(self, name: str) -> None: ...
