"""Workers: what a user calls."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from multiprocessing.context import BaseContext
from pathlib import Path
from types import GenericAlias, TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self

from queueduct.errors import Full, QueueClosed, QueueNotShared, WorkersBroken
from queueduct.pool import options as arguments
from queueduct.pool import places
from queueduct.pool.crew import Crew
from queueduct.pool.dead_letters import DeadLetter
from queueduct.pool.frames import RESULT_LIMIT_BYTES, Entry, Failure, with_number
from queueduct.pool.places import Address, FileLock, Place
from queueduct.pool.progress import WorkersProgress
from queueduct.pool.results import Calls, FutureCall, MapCall, ResultQueue
from queueduct.pool.retry import Retries
from queueduct.pool.supervisor import DRAIN, KILL, RUN, STOP, Supervisor
from queueduct.pool.worker import Setup
from queueduct.rings import BoundedQueue, GrowingQueue
from queueduct.segments.names import Directory

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Job = TypeVar("Job", default=Any)
    Result = TypeVar("Result", default=Any)
else:
    from typing import TypeVar

    Job, Result = TypeVar("Job"), TypeVar("Result")

__all__ = ["Workers"]

MAP_SLICE = 1024
JOIN_SECONDS = 0.02
BRIEF_CHARACTERS = 200


class Workers(Generic[Job, Result]):
    """Worker processes that call ``function(item)`` for each item of a queue. A worker that dies costs one try.

    ``Workers("jobs", function)`` works on the items of a named queue: any process may put them.
    ``Workers(None, function)`` has a queue of its own, for ``submit`` and ``map``.

    A job that raises, or whose worker dies, is tried again after a pause, ``retries`` times in all. Then it becomes a
    DeadLetter in the queue ``dead_letters``, and its future raises. ``with`` waits at its end until all jobs are done;
    after an exception it ends the workers at once, and their jobs go back to the queue.

    >>> with queueduct.Workers(None, abs, processes=1) as pool:
    ...     list(pool.map([-1, -2]))
    [1, 2]
    """

    __class_getitem__: Any = classmethod(GenericAlias)  # as that of the queues

    def __init__(
        self,
        queue: BoundedQueue[Job] | GrowingQueue[Job] | str | None,
        function: Callable[[Job], Result],
        *,
        processes: int | None = None,
        retries: int = 3,
        retry_delay: float = 0.1,
        max_retry_delay: float = 60.0,
        task_timeout: float | None = None,
        dead_letters: Any = None,
        results: Any = None,
        initializer: Callable[..., object] | None = None,
        initargs: Iterable[Any] = (),
        max_tasks_per_child: int | None = None,
        max_batch: int = 256,
        context: str | BaseContext | None = None,
        directory: Directory = None,
    ) -> None:
        """Start the workers.

        ``dead_letters`` is a queue of objects or its name, by default the name of ``queue`` with ``.dead``; a pool with
        a queue of its own needs none. ``results`` is a queue of objects or its name, for pairs of the item's position
        and the function's result. A missing queue of these two is created. A job that takes longer than
        ``task_timeout`` seconds is ended with its worker. ``max_batch`` is how many short jobs a worker takes at once.
        """
        options = arguments.checked(
            {
                "function": function,
                "processes": processes,
                "retries": retries,
                "retry_delay": retry_delay,
                "max_retry_delay": max_retry_delay,
                "task_timeout": task_timeout,
                "max_tasks_per_child": max_tasks_per_child,
                "max_batch": max_batch,
                "context": context,
                "initializer": initializer,
                "initargs": initargs,
            }
        )
        self._pid = os.getpid()
        self._opened: list[Any] = []
        try:
            self._open(queue, dead_letters, results, directory)
            self._begin(options)
        except BaseException:
            self._close_opened()
            raise

    def _open(self, queue: Any, dead_letters: Any, results: Any, directory: Directory) -> None:
        """Opens the queues that the user has named."""
        self._jobs: Any = None
        self._letters: Any = None
        self._results: Any = None
        self._result_bytes = RESULT_LIMIT_BYTES
        if queue is None:
            if results is not None:
                raise ValueError("results needs a queue of jobs: with queue=None, submit and map return the results")
            self._folder: Path = places.private_directory(directory)
        else:
            self._jobs = self._keep(arguments.job_queue(queue, directory))
            self._folder = self._jobs.directory
            dead_letters = f"{self._jobs.name}.dead" if dead_letters is None else dead_letters
        if dead_letters is not None:
            self._letters = self._keep(arguments.letter_queue(dead_letters, self._folder))
        if results is not None:
            opened = self._keep(arguments.result_queue(results, self._folder))
            self._results, self._result_bytes = places.open_with_limit(
                opened.name, str(opened.directory), opened.segment_id
            )
            self._opened.append(self._results)

    def _keep(self, opened: tuple[Any, bool]) -> Any:
        """Returns the queue, and remembers to close it if this pool has opened it."""
        if opened[1]:
            self._opened.append(opened[0])
        return opened[0]

    def _close_opened(self) -> None:
        for queue in self._opened:
            queue.close()

    def _begin(self, options: arguments.Options) -> None:
        address, lock = places.make_private(self._folder) if self._jobs is None else places.make_shared(self._jobs)
        with places.removed_on_failure(address.path, lock, if_empty=not address.is_private):
            self._make(options, address, lock)
        weakref.finalize(self, self._supervisor.end, KILL).atexit = False
        self._supervisor.start(self._retries)

    def _make(self, options: arguments.Options, address: Address, lock: FileLock) -> None:
        self._place = place = Place(address)
        setup = Setup(
            address,
            options.function,
            options.initializer,
            options.initargs,
            self._pid,
            0,
            0,
            options.max_tasks_per_child,
            options.max_batch,
            wants_pairs=self._results is not None,
            wants_results=self._results is not None or self._jobs is None,
            result_bytes=self._result_bytes,
        )
        crew = Crew(place, setup, options.context, options.processes, options.task_timeout)
        self._calls = Calls() if self._jobs is None else None
        sink = ResultQueue(place, self._results) if self._calls is None else self._calls
        self._sink: Calls | ResultQueue = sink
        self._crew = crew
        self._processes = options.processes
        self._supervisor = Supervisor(place, lock, crew, sink)
        for queue in self._opened:
            self._supervisor.at_end(queue.close)
        bury = Undertaker(self._letters, self._calls, address.item_type).bury
        self._retries = Retries(place, options.retries, options.delay_of, bury)

    # -- jobs -------------------------------------------------------------------------------------------

    def submit(self, item: Job) -> Future[Result]:
        """Put a job into the pool's own queue, and return a future of its result.

        >>> with queueduct.Workers(None, abs, processes=1) as pool:
        ...     pool.submit(-1).result()
        1
        """
        calls = self._own_calls("submit")
        future: Future[Result] = Future()
        self._put(calls, FutureCall(future), [item])
        return future

    def map(self, items: Iterable[Job], timeout: float | None = None) -> Iterator[Result]:
        """Put a job for each item, and return an iterator over their results, in the order of the items.

        Raises what a job raised in its last try, when its turn comes, and TimeoutError ``timeout`` seconds after the
        call.

        >>> with queueduct.Workers(None, abs, processes=1) as pool:
        ...     for result in pool.map([-1, -2]):
        ...         print(result)
        1
        2
        """
        calls = self._own_calls("map")
        call = MapCall(None if timeout is None else time.monotonic() + checked_timeout(timeout))
        source = iter(items)
        while part := list(itertools.islice(source, MAP_SLICE)):
            self._put(calls, call, part)
        return call.results()

    def _put(self, calls: Calls, call: FutureCall | MapCall, items: list[Any]) -> None:
        first = calls.number(call, len(items))
        put = 0
        try:
            data = [with_number(number, item) for number, item in enumerate(items, first)]
            while put < len(data):
                self._check_alive()
                try:
                    put += self._place.jobs.put_many(data[put:], timeout=1)
                except Full:
                    continue
        except BaseException:
            calls.forget(first + put, len(items) - put)
            raise

    def _own_calls(self, call: str) -> Calls:
        self._check_process()
        if self._calls is None:
            raise ValueError(
                f"{call} needs a queue of the pool's own: this pool works on {self._jobs.name!r}; put items into that "
                "queue and read their results from results=, or use Workers(None, ...)"
            )
        if self._supervisor.mode != RUN:
            raise QueueClosed("this pool is closed; start another one")
        self._check_alive()
        return self._calls

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise QueueNotShared("a pool belongs to the process that started it; start another one here")

    def _check_alive(self) -> None:
        if self._supervisor.error is not None:
            raise WorkersBroken(f"the pool has ended: {self._supervisor.error}") from self._supervisor.error
        if self._supervisor.ended.is_set():
            raise QueueClosed("this pool is closed; start another one")

    # -- progress ---------------------------------------------------------------------------------------

    def progress(self) -> WorkersProgress:
        """One look at the counts of this pool.

        >>> with queueduct.Workers(None, abs, processes=1) as pool:
        ...     result = pool.submit(-1).result()
        ...     pool.progress().done
        1
        """
        self._check_process()
        waiting = redelivered = 0
        with contextlib.suppress(QueueClosed):  # it has ended, perhaps just now
            place = self._place
            stats = [queue.stats() for queue in place.sources()]
            waiting = sum(each.size for each in stats) + place.retry.qsize() + self._retries.count()
            redelivered = sum(each.redelivered for each in stats)
        is_counted = self._calls is None and self._results is None
        done = self._crew.done() if is_counted else self._sink.delivered
        running, dead = self._crew.running(), self._retries.dead_letters
        return WorkersProgress(
            put=self._calls.put if self._calls is not None else waiting + running + done + dead,
            waiting=waiting,
            running=running,
            done=done,
            failed=self._retries.failed,
            retried=self._retries.retried,
            dead_letters=dead,
            redelivered=redelivered,
            workers=len(self._crew.processes()),
            restarts=max(0, self._crew.starts - self._processes),
        )

    def processes(self) -> list[int]:
        """Return the process numbers of the workers that are alive.

        >>> with queueduct.Workers(None, abs, processes=1) as pool:
        ...     len(pool.processes())
        1
        """
        return self._crew.processes()

    # -- the end ----------------------------------------------------------------------------------------

    def join(self, timeout: float | None = None) -> bool:
        """Wait until every job is done or dead, and all results are delivered. Returns False if the time is up.

        >>> with queueduct.Workers(None, abs, processes=1) as pool:
        ...     future = pool.submit(-1)
        ...     pool.join(), future.done()
        (True, True)
        """
        self._check_process()
        deadline = None if timeout is None else time.monotonic() + checked_timeout(timeout)
        self._supervisor.check_may_wait("join")
        while True:
            is_over = self._supervisor.ended.is_set() or self._supervisor.is_idle()
            if self._supervisor.error is not None:
                self._check_alive()
            if is_over:
                return True
            left = JOIN_SECONDS if deadline is None else min(JOIN_SECONDS, deadline - time.monotonic())
            if left <= 0:
                return False
            self._supervisor.ended.wait(left)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the pool when every job is done, or with ``cancel_futures`` after the jobs that run now.

        Jobs that were not begun stay in a named queue; their futures are cancelled.

        >>> pool = queueduct.Workers(None, abs, processes=1)
        >>> future = pool.submit(-1)
        >>> pool.shutdown()
        >>> future.result()
        1
        """
        self._check_process()
        self._supervisor.end(STOP if cancel_futures else DRAIN)
        if wait:
            self._wait_for_end("shutdown")

    def close(self, timeout: float | None = None) -> None:
        """End the pool after the jobs that run now; after ``timeout`` seconds kill them: they go back to the queue.

        >>> pool = queueduct.Workers(None, abs, processes=1)
        >>> pool.close(timeout=5)
        """
        self._check_process()
        self._supervisor.end(STOP, None if timeout is None else checked_timeout(timeout))
        self._wait_for_end("close", raises=False)

    def _wait_for_end(self, call: str, *, raises: bool = True) -> None:
        self._supervisor.check_may_wait(call)
        while not self._supervisor.ended.wait(1):
            pass
        if raises and self._supervisor.error is not None:
            self._check_alive()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if os.getpid() != self._pid:
            return
        if kind is not None:
            self._supervisor.end(KILL)
            self._wait_for_end("the end of with", raises=False)
            return
        try:
            self.shutdown()
        except BaseException:  # Ctrl-C while it waits
            self._supervisor.end(KILL)
            self._wait_for_end("the end of with", raises=False)
            raise

    def __reduce__(self) -> Any:
        raise TypeError("a pool cannot be pickled: it belongs to the process that started it")

    def __repr__(self) -> str:
        name = "a queue of its own" if self._jobs is None else repr(self._jobs.name)
        state = "closed" if self._supervisor.ended.is_set() else f"{len(self._crew.processes())} processes"
        return f"<queueduct.Workers on {name}, {state}>"


class Undertaker:
    """What happens to a job after its last try. It does not refer to the pool, which may be garbage by then."""

    def __init__(self, letters: Any, calls: Calls | None, item_type: Any) -> None:
        self._letters = letters
        self._calls = calls
        self._item_type = item_type

    def bury(self, entry: Entry, failure: Failure) -> bool:
        """Returns false if there is no room for the letter just now."""
        if self._letters is not None:
            try:
                self._put_letter(entry, failure)
            except (Full, OSError):
                return False
        if self._calls is not None:
            self._calls.bury(entry, failure)
        return True

    def _put_letter(self, entry: Entry, failure: Failure) -> None:
        letter = DeadLetter(
            entry.job,
            entry.tries,
            failure.error_type,
            failure.message,
            failure.traceback,
            entry.due,
            entry.payload,
            self._item_type,
        )
        try:
            self._letters.put(letter, False)
        except ValueError:  # too long for this queue: the item counts more than the text about it
            brief = replace(
                letter, message=letter.message[:BRIEF_CHARACTERS], traceback=letter.traceback[-BRIEF_CHARACTERS:]
            )
            self._letters.put(brief, False)


def checked_timeout(timeout: float) -> float:
    arguments.seconds("timeout", timeout, at_least=0.0)
    return timeout
