from collections.abc import Coroutine, Iterable
from typing import Any, Self, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray
from typing_extensions import Buffer, TypeVar

from queueduct.async_calls import AsyncGets, AsyncPuts
from queueduct.core._lease import LeaseMethods
from queueduct.core._queue import Queue
from queueduct.overwriting.latest import LatestMethods
from queueduct.segments.names import Directory
from queueduct.stats import OverwritingStats
from queueduct.watching._participants import ParticipantMethods

_T = TypeVar("_T", default=Any)

class OverwritingQueue(
    Queue[_T], AsyncPuts[_T], AsyncGets[_T], LeaseMethods[_T], LatestMethods[_T], ParticipantMethods
):
    """A queue that is never full: if there is no room, a put overwrites the oldest message, which is counted."""

    @overload
    @classmethod
    def create(
        cls,
        name: str | None,
        capacity: int = 1024,
        *,
        item: type[bytes] | None = None,
        message_bytes: int | None = None,
        participants: int = 256,
        directory: Directory = None,
        exist_ok: bool = False,
        replace: bool = False,
    ) -> OverwritingQueue[bytes]: ...
    @overload
    @classmethod
    def create(
        cls,
        name: str | None,
        capacity: int = 1024,
        *,
        item: type[object] | DTypeLike,
        message_bytes: int | None = None,
        participants: int = 256,
        directory: Directory = None,
        exist_ok: bool = False,
        replace: bool = False,
    ) -> Self: ...
    @overload
    @classmethod
    def adopt(
        cls,
        name: str,
        *,
        item: type[bytes] | None = None,
        participants: int = 256,
        directory: Directory = None,
    ) -> OverwritingQueue[bytes]: ...
    @overload
    @classmethod
    def adopt(
        cls,
        name: str,
        *,
        item: type[object] | DTypeLike,
        participants: int = 256,
        directory: Directory = None,
    ) -> Self: ...
    @property
    def message_bytes(self) -> int: ...
    @overload
    def put(
        self: OverwritingQueue[bytes],
        item: Buffer | NDArray[Any],
        block: bool = True,
        timeout: float | None = None,
        *,
        overwrite: bool = True,
    ) -> None: ...
    @overload
    def put(
        self: OverwritingQueue[np.void],
        item: Any,
        block: bool = True,
        timeout: float | None = None,
        *,
        overwrite: bool = True,
    ) -> None: ...
    @overload
    def put(self, item: _T, block: bool = True, timeout: float | None = None, *, overwrite: bool = True) -> None: ...
    @overload
    def put_nowait(self: OverwritingQueue[bytes], item: Buffer | NDArray[Any], *, overwrite: bool = True) -> None: ...
    @overload
    def put_nowait(self: OverwritingQueue[np.void], item: Any, *, overwrite: bool = True) -> None: ...
    @overload
    def put_nowait(self, item: _T, *, overwrite: bool = True) -> None: ...
    @overload
    def try_put(self: OverwritingQueue[bytes], item: Buffer | NDArray[Any], *, overwrite: bool = True) -> bool: ...
    @overload
    def try_put(self: OverwritingQueue[np.void], item: Any, *, overwrite: bool = True) -> bool: ...
    @overload
    def try_put(self, item: _T, *, overwrite: bool = True) -> bool: ...
    @overload
    def put_many(
        self: OverwritingQueue[bytes],
        items: Iterable[Buffer | NDArray[Any]],
        block: bool = True,
        timeout: float | None = None,
        *,
        overwrite: bool = True,
    ) -> int: ...
    @overload
    def put_many(
        self: OverwritingQueue[np.void],
        items: Any,
        block: bool = True,
        timeout: float | None = None,
        *,
        overwrite: bool = True,
    ) -> int: ...
    @overload
    def put_many(
        self, items: Iterable[_T], block: bool = True, timeout: float | None = None, *, overwrite: bool = True
    ) -> int: ...
    @overload
    def aput(
        self: OverwritingQueue[bytes],
        item: Buffer | NDArray[Any],
        timeout: float | None = None,
        *,
        overwrite: bool = True,
    ) -> Coroutine[Any, Any, None]: ...
    @overload
    def aput(
        self: OverwritingQueue[np.void], item: Any, timeout: float | None = None, *, overwrite: bool = True
    ) -> Coroutine[Any, Any, None]: ...
    @overload
    def aput(self, item: _T, timeout: float | None = None, *, overwrite: bool = True) -> Coroutine[Any, Any, None]: ...
    @overload
    def aput_many(
        self: OverwritingQueue[bytes],
        items: Iterable[Buffer | NDArray[Any]],
        timeout: float | None = None,
        *,
        overwrite: bool = True,
    ) -> Coroutine[Any, Any, int]: ...
    @overload
    def aput_many(
        self: OverwritingQueue[np.void], items: Any, timeout: float | None = None, *, overwrite: bool = True
    ) -> Coroutine[Any, Any, int]: ...
    @overload
    def aput_many(
        self, items: Iterable[_T], timeout: float | None = None, *, overwrite: bool = True
    ) -> Coroutine[Any, Any, int]: ...
    @property
    def capacity(self) -> int: ...
    def full(self) -> bool: ...
    def stats(self) -> OverwritingStats: ...
