"""The asyncio calls of every queue. They import asyncio with the first use: that takes as long as all of queueduct."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from typing import TYPE_CHECKING, Any

__all__ = ["AsyncGets", "AsyncPuts"]


class AsyncPuts:
    """The calls of a queue. ``_bridge`` is the handle's own."""

    __slots__ = ()

    if TYPE_CHECKING:

        def _bridge(self) -> Any: ...
        def _batch(self, items: Iterable[Any]) -> Any: ...

    def aput(self, item: Any, timeout: float | None = None) -> Coroutine[Any, Any, None]:
        """``await q.aput(item)``: put without blocking the event loop."""
        call: Coroutine[Any, Any, None] = self._bridge().put(item, timeout)
        return call

    def aput_many(self, items: Iterable[Any], timeout: float | None = None) -> Coroutine[Any, Any, int]:
        """``await q.aput_many(items)``: put_many without blocking the event loop; returns how many are in.

        Waits until all are in, at most ``timeout`` seconds. Raises Full, or ShutDown, only if none is in. What was put
        before a cancellation stays in the queue; a note of the CancelledError says how many.
        """
        call: Coroutine[Any, Any, int] = self._bridge().put_many(self._batch(items), timeout)
        return call


class AsyncGets:
    """The calls of a queue, or of a reader, and ``async for``, which ends when the queue is shut down and empty."""

    __slots__ = ()

    if TYPE_CHECKING:

        def _bridge(self) -> Any: ...
        def get_many(self, max_items: int, block: bool = True, timeout: float | None = None) -> Any: ...

    def aget(self, timeout: float | None = None) -> Coroutine[Any, Any, Any]:
        """``await q.aget()``: get without blocking the event loop. A cancelled aget takes no item."""
        call: Coroutine[Any, Any, Any] = self._bridge().get(timeout)
        return call

    def aget_many(self, max_items: int, timeout: float | None = None) -> Coroutine[Any, Any, Any]:
        """``await q.aget_many(1000)``: get_many without blocking the event loop. A cancelled one takes no item."""
        call: Coroutine[Any, Any, Any] = self._bridge().take(self.get_many, (max_items, False), timeout)
        return call
