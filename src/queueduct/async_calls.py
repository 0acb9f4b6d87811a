"""The asyncio calls of every queue. They import asyncio with the first use: that takes as long as all of queueduct."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Buffer

__all__ = ["AsyncGets", "AsyncPuts"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class AsyncPuts(Generic[T]):
    """The calls of a queue. ``_bridge`` is the handle's own."""

    __slots__ = ()

    if TYPE_CHECKING:

        def _bridge(self) -> Any: ...
        def _batch(self, items: Iterable[Any], timeout: float | None = None) -> Any: ...

    @overload
    def aput(
        self: AsyncPuts[bytes], item: Buffer | NDArray[Any], timeout: float | None = None
    ) -> Coroutine[Any, Any, None]: ...
    @overload
    def aput(self: AsyncPuts[np.void], item: Any, timeout: float | None = None) -> Coroutine[Any, Any, None]: ...
    @overload
    def aput(self, item: T, timeout: float | None = None) -> Coroutine[Any, Any, None]: ...

    def aput(self, item: Any, timeout: float | None = None) -> Coroutine[Any, Any, None]:
        """``await q.aput(item)``: put without blocking the event loop.

        >>> import asyncio
        >>> q = queueduct.BoundedQueue(8)
        >>> asyncio.run(q.aput("a"))
        """
        call: Coroutine[Any, Any, None] = self._bridge().put(item, timeout)
        return call

    @overload
    def aput_many(
        self: AsyncPuts[bytes], items: Iterable[Buffer | NDArray[Any]], timeout: float | None = None
    ) -> Coroutine[Any, Any, int]: ...
    @overload
    def aput_many(self: AsyncPuts[np.void], items: Any, timeout: float | None = None) -> Coroutine[Any, Any, int]: ...
    @overload
    def aput_many(self, items: Iterable[T], timeout: float | None = None) -> Coroutine[Any, Any, int]: ...

    def aput_many(self, items: Iterable[Any], timeout: float | None = None) -> Coroutine[Any, Any, int]:
        """``await q.aput_many(items)``: put_many without blocking the event loop; returns how many are in.

        Waits until all are in, at most ``timeout`` seconds. Raises Full, or ShutDown, only if none is in. What was put
        before a cancellation stays in the queue; a note of the CancelledError says how many.

        >>> import asyncio
        >>> q = queueduct.BoundedQueue(8)
        >>> asyncio.run(q.aput_many(["a", "b"]))
        2
        """
        call: Coroutine[Any, Any, int] = self._bridge().put_many(self._batch(items, timeout), timeout)
        return call


class AsyncGets(Generic[T_co]):
    """The calls of a queue, or of a reader, and ``async for``, which ends when the queue is shut down and empty."""

    __slots__ = ()

    if TYPE_CHECKING:

        def _bridge(self) -> Any: ...
        def get_many(self, max_items: int, block: bool = True, timeout: float | None = None) -> Any: ...

    def aget(self, timeout: float | None = None) -> Coroutine[Any, Any, T_co]:
        """``await q.aget()``: get without blocking the event loop. A cancelled aget takes no item.

        >>> import asyncio
        >>> q = queueduct.BoundedQueue(8)
        >>> q.put("a")
        >>> asyncio.run(q.aget())
        'a'
        """
        call: Coroutine[Any, Any, T_co] = self._bridge().get(timeout)
        return call

    @overload
    def aget_many(
        self: AsyncGets[NDArray[Any]], max_items: int, timeout: float | None = None
    ) -> Coroutine[Any, Any, Any]: ...
    @overload
    def aget_many(  # type: ignore[overload-overlap]  # of one type both fit, and the first is meant
        self: AsyncGets[np.generic], max_items: int, timeout: float | None = None
    ) -> Coroutine[Any, Any, NDArray[T_co]]: ...  # type: ignore[type-var]  # of this self, T_co is a numpy scalar
    @overload
    def aget_many(self, max_items: int, timeout: float | None = None) -> Coroutine[Any, Any, list[T_co]]: ...

    def aget_many(self, max_items: int, timeout: float | None = None) -> Coroutine[Any, Any, Any]:
        """``await q.aget_many(1000)``: get_many without blocking the event loop. A cancelled one takes no item.

        >>> import asyncio
        >>> q = queueduct.BoundedQueue(8)
        >>> q.put("a")
        >>> asyncio.run(q.aget_many(100))
        ['a']
        """
        call: Coroutine[Any, Any, Any] = self._bridge().take(self.get_many, (max_items, False), timeout)
        return call
