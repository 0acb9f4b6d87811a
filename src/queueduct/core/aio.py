"""Queues for asyncio: a helper thread waits, the coroutine puts or gets.

An event loop cannot watch a queue's futex. So a helper thread waits until there may be an item, or room, and tells the
loop; the coroutine then tries again. The thread takes nothing, so a cancelled ``aget`` loses nothing. It runs only
while a coroutine waits. A forked child has neither the thread nor the waiting coroutines: its first ``aget`` starts a
thread of its own.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
import weakref
from collections import deque
from typing import Any, NamedTuple, Protocol

from queueduct.errors import Empty, Full, QueueductError, ShutDown

__all__ = ["Bridge"]

POLL_SECONDS = 0.1  # how often a helper checks whether a coroutine still waits


class Waitable(Protocol):
    """The calls of a queue that a bridge uses."""

    def put_nowait(self, item: Any, **options: Any) -> None: ...
    def get_nowait(self) -> Any: ...
    def _slots_for(self, item: Any) -> int: ...
    def _wait_ready(self, for_items: bool, slots: int, seconds: float) -> None: ...


class Bridge:
    """The asyncio side of one queue handle."""

    def __init__(self, queue: Waitable) -> None:
        self._queue = queue
        self._items = Side(queue, for_items=True)
        self._room = Side(queue, for_items=False)
        _bridges[id(self)] = self

    def start_anew(self) -> None:
        """In a forked child."""
        self._items.start_anew()
        self._room.start_anew()

    async def get(self, timeout: float | None = None) -> Any:
        _check(timeout)
        until = None
        while True:
            try:
                # Not inside the timeout: its end runs code, which could lose the item. After a call Python may run a
                # signal handler, and a handler that raises would lose the item; after the step of a loop it may not.
                for item in itertools.starmap(self._queue.get_nowait, ((),)):
                    return item
            except Empty:
                pass
            if until is None and timeout is not None:
                until = asyncio.get_running_loop().time() + timeout
            try:
                async with asyncio.timeout_at(until):
                    await self._items.changed()
            except TimeoutError:
                raise Empty from None

    async def put(self, item: Any, timeout: float | None = None, **options: Any) -> None:
        """``options`` are those of the queue's own put."""
        _check(timeout)
        told: tuple[object, ...] = ()
        try:
            async with asyncio.timeout(timeout):
                while True:
                    try:
                        return self._queue.put_nowait(item, **options)
                    except Full as error:
                        told = error.args
                        await self._room.changed(self._queue._slots_for(item))
        except TimeoutError:
            raise Full(*told) from None


class Waiter(NamedTuple):
    """A waiting coroutine."""

    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[None]
    slots: int


class Side:
    """The coroutines that wait for items, or for room: a line of futures and the thread that serves it."""

    def __init__(self, queue: Waitable, *, for_items: bool) -> None:
        self._queue = queue
        self._for_items = for_items
        self.start_anew()

    def start_anew(self) -> None:
        """Starts with an empty line. After a fork the thread and the loops are the parent's."""
        self._mutex = threading.Lock()
        self._line: deque[Waiter] = deque()
        self._is_served = False

    async def changed(self, slots: int = 1) -> None:
        """Waits until another attempt may succeed; for room, until there are ``slots`` free slots."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        with self._mutex:
            if not self._is_served:  # the thread reads the line after we release the mutex
                threading.Thread(target=self._serve, name="queueduct-aio", daemon=True).start()
                self._is_served = True
            self._line.append(Waiter(loop, future, slots))
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self._wake_next()  # this coroutine no longer uses the wake-up: pass it on
            raise

    def _serve(self) -> None:
        try:
            self._serve_all()
        except BaseException:  # no memory, say: the waiting coroutines try again, and start another helper
            with self._mutex:
                self._is_served = False
            self._wake_all()
            raise

    def _serve_all(self) -> None:
        while slots := self._wanted_by_the_first():
            try:
                self._queue._wait_ready(self._for_items, slots, POLL_SECONDS)
            except (ShutDown, QueueductError):
                self._wake_all()  # each coroutine gets the error itself
                continue
            self._wake_next()

    def _wanted_by_the_first(self) -> int:
        """Returns how many slots the first coroutine waits for, or 0 if none waits any more."""
        with self._mutex:
            while self._line and self._line[0].future.done():
                self._line.popleft()
            self._is_served = bool(self._line)
            return self._line[0].slots if self._line else 0

    def _wake_next(self) -> None:
        with self._mutex:
            while self._line:
                first = self._line.popleft()
                if not first.future.done() and _tell(first):
                    return

    def _wake_all(self) -> None:
        with self._mutex:
            while self._line:
                _tell(self._line.popleft())


_bridges: weakref.WeakValueDictionary[int, Bridge] = weakref.WeakValueDictionary()


def _start_anew_in_child() -> None:
    for bridge in list(_bridges.values()):
        bridge.start_anew()


os.register_at_fork(after_in_child=_start_anew_in_child)


def _check(timeout: float | None) -> None:
    if timeout is not None and not timeout >= 0:
        raise ValueError(f"timeout must be a non-negative number or None: timeout={timeout!r}")


def _tell(waiter: Waiter) -> bool:
    """Returns false if the loop is closed, and with it the future's coroutine."""
    try:
        waiter.loop.call_soon_threadsafe(_resolve, waiter.future)
    except RuntimeError:
        return False
    return True


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
