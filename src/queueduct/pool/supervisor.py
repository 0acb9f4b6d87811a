"""The supervisor: a thread of the pool's process that delivers results, hands out retries and watches the workers.

It never unpickles what a user's class has pickled. Of all pools on one queue one leads, and only that one delivers and
hands out: so a job that ran in two pools is delivered once. Another takes over when the leader's process ends.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing.util  # its function at exit joins all children: ours must be registered later
import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import ClassVar

from queueduct.errors import Empty, Full, QueueClosed, WorkersBroken
from queueduct.items.types import decode_object, encode_object
from queueduct.lease import Lease
from queueduct.pool import places
from queueduct.pool.crew import Crew
from queueduct.pool.frames import START_FAILED, OutcomeFields
from queueduct.pool.lines import JOBS
from queueduct.pool.places import FileLock, Place
from queueduct.pool.results import Calls, ResultQueue
from queueduct.pool.retry import Retries

__all__ = ["DRAIN", "KILL", "RUN", "STOP", "Supervisor"]

RUN, DRAIN, STOP, KILL = range(4)  # go on; stop when all is done; stop after the current jobs; stop now
WAIT_SECONDS = 0.05
WATCH_SECONDS = 0.02
SWEEP_SECONDS = 1.0
MESSAGES = 64
EXIT_SECONDS = 10.0


class Supervisor:
    """Runs in its own thread from ``start()`` on. Other threads set its mode, and read its counts."""

    _all: ClassVar[weakref.WeakSet[Supervisor]] = weakref.WeakSet()

    def __init__(self, place: Place, lock: FileLock, crew: Crew, sink: Calls | ResultQueue) -> None:
        self._pid = os.getpid()  # a forked child has a copy of this object, and runs in a copy of its thread
        self._place = place
        self._lock = lock
        self._leader = FileLock(place.address.path / "leader")
        self._leads = False
        self._sink = sink
        self._held: list[Lease] = []  # results that wait for room in the queue of results
        self._mode = RUN
        self._kill_at: float | None = None
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, name="queueduct-workers", daemon=True)
        self._started = threading.Event()
        self._end_actions: list[Callable[[], None]] = []
        self.crew = crew
        self.retries: Retries
        self.error: BaseException | None = None
        self.ended = threading.Event()

    def start(self, retries: Retries) -> None:
        """Starts the thread and waits until it has started the workers. Raises what went wrong with that."""
        self.retries = retries
        Supervisor._all.add(self)
        if multiprocessing.parent_process() is not None:  # such a process runs no atexit, and joins its children
            multiprocessing.util.Finalize(None, Supervisor.end_all, exitpriority=100)
        self._thread.start()
        try:
            self._started.wait()
        except BaseException:
            self.end(KILL)
            raise
        if self.error is not None:
            self.ended.wait()
            raise self.error

    def at_end(self, action: Callable[[], None]) -> None:
        self._end_actions.append(action)

    def end(self, mode: int, timeout: float | None = None) -> None:
        """Asks for an end; a stronger mode replaces a weaker one. After ``timeout`` seconds the workers are killed."""
        self._mode = max(self._mode, mode)
        if mode >= STOP:
            self.crew.stop()  # now: no worker begins another job
        if timeout is not None:
            self._kill_at = time.monotonic() + timeout
        self._woken.set()

    def check_may_wait(self, call: str) -> None:
        """Raises in the supervisor's own thread, which nobody would carry on."""
        if threading.current_thread() is self._thread:
            raise RuntimeError(
                f"{call} waits for the thread that calls back, which this is: use shutdown(wait=False) in a callback "
                "of a future, or wait in another thread"
            )

    @property
    def mode(self) -> int:
        return self._mode

    def is_idle(self) -> bool:
        """Returns true if no job waits, runs or is to be tried again, and all results are delivered."""
        if isinstance(self._sink, Calls):
            return self._sink.count() == 0
        try:
            return self._are_queues_empty()
        except QueueClosed:  # the end has begun: wait for that
            return False

    def _are_queues_empty(self) -> bool:
        place = self._place
        before = (place.retry.stats().push_position, place.ready.stats().push_position)
        for queue in (place.jobs, place.retry, place.ready, place.outcomes):
            stats = queue.stats()
            if stats.size or stats.leased:
                return False
        # A job moves from a queue that was found empty later to one that was found empty earlier only by a put.
        return before == (place.retry.stats().push_position, place.ready.stats().push_position)

    # -- the thread -------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self.crew.fill()
            self._started.set()
            self._loop()
        except BaseException as error:
            self.error = error
        finally:
            self._finish()

    def _loop(self) -> None:
        next_watch = next_sweep = 0.0
        while True:
            self._receive(WAIT_SECONDS)
            now = time.monotonic()
            if now >= next_watch:
                self.crew.watch()
                next_watch = now + WATCH_SECONDS
                if self._mode <= DRAIN:
                    self.crew.fill()
                if now >= next_sweep:
                    self.crew.end_stopped(at_once=self._mode >= STOP)
                    if self._leads:
                        self.crew.sweep()
                    next_sweep = now + SWEEP_SECONDS
            if self._leads:
                with contextlib.suppress(Full, OSError):  # no room just now: what waits is still in its queue
                    self.retries.poll()
            if self._is_over():
                return

    def _is_over(self) -> bool:
        if self._mode == RUN:
            return False
        if self._mode == DRAIN and self.is_idle():
            self._mode = STOP
        if self._kill_at is not None and time.monotonic() >= self._kill_at:
            self._mode = KILL
        if self._mode == STOP:
            self.crew.stop()
        elif self._mode == KILL:
            self.crew.kill()
        return self._mode >= STOP and self.crew.is_gone()

    def _receive(self, seconds: float) -> None:
        """Takes results and delivers them; waits at most so long for the first."""
        if self._mode != RUN:
            seconds = WATCH_SECONDS / 4
        if not self._leads and not self._lead():
            self._woken.wait(seconds)
            self._woken.clear()
            return
        if not self._sink.is_all_delivered():  # its queue is full: leave further results where they are
            self._woken.wait(WATCH_SECONDS)
            self._woken.clear()
            self._sink.flush()
        if self._sink.is_all_delivered():
            self._release_held()
            with contextlib.suppress(Empty):
                self._take(min(seconds, self.retries.seconds_left()))

    def _lead(self) -> bool:
        self._leads = self._leader.try_exclusive()
        return self._leads

    def _take(self, seconds: float) -> None:
        if isinstance(self._sink, Calls):  # nobody could use them after this process
            messages = self._place.outcomes.get_many(MESSAGES, seconds > 0, seconds)
        else:
            lease = self._place.outcomes.lease(MESSAGES, seconds > 0, seconds)
            self._held.append(lease)
            messages = lease.items
        for message in messages:
            self._deliver(decode_object(message))
        if self._sink.is_all_delivered():
            self._release_held()

    def _deliver(self, outcomes: list[OutcomeFields]) -> None:
        if outcomes[0][0] == START_FAILED:
            self.crew.start_error = outcomes[0][4]
            return
        self._sink.receive(outcomes)
        if not self.retries.is_any_failing():
            return
        for job, source, *_ in outcomes:
            if self.retries.is_failing(job):
                if source == JOBS and isinstance(self._sink, ResultQueue):
                    self._sink.kept.add(job)  # an earlier run failed: its retry is on the way
                self.retries.note_done(job)

    def _release_held(self) -> None:
        while self._held:
            self._held.pop().release()

    def _finish(self) -> None:
        """Ends the workers, delivers what they have left, and gives up everything."""
        with contextlib.suppress(BaseException):
            self.crew.kill()
            while not self.crew.is_gone():
                self.crew.watch()
                time.sleep(WATCH_SECONDS / 10)
        with contextlib.suppress(BaseException):
            while self._leads and self._sink.is_all_delivered():
                self._take(0)
        broken = None
        if self.error is not None:
            broken = WorkersBroken(f"the pool has ended: {self.error}")
            broken.__cause__ = self.error
        with contextlib.suppress(BaseException):
            if self._leads:
                self.retries.close()
        if isinstance(self._sink, Calls):
            self._sink.end(broken)
        with contextlib.suppress(BaseException):
            self._leave_undelivered()
        self._held.clear()
        self._leader.close()
        self._place.close()
        for action in self._end_actions:
            with contextlib.suppress(BaseException):
                action()
        with contextlib.suppress(BaseException):
            places.remove(self._place.address.path, self._lock, if_empty=not self._place.address.is_private)
        self._lock.close()
        self.ended.set()
        self._started.set()

    def _leave_undelivered(self) -> None:
        """Leaves results that found no room to the next pool, and says which of the delivered ones may come again.

        These are of jobs whose worker was killed, perhaps by this end, when it had told and not yet released them.
        """
        if not self._leads:
            return
        rest = [encode_object([outcome]) for outcome in self._sink.undelivered() + self._sink.delivered_again()]
        if not rest or self._place.outcomes.put_many(rest, False) == len(rest):
            self._release_held()

    @classmethod
    def end_all(cls) -> None:
        """Called when the interpreter ends: jobs that are not done go back to their queues."""
        mine = [one for one in cls._all if one._pid == os.getpid()]
        running = [one for one in mine if not one.ended.is_set() and one._thread.is_alive()]
        for supervisor in running:
            supervisor.end(KILL)
        for supervisor in running:
            supervisor.ended.wait(EXIT_SECONDS)


atexit.register(Supervisor.end_all)
