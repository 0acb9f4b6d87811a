from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray
from typing_extensions import TypeVar

from queueduct.async_calls import AsyncGets, AsyncPuts
from queueduct.core._put_once import PutOnceMethods
from queueduct.core._queue import Queue, _Gets
from queueduct.events.reading.reader import Reader
from queueduct.segments.names import Directory
from queueduct.stats import EventStats, ReaderInfo
from queueduct.watching._participants import ParticipantMethods

_T = TypeVar("_T", default=Any)
_OnFull = Literal["wait", "raise", "drop_slowest"]
_Sync = Literal["always", "interval", "never"]

class EventQueue(Queue[_T], AsyncPuts[_T], AsyncGets[_T], PutOnceMethods[_T], ParticipantMethods):
    """A log: every reader sees every item. Memory is freed when all readers have read it."""

    def __init__(
        self,
        *,
        max_bytes: int = 268435456,
        on_full: _OnFull = "wait",
        first_items: int = 4,
        chunk_bytes: int | None = None,
        readers: int = 64,
    ) -> None: ...
    @overload
    @classmethod
    def create(
        cls,
        name: str | None,
        *,
        item: type[bytes] | None = None,
        max_bytes: int = 268435456,
        on_full: _OnFull = "wait",
        first_items: int = 4,
        item_bytes: int | None = None,
        chunk_bytes: int | None = None,
        readers: int = 64,
        producers: int = 64,
        participants: int = 256,
        sync: _Sync = "interval",
        sync_interval: float = 1.0,
        directory: Directory = None,
        exist_ok: bool = False,
        replace: bool = False,
    ) -> EventQueue[bytes]: ...
    @overload
    @classmethod
    def create(
        cls,
        name: str | None,
        *,
        item: type[object] | DTypeLike,
        max_bytes: int = 268435456,
        on_full: _OnFull = "wait",
        first_items: int = 4,
        item_bytes: int | None = None,
        chunk_bytes: int | None = None,
        readers: int = 64,
        producers: int = 64,
        participants: int = 256,
        sync: _Sync = "interval",
        sync_interval: float = 1.0,
        directory: Directory = None,
        exist_ok: bool = False,
        replace: bool = False,
    ) -> Self: ...
    def subscribe(
        self,
        name: str | None = None,
        start: Literal["latest", "earliest"] | int = "latest",
        *,
        epoch: int | None = None,
    ) -> Reader[_T]: ...
    def unsubscribe(self, name: str) -> None: ...
    def readers(self) -> list[ReaderInfo]: ...
    @overload
    def read(self: _Gets[NDArray[Any]], start: int, stop: int, *, epoch: int | None = None) -> Any: ...
    @overload
    def read(  # as get_many in Queue
        self: _Gets[np.generic], start: int, stop: int, *, epoch: int | None = None
    ) -> NDArray[_T]: ...  # type: ignore[type-var]
    @overload
    def read(self, start: int, stop: int, *, epoch: int | None = None) -> list[_T]: ...
    def read_arrow(
        self, start: int, stop: int, *, epoch: int | None = None, strings: Literal["string", "binary"] = "string"
    ) -> Any: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
    @property
    def end(self) -> int: ...
    @property
    def epoch(self) -> int: ...
    def valid_until(self, epoch: int) -> int: ...
    def durable_end(self, sync: bool = True) -> int: ...
    @property
    def earliest(self) -> int: ...
    def clear(self) -> None: ...
    def keep_last(self, n: int) -> None: ...
    def sync(self) -> None: ...
    @property
    def is_shut_down(self) -> bool: ...
    @property
    def capacity(self) -> int: ...
    def full(self) -> bool: ...
    def stats(self) -> EventStats: ...
