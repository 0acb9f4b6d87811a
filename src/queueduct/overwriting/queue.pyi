from collections.abc import Coroutine, Iterable
from typing import Any, Self

from numpy.typing import DTypeLike

from queueduct.async_calls import AsyncGets, AsyncPuts
from queueduct.core._lease import LeaseMethods
from queueduct.core._queue import Queue
from queueduct.overwriting.latest import LatestMethods
from queueduct.segments.names import Directory
from queueduct.stats import OverwritingStats
from queueduct.watching._participants import ParticipantMethods

class OverwritingQueue(Queue, AsyncPuts, AsyncGets, LeaseMethods, LatestMethods, ParticipantMethods):
    """A queue that is never full: if there is no room, a put overwrites the oldest message, which is counted."""

    @classmethod
    def create(
        cls,
        name: str | None,
        capacity: int = 1024,
        *,
        item: type[bytes] | type[object] | DTypeLike | None = None,
        message_bytes: int | None = None,
        participants: int = 256,
        directory: Directory = None,
        exist_ok: bool = False,
        replace: bool = False,
    ) -> Self: ...
    @classmethod
    def adopt(
        cls,
        name: str,
        *,
        item: type[bytes] | type[object] | DTypeLike | None = None,
        participants: int = 256,
        directory: Directory = None,
    ) -> Self: ...
    @property
    def message_bytes(self) -> int: ...
    def put(self, item: Any, block: bool = True, timeout: float | None = None, *, overwrite: bool = True) -> None: ...
    def put_nowait(self, item: Any, *, overwrite: bool = True) -> None: ...
    def try_put(self, item: Any, *, overwrite: bool = True) -> bool: ...
    def put_many(
        self, items: Iterable[Any], block: bool = True, timeout: float | None = None, *, overwrite: bool = True
    ) -> int: ...
    def aput(self, item: Any, timeout: float | None = None, *, overwrite: bool = True) -> Coroutine[Any, Any, None]: ...
    def aput_many(
        self, items: Iterable[Any], timeout: float | None = None, *, overwrite: bool = True
    ) -> Coroutine[Any, Any, int]: ...
    def stats(self) -> OverwritingStats: ...
