"""Start workers together, let none of them leave before all are done, and collect their reports.

Every worker meets the others at a barrier before its clock starts, so no import, no fork and
no attach is measured. All clocks are the one monotonic clock of the machine.
"""

import gc
import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from multiprocessing.synchronize import Barrier
from typing import Any, NamedTuple

from benchmarks.isolation import UnfaithfulError

fork = multiprocessing.get_context("fork")

# A consumer that waits this long after the last put has returned waits for an item that is lost.
PATIENCE = 5.0


class Report(NamedTuple):
    """What a worker did: from when to when on the common clock, and what it has to show."""

    started: float
    ended: float
    result: Any = None


class WorkerFailedError(Exception):
    """A worker raised or died; the message says which and how."""


Work = Callable[[Barrier], Report]
Members = dict[str, tuple[ForkProcess, "Connection[Any, Any]"]]


def run_together(works: dict[str, Work]) -> dict[str, Report]:
    """Run each piece of work in its own process and return the reports by name.

    Names that start with "producer" are expected to end without the others.
    """
    barrier = fork.Barrier(len(works))
    members = {name: _start(work, barrier) for name, work in works.items()}
    reports: dict[str, Report] = {}
    try:
        while len(reports) < len(members):
            _collect(members, reports)
    finally:
        _dismiss(members, all_done=len(reports) == len(members))
    return reports


def _start(work: Work, barrier: Barrier) -> tuple[ForkProcess, "Connection[Any, Any]"]:
    here, there = fork.Pipe()
    process = fork.Process(target=_work, args=(work, barrier, there))
    process.start()
    there.close()
    return process, here


def _work(work: Work, barrier: Barrier, channel: "Connection[Any, Any]") -> None:
    gc.disable()
    try:
        channel.send(work(barrier))
    except BaseException as error:
        channel.send(f"{type(error).__name__}: {error}")  # before the others break at the barrier, and say so
        barrier.abort()
    channel.recv()  # nobody leaves before all are done: a queue may live in its producer


def _dismiss(members: Members, *, all_done: bool) -> None:
    for process, channel in members.values():
        channel.send(None) if all_done else process.kill()
    for process, channel in members.values():
        process.join(PATIENCE)
        channel.close()


def _collect(members: Members, reports: dict[str, Report]) -> None:
    waiting = {name: member for name, member in members.items() if name not in reports}
    only_consumers = not any(name.startswith("producer") for name in waiting)
    channels = [channel for _, channel in waiting.values()]
    ready = wait(channels, PATIENCE if only_consumers else None)
    if not ready:
        names = ", ".join(waiting)
        raise UnfaithfulError(f"{names} still waiting {PATIENCE:g} s after the last put")
    broken = []
    for name, (process, channel) in waiting.items():
        if channel not in ready:
            continue
        try:
            message = channel.recv()
        except EOFError:
            process.join()
            raise WorkerFailedError(f"{name} died with exit code {process.exitcode}") from None
        if isinstance(message, str):
            broken.append(f"{name}: {message}")
        else:
            reports[name] = message
    if broken:
        # The others only broke at the barrier because of the first one.
        broken.sort(key=lambda text: "BrokenBarrierError" in text)
        raise WorkerFailedError(broken[0])


def now() -> float:
    """Return the common clock in seconds."""
    return time.perf_counter()
