from collections.abc import Iterable
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from queueduct.stats import ProducerInfo

_T = TypeVar("_T")

class PutOnceMethods(Generic[_T]):
    """The methods of every kind of queue with named producers."""

    @overload
    def put_once(
        self: PutOnceMethods[bytes],
        items: Iterable[Buffer | NDArray[Any]],
        producer: str,
        sequence: int,
        *,
        block: bool = True,
        timeout: float | None = None,
    ) -> int: ...
    @overload
    def put_once(
        self: PutOnceMethods[np.void],
        items: Any,
        producer: str,
        sequence: int,
        *,
        block: bool = True,
        timeout: float | None = None,
    ) -> int: ...
    @overload
    def put_once(
        self, items: Iterable[_T], producer: str, sequence: int, *, block: bool = True, timeout: float | None = None
    ) -> int: ...
    def producers(self) -> list[ProducerInfo]: ...
    def forget_producer(self, name: str) -> None: ...
