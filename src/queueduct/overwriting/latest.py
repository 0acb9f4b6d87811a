"""Readers of the latest value: each sees the newest message, and none takes it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from queueduct.errors import Empty, ShutDown
from queueduct.overwriting._latest import read_newest, wait_for_newer

__all__ = ["LatestMethods", "Readings"]

T = TypeVar("T")
Default = TypeVar("Default")


class LatestMethods(Generic[T]):
    """The calls of an overwriting queue that take nothing."""

    __slots__ = ()

    if TYPE_CHECKING:

        def _bridge(self) -> Any: ...

    @overload
    def peek(self) -> T | None: ...
    @overload
    def peek(self, default: Default) -> T | Default: ...

    def peek(self, default: Any = None) -> Any:
        """Return the newest item, and leave it in the queue; ``default`` if there is none. Never waits for a put.

        >>> queueduct.OverwritingQueue.create(None, item="i8").peek(default=0)
        0
        """
        try:
            return read_newest(self, None, False, None)[0]
        except (Empty, ShutDown):
            return default

    def latest(self, newer_than: int | None = None, block: bool = True, timeout: float | None = None) -> tuple[T, int]:
        """Return the newest item and its position, and leave it in the queue.

        With ``newer_than``, a position, it waits for a later one, at most ``timeout`` seconds. Any number of readers
        see the same item, any number of times. Raises Empty, or ShutDown when none can come any more.

        >>> q = queueduct.OverwritingQueue.create(None, item=object)
        >>> q.put("a")
        >>> q.latest()
        ('a', 0)
        """
        return read_newest(self, newer_than, block, timeout)

    def alatest(
        self, newer_than: int | None = None, timeout: float | None = None
    ) -> Coroutine[Any, Any, tuple[T, int]]:
        """``await q.alatest()``: latest without blocking the event loop.

        >>> import asyncio
        >>> q = queueduct.OverwritingQueue.create(None, item=object)
        >>> q.put("a")
        >>> asyncio.run(q.alatest())
        ('a', 0)
        """
        call: Coroutine[Any, Any, tuple[T, int]] = self._bridge().newest(self, newer_than, timeout)
        return call

    def _wait_newer(self, wanted: int, seconds: float) -> None:
        wait_for_newer(self, wanted, seconds)

    def readings(self) -> Readings[T]:
        """Return an iterator over the newest item, each once: what is overwritten before the next step is skipped.

        >>> q = queueduct.OverwritingQueue.create(None, item=object)
        >>> q.put_many(["a", "b"])
        2
        >>> next(q.readings())
        'b'
        """
        return Readings(self)


class Readings(Generic[T]):
    """``for item in q.readings()``, or ``async for``: ends when the queue is shut down. ``position`` is the last."""

    def __init__(self, queue: LatestMethods[T]) -> None:
        self._queue = queue
        self.position: int | None = None

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        try:
            item, self.position = self._queue.latest(self.position)
        except ShutDown:
            raise StopIteration from None
        return item

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        try:
            item, self.position = await self._queue.alatest(self.position)
        except ShutDown:
            raise StopAsyncIteration from None
        return item
