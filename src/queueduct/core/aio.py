"""Queues for asyncio: a helper thread waits, the coroutine puts or gets.

An event loop cannot watch a queue's futex. So a helper thread waits until there may be an item, or room, and tells the
loop; the coroutine then tries again. The thread takes nothing, so a cancelled ``aget`` loses nothing. It runs only
while a coroutine waits. A forked child has neither the thread nor the waiting coroutines: its first ``aget`` starts a
thread of its own.

Every call is an attempt that never waits, repeated: no ``await`` lies between an attempt that has taken something and
the return to its task.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from queueduct.errors import Empty, Full, QueueductError, ShutDown, Told
from queueduct.segments.timeouts import checked_timeout

__all__ = ["Borrowing", "Bridge"]

POLL_SECONDS = 0.1  # how often a helper checks whether a coroutine still waits
BATCH_LIMIT = 1024  # items of one attempt, after the first one has found too little room for all

Held_co = TypeVar("Held_co", bound=AbstractContextManager[Any], covariant=True)
Entered = TypeVar("Entered")


class Waitable(Protocol):
    """The calls of a queue that a bridge uses."""

    def put(self, item: Any, block: bool, **options: Any) -> Any: ...
    def put_nowait(self, item: Any) -> Any: ...
    def put_many(self, items: Any, block: bool, **options: Any) -> int: ...
    def get_nowait(self) -> Any: ...
    def _slots_for(self, item: Any) -> int: ...
    def _wait_ready(self, for_items: bool, slots: int, seconds: float) -> None: ...


class Awaited(Protocol):
    """What a Side waits at."""

    def _wait_ready(self, for_items: bool, slots: int, seconds: float) -> None: ...


class Bridge:
    """The asyncio side of one queue handle."""

    def __init__(self, queue: Waitable) -> None:
        self._queue = queue
        self._items = Side(queue, for_items=True)
        self._room = Side(queue, for_items=False)
        self._newest = Side(NewestOf(queue), for_items=True)
        _bridges[id(self)] = self

    def start_anew(self) -> None:
        """In a forked child."""
        self._items.start_anew()
        self._room.start_anew()
        self._newest.start_anew()

    def get(self, timeout: float | None = None) -> Coroutine[Any, Any, Any]:
        return self.take(self._queue.get_nowait, (), timeout)

    async def next(self) -> Any:
        """The step of ``async for``."""
        try:
            return await self.get()
        except ShutDown:
            raise StopAsyncIteration from None

    def take(
        self, attempt: Callable[..., Any], arguments: tuple[Any, ...], timeout: float | None
    ) -> Coroutine[Any, Any, Any]:
        """Waits for items: returns what attempt(*arguments) returns as soon as it does not raise Empty."""
        return _repeated(self._items, Empty, attempt, arguments, timeout)

    def newest(self, queue: Any, newer_than: int | None, timeout: float | None) -> Coroutine[Any, Any, Any]:
        """Waits for a message of an overwriting queue that is newer than a position."""
        after = newer_than if isinstance(newer_than, int) and newer_than >= 0 else -1  # latest() refuses what is wrong
        return _repeated(self._newest, Empty, queue.latest, (newer_than, False), timeout, after + 2)

    def loan(
        self, attempt: Callable[..., Any], arguments: tuple[Any, ...], timeout: float | None
    ) -> Coroutine[Any, Any, Any]:
        """The same for room, and Full."""
        return _repeated(self._room, Full, attempt, arguments, timeout)

    async def put(self, item: Any, timeout: float | None = None, **options: Any) -> Any:
        """``options`` are those of the queue's own put."""
        timeout = _checked(timeout)
        until = None
        while True:
            try:
                if options:
                    return self._queue.put(item, False, **options)
                return self._queue.put_nowait(item)
            except Full as error:
                refused = error.with_traceback(None)
            until = until or _deadline(timeout)
            if not await _has_changed(self._room, until, self._queue._slots_for(item)):
                raise _after_wait(refused, timeout, until)

    async def put_many(self, batch: Any, timeout: float | None = None, **options: Any) -> int:
        """Returns how many items are in. Raises Full, or ShutDown, only if none is. ``batch`` can be sliced."""
        timeout = _checked(timeout)
        total = 0
        until = None
        limit = len(batch)  # the first attempt checks every item before it puts any
        while True:
            refused = Full()
            try:
                total += self._queue.put_many(batch[total : total + limit], False, **options)
            except Full as error:
                refused = error.with_traceback(None)
            except ShutDown:
                if total == 0:
                    raise
                return total
            if total >= len(batch):
                return total
            limit = BATCH_LIMIT
            until = until or _deadline(timeout)
            try:
                has_changed = await _has_changed(self._room, until, self._queue._slots_for(batch[total]))
            except asyncio.CancelledError as error:
                error.add_note(f"aput_many was cancelled: {total} of {len(batch)} items are in the queue")
                raise
            if not has_changed and total == 0:
                raise _after_wait(refused, timeout, until)
            if not has_changed:
                return total


async def _repeated(
    side: Side,
    nothing: type[Exception],
    attempt: Callable[..., Any],
    arguments: tuple[Any, ...],
    timeout: float | None,
    slots: int = 1,
) -> Any:
    """Returns what attempt(*arguments) returns; waits while it raises ``nothing``, Empty or Full."""
    timeout = _checked(timeout)
    until = None
    while True:
        try:
            # Not inside the timeout: its end runs code, which could lose the item. After a call Python may run a
            # signal handler, and a handler that raises would lose the item; after the step of a loop it may not.
            for found in itertools.starmap(attempt, (arguments,)):
                return found
        except nothing as error:
            refused = error.with_traceback(None)
        until = until or _deadline(timeout)
        if not await _has_changed(side, until, slots):
            raise _after_wait(refused, timeout, until)


def _deadline(timeout: float | None) -> Deadline:
    """Computed after the first attempt: a call that need not wait does not ask for the time."""
    return Deadline(None if timeout is None else asyncio.get_running_loop().time() + timeout)


def _after_wait(refused: Exception, timeout: float | None, until: Deadline) -> Exception:
    """Returns the error of the last attempt as that of the whole call."""
    if not isinstance(refused, Told) or timeout is None or until.time is None:
        return refused
    return refused.after(max(0.0, timeout + asyncio.get_running_loop().time() - until.time))


async def _has_changed(side: Side, until: Deadline, slots: int = 1) -> bool:
    """Waits until another attempt may succeed. Returns false if the time is up."""
    try:
        async with asyncio.timeout_at(until.time):
            await side.changed(slots)
    except TimeoutError:
        return False
    return True


class NewestOf:
    """For a Side whose coroutines wait for newer messages: ``slots`` is the position that they want, plus 1."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue

    def _wait_ready(self, for_items: bool, slots: int, seconds: float) -> None:
        self._queue._wait_newer(slots - 1, seconds)


class Deadline(NamedTuple):
    """When a call gives up, by the loop's clock; None if never."""

    time: float | None


class Borrowing(Generic[Held_co]):
    """A lease, slot or view to come: ``await`` it, or enter it by ``async with``."""

    def __init__(self, call: Callable[..., Coroutine[Any, Any, Held_co]], *arguments: Any) -> None:
        self._call = call  # made when it is awaited: one that is dropped before has nothing to warn of
        self._arguments = arguments
        self._held: Held_co | None = None

    def __await__(self) -> Generator[Any, Any, Held_co]:
        return self._call(*self._arguments).__await__()

    async def __aenter__(self: Borrowing[AbstractContextManager[Entered]]) -> Entered:
        self._held = await self._call(*self._arguments)
        return self._held.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        held, self._held = self._held, None
        return None if held is None else held.__exit__(kind, error, trace)


class Waiter(NamedTuple):
    """A waiting coroutine."""

    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[None]
    slots: int


class Side:
    """The coroutines that wait for items, or for room: a line of futures and the thread that serves it."""

    def __init__(self, queue: Awaited, *, for_items: bool) -> None:
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


def _checked(timeout: float | None) -> float | None:
    """Returns the seconds; None for ever."""
    seconds = checked_timeout(timeout)
    return None if timeout is None or seconds == math.inf else seconds


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
