from collections.abc import Iterable
from typing import Any

from queueduct.stats import ProducerInfo

class PutOnceMethods:
    """What a kind of queue with named producers has besides."""

    def put_once(
        self, items: Iterable[Any], producer: str, sequence: int, *, block: bool = True, timeout: float | None = None
    ) -> int: ...
    def producers(self) -> list[ProducerInfo]: ...
    def forget_producer(self, name: str) -> None: ...
