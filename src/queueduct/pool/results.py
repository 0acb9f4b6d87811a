"""Where results go: to futures, to a queue, or nowhere. A result arrives once, however often its job ran.

A job runs again if its worker dies after its result is on the way, and before its job is released. Then a second
result comes with the same number. A future is forgotten with its first result, and so the second finds none. For a
queue of results the numbers of delivered jobs are remembered as long as the job can come again, which the queue itself
knows: a released position is never delivered again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Any

from queueduct.errors import Full, JobFailed, QueueClosed, WorkersBroken
from queueduct.items.types import decode_object
from queueduct.pool.frames import Entry, Failure, OutcomeFields
from queueduct.pool.places import Place

__all__ = ["Calls", "FutureCall", "MapCall", "ResultQueue", "error_of"]

REMEMBERED = 4096
KEPT = (-1, -1)  # in place of where a job was leased
LOG = logging.getLogger("concurrent.futures")  # where Future itself tells of a callback that raises an Exception


def error_of(entry: Entry, failure: Failure) -> Exception:
    """Returns what a future raises after the last try: the job's own exception, if it can travel."""
    text = f"the job failed {entry.tries} times, at last with {failure.error_type}: {failure.message}"
    failed = JobFailed(f"{text}\n{failure.traceback}".rstrip())
    if failure.exception is None:
        return failed
    try:
        error = decode_object(failure.exception)
    except Exception:
        return failed
    if not isinstance(error, Exception):  # SystemExit ended the job, and must not end who asks for its result
        return failed
    error.__cause__ = failed
    return error


class FutureCall:
    """One job, and its future. Its callbacks run here, and nothing that one raises may reach the supervisor."""

    def __init__(self, future: Future[Any]) -> None:
        self.future = future

    def resolve(self, job: int, is_pickled: bool, value: Any) -> None:
        try:
            result = decode_object(value) if is_pickled else value
        except BaseException as error:  # it could be unpickled in its worker; a class may behave otherwise here
            return self.fail(job, error)
        try:
            if self.future.set_running_or_notify_cancel():
                self.future.set_result(result)
        except BaseException as error:
            self._report(error)

    def fail(self, job: int, error: BaseException) -> None:
        try:
            if self.future.set_running_or_notify_cancel():
                self.future.set_exception(error)
        except BaseException as raised:
            self._report(raised)

    def cancel(self, job: int) -> None:
        try:
            self.future.cancel()
            self.future.set_running_or_notify_cancel()
        except BaseException as error:
            self._report(error)

    def _report(self, error: BaseException) -> None:
        LOG.error("the callback of %r raised %r; the pool goes on", self.future, error, exc_info=error)

    def notify(self) -> None:
        """Its future has told everybody."""


class MapCall:
    """The jobs of one map, by their place in it. What a job gave is unpickled by who asks for it."""

    def __init__(self, deadline: float | None) -> None:
        self._deadline = deadline
        self._changed = threading.Condition()
        self._places: dict[int, int] = {}
        self._found: list[tuple[bool, Any] | BaseException | None] = []

    def add(self, first: int, count: int) -> None:
        """Takes the next ``count`` jobs, which have numbers from ``first`` on."""
        start = len(self._found)
        self._found.extend([None] * count)
        self._places.update(zip(range(first, first + count), range(start, start + count), strict=True))

    def resolve(self, job: int, is_pickled: bool, value: Any) -> None:
        self._found[self._places.pop(job)] = (is_pickled, value)

    def fail(self, job: int, error: BaseException) -> None:
        self._found[self._places.pop(job)] = error

    def cancel(self, job: int) -> None:
        self.fail(job, JobFailed("the pool was closed before this job was done"))
        self.notify()

    def notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def results(self) -> Iterator[Any]:
        for i in range(len(self._found)):
            if self._found[i] is None:
                self._wait_for(i)
            found, self._found[i] = self._found[i], None
            if isinstance(found, BaseException):
                raise found
            assert found is not None
            yield decode_object(found[1]) if found[0] else found[1]

    def _wait_for(self, i: int) -> None:
        with self._changed:
            while self._found[i] is None:
                left = None if self._deadline is None else self._deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError(f"the result of item {i} did not come in time; the job goes on")
                self._changed.wait(left)


class Calls:
    """The jobs of a pool's own queue whose results somebody waits for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[int, FutureCall | MapCall] = {}
        self._next = 0
        self._is_over = False
        self.delivered = 0

    def number(self, call: FutureCall | MapCall, count: int) -> int:
        """Returns the first of ``count`` new numbers. From now on results for them are expected."""
        with self._lock:
            if self._is_over:  # nobody would resolve them
                raise QueueClosed("this pool is closed; start another one")
            first = self._next
            self._next += count
            if isinstance(call, MapCall):
                call.add(first, count)
            self._waiting.update(dict.fromkeys(range(first, first + count), call))
            return first

    def forget(self, first: int, count: int) -> None:
        """Their jobs were not put."""
        with self._lock:
            for number in range(first, first + count):
                self._waiting.pop(number, None)

    def receive(self, outcomes: Iterable[OutcomeFields]) -> None:
        touched = set()
        take = self._waiting.pop
        for job, _, _, is_pickled, value in outcomes:
            call = take(job, None)
            if call is None:  # its result came before, from an earlier run
                continue
            self.delivered += 1
            call.resolve(job, bool(is_pickled), value)
            touched.add(call)
        for call in touched:
            call.notify()

    def bury(self, entry: Entry, failure: Failure) -> None:
        call = self._waiting.pop(entry.job, None)
        if call is not None:
            call.fail(entry.job, error_of(entry, failure))
            call.notify()

    def end(self, error: WorkersBroken | None) -> None:
        """Nobody works any more: fails what is left, or cancels it."""
        with self._lock:
            self._is_over = True
        while self._waiting:
            job, call = self._waiting.popitem()
            if error is None:
                call.cancel(job)
            else:
                call.fail(job, error)
                call.notify()

    def count(self) -> int:
        return len(self._waiting)

    @property
    def put(self) -> int:
        """How many jobs were ever put."""
        return self._next

    def is_all_delivered(self) -> bool:
        return True

    def undelivered(self) -> list[OutcomeFields]:
        return []

    def delivered_again(self) -> list[OutcomeFields]:
        return []

    def flush(self) -> None:
        """Nothing waits here for room."""


class ResultQueue:
    """A user's queue of pairs ``(position, result)``, or none."""

    def __init__(self, place: Place, queue: Any) -> None:
        self._place = place
        self._queue = queue
        self._pending: deque[OutcomeFields] = deque()
        self._delivered_at: dict[int, tuple[int, int]] = {}  # job: the source and position that it was leased at
        self._limit = REMEMBERED
        self.kept: set[int] = set()  # jobs with a second copy on its way: they succeeded after they had failed
        self.delivered = 0

    def receive(self, outcomes: Iterable[OutcomeFields]) -> None:
        for outcome in outcomes:
            job, source, position, is_pickled, _ = outcome
            if is_pickled is None:  # what an earlier pool has delivered
                self._note_delivered(job, source, position)
                continue
            if job in self._delivered_at or job in self.kept:
                continue
            self._delivered_at[job] = (source, position)
            self.delivered += 1
            if self._queue is not None:
                self._pending.append(outcome)
        if len(self._delivered_at) > self._limit:
            self._forget_released()
        self.flush()

    def _forget_released(self) -> None:
        kept: dict[int, tuple[int, int]] = {}
        for source, queue in enumerate(self._place.sources()):
            mine = {at[1]: job for job, at in self._delivered_at.items() if at[0] == source}
            kept |= {mine[position]: (source, position) for position in queue.unreleased(list(mine))}
        self._delivered_at = kept
        self._limit = REMEMBERED + 2 * len(kept)

    def flush(self) -> None:
        """Puts what waits for room in the queue of results, as much as fits."""
        while self._pending:
            try:
                count = self._queue.put_many([outcome[4] for outcome in self._pending], False)
            except (Full, OSError):
                return
            for _ in range(count):
                self._pending.popleft()

    def is_all_delivered(self) -> bool:
        return not self._pending

    def undelivered(self) -> list[OutcomeFields]:
        """Returns the results for which there is no room yet."""
        return list(self._pending)

    def delivered_again(self) -> list[OutcomeFields]:
        """Returns, without a result, the delivered jobs that can come again, for the pool that will have them."""
        if self._queue is None:
            return []
        self._forget_released()
        left = {outcome[0] for outcome in self._pending}
        at = dict.fromkeys(self.kept, KEPT) | self._delivered_at
        return [(job, *where, None, None) for job, where in at.items() if job not in left]

    def _note_delivered(self, job: int, source: int, position: int) -> None:
        if (source, position) == KEPT:
            self.kept.add(job)
        else:
            self._delivered_at[job] = (source, position)
