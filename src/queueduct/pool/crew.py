"""The worker processes of a pool: start, watch, replace, end."""

from __future__ import annotations

import contextlib
import os
import signal
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from multiprocessing import resource_tracker
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess

import numpy as np

from queueduct.errors import WorkersBroken
from queueduct.pool.lines import ACTIVE, CURRENT, DONE, ENDED, OWNER, PID, STOP, place_of
from queueduct.pool.places import Place
from queueduct.pool.worker import Setup, work

__all__ = ["Crew"]

START_FAILURES_LIMIT = 8
LONGEST_PAUSE = 2.0


@dataclass
class Member:
    """A worker process and its line."""

    process: BaseProcess
    line: int
    owner: int
    is_timed_out: bool = False
    stopped_since: float | None = None


class Crew:
    """The workers of a pool. The supervisor's thread starts them, and makes all calls but ``stop()`` and the counts."""

    def __init__(
        self, place: Place, setup: Setup, context: BaseContext, processes: int, task_timeout: float | None
    ) -> None:
        self._place = place
        self._setup = setup
        self._context = context
        self._wanted = processes
        self._task_timeout = task_timeout
        self._members: list[Member] = []
        self._failures = 0  # starts in a row that came to nothing
        self._not_before = 0.0
        self._done_by_ended = 0
        self._unneeded: set[tuple[int, int]] = set()  # lines and owners that the last sweep found
        self.starts = 0
        self.start_error = ""

    def fill(self) -> None:
        """Starts the workers that are missing."""
        while len(self._members) < self._wanted and time.monotonic() >= self._not_before:
            allocated = self._place.lines.allocate()
            if allocated is None:
                return  # it waits until the sweep finds lines that nobody needs
            line, owner = allocated
            process: BaseProcess = self._context.Process(  # type: ignore[attr-defined]  # each kind of context has it
                target=work,
                args=(replace(self._setup, line=line, owner=owner),),
                name=f"queueduct-worker-{self.starts}",
            )
            try:
                # Who asks for fork beside threads has read what Python says of it.
                with self._without_interrupts(), warnings.catch_warnings():
                    warnings.simplefilter("ignore", DeprecationWarning)
                    process.start()
            except BaseException as error:
                self._place.lines.free(line, owner)
                if not self.starts or not isinstance(error, (OSError, EOFError)):
                    raise
                self.start_error = f"{type(error).__name__}: {error}"  # no process or no memory just now, perhaps
                self._note_failure("a process could not be started")
                return
            self._members.append(Member(process, line, owner))
            self.starts += 1

    @contextlib.contextmanager
    def _without_interrupts(self) -> Iterator[None]:
        """A worker inherits this until it ignores them: or Ctrl-C would print a traceback of each one that starts.

        A fork server would pass it on to processes that are not ours.
        """
        method = self._context.get_start_method()
        if method == "forkserver":
            yield
            return
        if method == "spawn":
            resource_tracker.ensure_running()  # its start lets interrupts through again
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def watch(self) -> None:
        """Notes who has ended, and kills whose job takes too long."""
        for member in list(self._members):
            if member.process.exitcode is None:
                self._check_time(member)
            else:
                self._note_end(member)

    def _check_time(self, member: Member) -> None:
        if self._task_timeout is None:
            return
        seconds, word = self._place.lines.seconds_in_job(member.line)
        if seconds > self._task_timeout and self._place.lines.seconds_in_job(member.line)[1] == word:
            member.is_timed_out = True
            member.process.kill()

    def end_stopped(self, *, at_once: bool) -> None:
        """Kills who was stopped by a signal for ``task_timeout``, job or not: it may hold jobs that it never ends.

        With ``at_once``, who is still stopped when this is called again: it cannot end by itself.
        """
        patience = 0.5 if at_once else self._task_timeout
        if patience is None:
            return
        now = time.monotonic()
        for member in self._members:
            if not is_stopped(member.process.pid):
                member.stopped_since = None
            elif member.stopped_since is None:
                member.stopped_since = now
            elif now - member.stopped_since > patience:
                member.is_timed_out = not at_once
                member.process.kill()

    def _note_end(self, member: Member) -> None:
        lines = self._place.lines
        exit_code = member.process.exitcode or 0
        self._members.remove(member)
        member.process.join()
        member.process.close()
        self._done_by_ended += int(lines.table[member.line, DONE])
        lines.set_ended(member.line, member.owner, exit_code, timed_out=member.is_timed_out)
        words = lines.table[member.line]
        has_job, has_worked = bool(words[CURRENT]), bool(words[ACTIVE]) and (exit_code <= 0 or bool(words[DONE]))
        if not has_job:
            lines.free(member.line, member.owner)
        if has_job or has_worked:
            self._failures = 0
        else:
            self._note_failure(f"the last with exit code {exit_code}")

    def _note_failure(self, how: str) -> None:
        """Waits the longer for the next start, and gives up if all workers fail."""
        self._failures += 1
        self._not_before = time.monotonic() + min(LONGEST_PAUSE, 0.02 * 2**self._failures)
        if self._failures >= START_FAILURES_LIMIT and not self._is_any_active():
            raise WorkersBroken(
                f"{self._failures} workers in a row ended before their first job, {how}: "
                f"{self.start_error or 'see what they wrote to stderr'}; correct this, and start another pool"
            )

    def _is_any_active(self) -> bool:
        return any(self._place.lines.table[member.line, ACTIVE] for member in self._members)

    def sweep(self) -> None:
        """Frees the lines of dead workers whose job was released: it cannot be redelivered, and nobody asks.

        Whoever released the job of a dead worker has put it into the queue ``retry`` first, and the supervisor asks
        the line how the worker ended. So a line is freed one sweep later than it could be: the entry was taken then.
        """
        lines = self._place.lines
        mine = {member.line for member in self._members}
        found = set()
        for line in map(int, np.flatnonzero(lines.table[:, OWNER])):
            owner, word = int(lines.table[line, OWNER]), int(lines.table[line, CURRENT])
            if line in mine or not (lines.table[line, ENDED] or is_dead(int(lines.table[line, PID]))):
                continue
            if word:
                source, position = place_of(word)
                if self._place.sources()[source].unreleased([position]):
                    continue
            if (line, owner) in self._unneeded:
                lines.free(line, owner)
            else:
                found.add((line, owner))
        self._unneeded = found

    def stop(self) -> None:
        """Tells all workers to end after their current job. Any thread may call it."""
        for member in list(self._members):
            self._place.lines.table[member.line, STOP] = 1

    def kill(self) -> None:
        for member in self._members:
            member.process.kill()

    def is_gone(self) -> bool:
        return not self._members

    def processes(self) -> list[int]:
        """Returns the process numbers of the workers that are alive."""
        found = []
        for member in list(self._members):
            with contextlib.suppress(ValueError):  # closed meanwhile
                if member.process.pid is not None:
                    found.append(member.process.pid)
        return found

    def running(self) -> int:
        return sum(bool(self._place.lines.table[member.line, CURRENT]) for member in list(self._members))

    def done(self) -> int:
        """Returns how many jobs the workers have released."""
        return self._done_by_ended + sum(int(self._place.lines.table[m.line, DONE]) for m in list(self._members))


def is_stopped(pid: int | None) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0] == b"T"
    except OSError:
        return False


def is_dead(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False
