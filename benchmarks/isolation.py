"""Run one measurement where it can do no harm: a process group of its own, with a time limit.

::

    harness ── fork server ── supervisor (leads the group) ─┬─ producers
                                                            └─ consumers

The fork server has one thread and has imported what is needed, so a supervisor starts at once
and may fork its workers. A measurement that hangs, crashes or leaves processes behind
ends with its whole group, and costs its row and nothing else.
"""

import itertools
import multiprocessing
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

SHARED_MEMORY = Path("/dev/shm")

OK = "ok"
FAILED = "failed"
NOT_INSTALLED = "not installed"
NOT_BUILT = "not built"

_numbers = itertools.count()


@dataclass(frozen=True)
class Bench:
    """Where a measurement leaves its files: the tag is in the name of each of them."""

    directory: Path
    tag: str


@dataclass(frozen=True)
class Sample:
    """What one run has measured."""

    value: float
    seconds: float
    details: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """How a run ended: a sample, or why there is none."""

    status: str
    why: str = ""
    sample: Sample | None = None


class UnfaithfulError(Exception):
    """A run lost, doubled, changed or reordered items."""


class NotBuiltError(Exception):
    """A program that the row needs has not been built."""


Measure = Callable[[Any, int, Bench], Sample]


@contextmanager
def workplace() -> Iterator[Path]:
    """Give the runs a directory in memory, and take it away again."""
    base = SHARED_MEMORY if SHARED_MEMORY.is_dir() else Path(tempfile.gettempdir())
    directory = Path(tempfile.mkdtemp(prefix="queueduct-bench-", dir=base))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def isolated(measure: Measure, setting: object, amount: int, *, timeout: float, directory: Path) -> Outcome:
    """Call `measure(setting, amount, bench)` in a group of its own and return how it ended."""
    tag = f"psb{os.getpid()}x{next(_numbers)}"
    bench = Bench(directory / tag, tag)
    bench.directory.mkdir()
    context = _fork_server()
    answers, answer = context.Pipe(duplex=False)
    supervisor = context.Process(target=_supervise, args=(answer, measure, setting, amount, bench))
    try:
        supervisor.start()
        answer.close()
        return _wait_for(answers, supervisor, timeout)
    finally:
        _end(supervisor)
        answers.close()
        _sweep(bench)


def _fork_server() -> ForkServerContext:
    # A numerical library that starts threads of its own would make forking unsafe.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.preload"])
    return context


def _supervise(answer: Connection, measure: Measure, setting: object, amount: int, bench: Bench) -> None:
    os.setsid()
    _end_with_harness()
    log = os.open(bench.directory / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ["QUEUEDUCT_DIR"] = str(bench.directory)
    try:
        outcome = Outcome(OK, sample=measure(setting, amount, bench))
    except ImportError as error:
        outcome = Outcome(NOT_INSTALLED, str(error))
    except NotBuiltError as error:
        outcome = Outcome(NOT_BUILT, str(error))
    except BaseException as error:
        outcome = Outcome(FAILED, f"{type(error).__name__}: {error}")
    answer.send(outcome)


def _end_with_harness() -> None:
    """Leave a process that waits for the end of the harness, and then ends this group.

    Whoever kills the harness leaves it no time to do so itself.
    """
    harness = multiprocessing.parent_process()
    assert harness is not None
    if os.fork() == 0:
        wait([harness.sentinel])
        os.killpg(0, signal.SIGKILL)


def _wait_for(answers: "Connection[Any, Any]", supervisor: BaseProcess, timeout: float) -> Outcome:
    if not answers.poll(timeout):
        return Outcome(FAILED, f"hung: killed after {timeout:g} s")
    try:
        outcome: Outcome = answers.recv()
    except EOFError:
        supervisor.join()
        return Outcome(FAILED, f"died with exit code {supervisor.exitcode}")
    return outcome


def _end(supervisor: BaseProcess) -> None:
    if supervisor.pid is None:
        return
    with suppress(ProcessLookupError):
        os.killpg(supervisor.pid, signal.SIGKILL)
    supervisor.kill()
    supervisor.join()
    supervisor.close()


def _sweep(bench: Bench) -> None:
    shutil.rmtree(bench.directory, ignore_errors=True)
    for left_behind in SHARED_MEMORY.glob(f"*{bench.tag}*"):
        with suppress(OSError):
            left_behind.unlink()
