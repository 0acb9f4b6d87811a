"""The workers of a stress run, processes or threads: started, watched and killed through a board that all map."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from queueduct.errors import QueueductError
from queueduct.verification.history._rows import RowFile
from queueduct.verification.history.recorder import Clock
from queueduct.verification.stress._worker import CYCLES, MONOTONIC, STOP, WAIT, Board, work

__all__ = ["BOARD_LINES", "Crew", "Plan", "Worker"]

BOARD_LINES = 1 << 16  # workers of a run, with those that replace the killed
COUNTER_BITS = 40  # of a value: the rest is its producer's number
READY_SECONDS = 0.001


@dataclass(frozen=True)
class Plan:
    puts: bool
    items: int
    batch: int
    item_bytes: int
    seed: int
    waits: int
    tries: int
    group: int
    reads: bool
    """True for a reader of a log, which sees every item."""
    expected_bytes: int = 0
    """The bytes of its rows to allocate at the start."""
    first_value: int = 0
    parent: int = 0
    core: int | None = None
    """The processor that it must run on, if one is set."""


@dataclass(frozen=True)
class Post:
    """What a worker is given."""

    queue: Any
    kind: str
    folder: Path
    rows: Path | None
    clock: Clock


@dataclass
class Worker:
    number: int
    plan: Plan
    runner: Any
    was_killed: bool = False

    def is_alive(self) -> bool:
        return bool(self.runner.is_alive())


class Crew:
    """All workers of one queue, also ended ones."""

    def __init__(self, queue: Any, kind: str, threads: bool, folder: Path, rows: Path | None, clock: Clock) -> None:
        self.post = Post(queue, kind, folder, rows, clock)
        self.threads = threads
        self.board = Board(folder / "board", BOARD_LINES, create=True)
        self.workers: list[Worker] = []
        self.errors: dict[int, str] = {}
        self.is_ending = False
        """True if the run is ending: a worker that has not begun then need not, since Ctrl-C may have reached it."""
        if not threads:
            self.context = multiprocessing.get_context("forkserver")
            # modules are imported once: a new worker needs only a fork
            self.context.set_forkserver_preload(["__main__", "queueduct.verification.stress.crew"])

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.board.signal = STOP
        for worker in self.workers:
            if not self.threads and kind is not None:
                worker.runner.kill()
            worker.runner.join()
        (self.post.folder / "board").unlink(missing_ok=True)

    def start(self, plan: Plan) -> Worker:
        number = len(self.workers)
        plan = replace(plan, first_value=number << COUNTER_BITS)
        if self.threads:
            runner: Any = threading.Thread(target=self.run_thread, args=(number, plan), daemon=True)
        else:
            runner = self.context.Process(target=run_process, args=(self.post, plan, number), daemon=True)
        worker = Worker(number, plan, runner)
        self.workers.append(worker)
        runner.start()
        return worker

    def kill(self, worker: Worker) -> None:
        worker.was_killed = True
        worker.runner.kill()
        worker.runner.join()

    def at_work(self, puts: bool) -> list[Worker]:
        return [worker for worker in self.workers if worker.plan.puts == puts and worker.is_alive()]

    def wait_until_ready(self, seconds: float) -> None:
        limit = time.monotonic() + seconds
        while not all(self.board.is_ready(worker.number) for worker in self.workers):
            self.check()
            if time.monotonic() > limit:
                raise QueueductError(f"the workers were not ready after {seconds:.0f} s")
            time.sleep(READY_SECONDS)

    def items(self) -> int:
        return sum(self.board.progress(worker.number)[0] for worker in self.workers)

    def totals(self) -> tuple[int, int, int, int, int]:
        """Returns items put, items got, operations, torn items, ns of processor time."""
        put = got = operations = torn = cpu_ns = 0
        for worker in self.workers:
            items, done, bad, taken = self.board.progress(worker.number)
            put += items if worker.plan.puts else 0
            got += 0 if worker.plan.puts else items
            operations += done
            torn += bad
            cpu_ns += taken
        return put, got, operations, torn, cpu_ns

    def ended(self) -> float:
        """Returns when the last worker's work was done, by time.monotonic(), without the end of its process."""
        ended = max(self.board.ended(worker.number) for worker in self.workers)
        return ended / 1e9 if ended else time.monotonic()

    def check(self) -> None:
        """Raises the error of a worker that has failed."""
        for worker in self.workers:
            if worker.is_alive() or worker.was_killed or (self.is_ending and not self.board.is_ready(worker.number)):
                continue
            error = self.errors.get(worker.number)
            if not self.threads and worker.runner.exitcode != 0:
                note = error_note(self.post.folder, worker.number)
                error = note.read_text() if note.exists() else f"it ended with code {worker.runner.exitcode}"
            if error is not None:
                raise QueueductError(f"worker {worker.number} has failed: {error}")

    def run_thread(self, number: int, plan: Plan) -> None:
        try:
            take_part(self.post, plan, number, self.board)
        except Exception as error:
            self.errors[number] = f"{type(error).__name__}: {error}"


def error_note(folder: Path, number: int) -> Path:
    return folder / f"error-{number}"


def run_process(post: Post, plan: Plan, number: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the parent decides when to stop
    try:
        take_part(post, replace(plan, parent=os.getppid()), number, Board(post.folder / "board", BOARD_LINES))
    except Exception as error:
        error_note(post.folder, number).write_text(f"{type(error).__name__}: {error}")
        raise SystemExit(1) from None


def take_part(post: Post, plan: Plan, number: int, board: Board) -> None:
    reader = post.queue.subscribe(start="earliest") if plan.reads else None
    rows = None
    if post.rows is not None:
        reader_number = number if plan.reads else -1
        path = post.rows / f"worker-{number:05}.rows"
        rows = RowFile(path, number, reader_number, plan.expected_bytes, post.clock.tick_step)
    if plan.core is not None:
        os.sched_setaffinity(0, {plan.core})
    board.ready(number)
    while board.signal == WAIT:
        time.sleep(READY_SECONDS)
    try:
        work(post.queue, post.kind, plan, board, number, rows, CYCLES if post.clock.is_counter else MONOTONIC, reader)
    finally:
        if reader is not None:
            reader.close()
