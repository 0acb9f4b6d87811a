"""A stress run: workers on one queue, as hard as they can, killed at random if asked for; every operation recorded."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from queueduct.errors import QueueductError
from queueduct.segments.kinds import KINDS
from queueduct.verification.history import needs_pyarrow, recorder
from queueduct.verification.stress._worker import RUN, STOP, STOP_PRODUCERS
from queueduct.verification.stress.crew import BOARD_LINES, Crew, Plan

__all__ = ["MIX", "Options", "Result", "StressFailed", "cost", "run"]

MIX = {"put": 3, "try_put": 1, "get": 3, "try_get": 1}
POLL_SECONDS = 0.02
STUCK_SECONDS = 60.0
BATCH_LIMIT = 1 << 16
OPS_LIMIT = 1 << 37  # a row has so much room for a ticket
RUNS_A_CALL = 4  # of consecutive values, of several producers, that a get of many finds
READY_BYTES = 1 << 29  # of rows in all that are made ready before the start
ROUNDS = 15  # of a run with and one without a history


class StressFailed(QueueductError):
    """A worker failed, or no operation ended any more."""


@dataclass(frozen=True)
class Options:
    kind: str
    producers: int = 4
    consumers: int = 4
    ops: int = 1_000_000
    """The number of successful puts and gets."""
    capacity: int | None = None
    item_bytes: int = 64
    batch: int = 64
    """The most items of a call; each call has a random number of them."""
    mix: tuple[tuple[str, int], ...] = tuple(MIX.items())
    """Weights of put and try_put, get and try_get."""
    kill: float = 0.0
    """Workers killed a second."""
    threads: bool = False
    seed: int = 0
    drain: bool = True
    history: Path | None = None

    def check(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"no stress run for this kind of queue: kind={self.kind!r}; there are {', '.join(KINDS)}")
        for name in ("producers", "consumers", "ops", "batch"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1: {name}={getattr(self, name)}")
        for name, limit in (("batch", BATCH_LIMIT), ("ops", OPS_LIMIT)):
            if getattr(self, name) > limit:
                raise ValueError(f"{name} must be at most {limit}: {name}={getattr(self, name)}")
        if self.producers + self.consumers > 200:
            raise ValueError(f"at most 200 workers: producers={self.producers}, consumers={self.consumers}")
        if not 0 <= self.kill <= 1000:
            raise ValueError(f"kill must be from 0 to 1000 workers a second: kill={self.kill}")
        if self.kill and self.threads:
            raise ValueError("a thread cannot be killed: --kill needs processes, leave out --threads")
        weights = dict(self.mix)
        for name in weights:
            if name not in MIX:
                raise ValueError(f"mix must name {', '.join(MIX)}: {name!r}")
        for pair in (("put", "try_put"), ("get", "try_get")):
            if any(weights.get(name, 0) < 0 for name in pair) or not sum(weights.get(name, 0) for name in pair):
                raise ValueError(f"mix must give {pair[0]} or {pair[1]} a positive weight: {weights}")
        item_of(self.item_bytes)

    @property
    def items(self) -> int:
        """Items to put, so that with their gets there are that many operations."""
        gets = self.consumers if KINDS[self.kind].is_log else 1
        return -(-self.ops // (1 + gets))

    def weights(self, puts: bool) -> tuple[int, int]:
        """The weights of calls that wait, and of those that only try."""
        weights = dict(self.mix)
        waits, tries = ("put", "try_put") if puts else ("get", "try_get")
        return weights.get(waits, 0), weights.get(tries, 0)


@dataclass
class Result:
    kind: str
    run: str
    operations: int
    put: int
    got: int
    torn: int
    killed: int
    left: int | None
    """Items that are still in the queue; None if the kind has no such number."""
    seconds: float
    operations_per_second: float
    cpu_ns_per_operation: float
    """The workers' processor time: on a shared machine it says more than wall time."""
    interrupted: bool
    history: str | None = None
    rows: int = 0


def run(options: Options, console: Console) -> Result:
    """Creates a queue, runs it, and writes its history."""
    options.check()
    name = new_name()
    if options.history is None:
        with tempfile.TemporaryDirectory(prefix="queueduct-stress-") as folder:
            return Run(options, name, Path(folder), None, console).result()
    needs_pyarrow()
    unfinished = recorder.UnfinishedHistory(options.history, name)
    try:
        work = Run(options, name, unfinished.rows, unfinished, console)
        result = work.result()
        work.write_history(unfinished, result)
        return result
    except BaseException:
        unfinished.abandon()
        raise


def cost(options: Options, console: Console, rounds: int = ROUNDS) -> dict[str, Any]:
    """Returns what recording costs: ratios of neighbouring runs with and without it, and their medians.

    All workers share one core. On several cores their contention varies far more than this cost.
    """
    options.check()
    core = min(os.sched_getaffinity(0))
    plain: list[Result] = []
    recorded: list[Result] = []
    for turn in range(rounds):
        pair = (plain, recorded) if turn % 2 == 0 else (recorded, plain)
        for results in pair:
            results.append(run_unkept(replace(options, seed=options.seed + turn), console, core, results is recorded))
            if results[-1].interrupted:
                raise KeyboardInterrupt
    pairs = list(zip(plain, recorded, strict=True))
    costs = [1 - after.operations_per_second / before.operations_per_second for before, after in pairs]
    cpu_costs = [1 - before.cpu_ns_per_operation / after.cpu_ns_per_operation for before, after in pairs]
    return {
        "cost": statistics.median(costs),
        "costs": costs,
        "cpu_cost": statistics.median(cpu_costs),
        "cpu_costs": cpu_costs,
        "rounds": rounds,
        "unrecorded_per_second": statistics.median(each.operations_per_second for each in plain),
        "recorded_per_second": statistics.median(each.operations_per_second for each in recorded),
        "unrecorded_cpu_ns": statistics.median(each.cpu_ns_per_operation for each in plain),
        "recorded_cpu_ns": statistics.median(each.cpu_ns_per_operation for each in recorded),
    }


def run_unkept(options: Options, console: Console, core: int, records: bool) -> Result:
    """Runs on one core. A run that records does all the work, but keeps no rows."""
    with tempfile.TemporaryDirectory(prefix="queueduct-stress-") as folder:
        if not records:
            return Run(options, new_name(), Path(folder), None, console, core).result()
        unfinished = recorder.UnfinishedHistory(Path(folder) / "history", new_name())
        return Run(options, new_name(), unfinished.rows, unfinished, console, core).result()


def new_name() -> str:
    return uuid.uuid4().hex[:12]


@dataclass
class Run:
    options: Options
    name: str
    folder: Path
    unfinished: recorder.UnfinishedHistory | None
    console: Console
    core: int | None = None
    killed: int = 0
    interrupts: int = 0

    def __post_init__(self) -> None:
        self.kind = KINDS[self.options.kind]
        self.clock = recorder.ticking()
        self.random = random.Random(self.options.seed)
        self.started = datetime.now(UTC)

    def result(self) -> Result:
        options, workers = self.options, self.options.producers + self.options.consumers
        queue = self.kind.create(
            f"stress-{self.name}",
            options.capacity or self.kind.usual_capacity,
            item_of(options.item_bytes),
            max(64, 4 * workers),
        )
        try:
            with queue:
                rows = self.unfinished.rows if self.unfinished else None
                self.crew = Crew(queue, options.kind, options.threads, self.folder, rows, self.clock)
                with self.noted_interrupts(), self.crew:
                    return self.run(queue)
        finally:
            queue.unlink()

    def run(self, queue: Any) -> Result:
        crew = self.crew
        share, rest = divmod(self.options.items, self.options.producers)
        with self.console.status("starting workers"):
            for _ in range(self.options.consumers):
                crew.start(self.with_room(self.plan(False, 0)))
            for number in range(self.options.producers):
                crew.start(self.with_room(self.plan(True, share + (number < rest))))
            crew.wait_until_ready(STUCK_SECONDS)
        self.timing = recorder.Timing(self.clock)
        began = time.monotonic()
        crew.board.signal = RUN
        with self.progress() as progress:
            bar = progress.add_task(f"stress {self.options.kind}", total=self.options.ops)
            watch = Watch(crew, lambda items: progress.update(bar, completed=items))
            self.see_through(began, watch)
            if self.options.drain:
                queue.shutdown()
            else:
                crew.board.signal = STOP
            self.wait_for_consumers(watch)
        seconds = crew.ended() - began
        self.timing.stop()
        put, got, operations, torn, cpu_ns = crew.totals()
        return Result(
            kind=self.options.kind,
            run=self.name,
            operations=operations,
            put=put,
            got=got,
            torn=torn,
            killed=self.killed,
            left=None if self.kind.is_log else queue.qsize(),
            seconds=seconds,
            operations_per_second=operations / seconds,
            cpu_ns_per_operation=cpu_ns / max(operations, 1),
            interrupted=self.interrupts > 0,
        )

    def plan(self, puts: bool, items: int) -> Plan:
        waits, tries = self.options.weights(puts)
        batch, group = self.options.batch, 1
        if not self.kind.has_batches:  # a call with several items makes one claim for each
            batch, group = group, batch
        return Plan(
            puts=puts,
            items=items,
            batch=batch,
            item_bytes=self.options.item_bytes,
            seed=self.random.getrandbits(63),
            waits=waits,
            tries=tries,
            group=group,
            reads=not puts and self.kind.is_log,
            core=self.core,
        )

    def with_room(self, plan: Plan) -> Plan:
        """Reserves room for a few more rows than are likely, up to a limit that keeps the start short.

        Workers that replace killed ones get none: they are many, and live shortly.
        """
        if self.unfinished is None:
            return plan
        items = plan.items
        if not plan.puts:
            items = self.options.items if plan.reads else self.options.items // self.options.consumers
        calls = 2 * items // (plan.batch + 1)
        words = calls + 2 * calls // (plan.group + 1)
        if not plan.puts:
            # some consumers get more items than others
            words = 2 * (words + min(RUNS_A_CALL * calls, items))
        workers = self.options.producers + self.options.consumers
        return replace(plan, expected_bytes=min(8 * words * 5 // 4, READY_BYTES // workers))

    def see_through(self, began: float, watch: Watch) -> None:
        """Waits until all is put. Kills and replaces workers, if asked for."""
        crew, kill = self.crew, self.options.kill
        next_kill = began + self.random.expovariate(kill) if kill else float("inf")
        while at_work := crew.at_work(puts=True):
            if self.interrupts:
                crew.is_ending = True
                crew.board.signal = STOP_PRODUCERS
                next_kill = float("inf")
            if time.monotonic() >= next_kill and len(crew.workers) < BOARD_LINES and self.kill_one():
                next_kill += self.random.expovariate(kill)
            watch.check()
            at_work[0].runner.join(POLL_SECONDS)
        crew.check()

    def wait_for_consumers(self, watch: Watch) -> None:
        while at_work := self.crew.at_work(puts=False):
            if self.interrupts > 1:
                raise KeyboardInterrupt
            watch.check()
            at_work[0].runner.join(POLL_SECONDS)
        self.crew.check()

    def kill_one(self) -> bool:
        """Kills a worker by SIGKILL and starts another one. Returns false if too many are still starting."""
        crew = self.crew
        at_work = [worker for worker in crew.workers if worker.is_alive() and crew.board.is_ready(worker.number)]
        if 2 * len(at_work) <= self.options.producers + self.options.consumers:
            return False
        victim = self.random.choice(at_work)
        crew.kill(victim)
        self.killed += 1
        left = victim.plan.items - crew.board.progress(victim.number)[0]
        if not victim.plan.puts or left > 0:
            crew.start(self.plan(victim.plan.puts, max(left, 0)))
        return True

    def write_history(self, unfinished: recorder.UnfinishedHistory, result: Result) -> None:
        with self.progress() as progress:
            bar = progress.add_task("writing Parquet", total=result.operations)
            result.rows = unfinished.convert(self.timing, lambda rows: progress.update(bar, advance=rows))
        options = asdict(self.options) | {"history": None, "mix": dict(self.options.mix)}
        capacity = self.options.capacity or self.kind.usual_capacity
        result.history = str(self.options.history)
        unfinished.finish(
            {
                "kind": self.options.kind,
                "capacity": capacity if self.kind.has_capacity else None,
                "clock": self.clock.name,
                "host": recorder.machine(),
                "versions": recorder.versions(),
                "run": self.name,
                "seed": self.options.seed,
                "options": options,
                "started": self.started.isoformat(),
                "seconds": result.seconds,
                "operations": result.rows,
                "workers": len(self.crew.workers),
                "killed": self.killed,
                "interrupted": result.interrupted,
                "drained": self.options.drain,
            }
        )

    def progress(self) -> Progress:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        return Progress(*columns, console=self.console, disable=self.console.quiet, transient=True)

    @contextlib.contextmanager
    def noted_interrupts(self) -> Iterator[None]:
        """The first Ctrl-C ends the run early, with a complete history; a second one aborts it."""

        def note(number: int, frame: object) -> None:
            self.interrupts += 1
            if self.interrupts > 1:
                raise KeyboardInterrupt

        try:
            before = signal.signal(signal.SIGINT, note)
        except ValueError:  # not in the main thread, which alone gets signals
            yield
            return
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


@dataclass
class Watch:
    """Reports how far the crew has come. Raises StressFailed if no operation ends any more."""

    crew: Crew
    tell: Callable[[int], None]
    items: int = -1
    since: float = 0.0

    def check(self) -> None:
        self.crew.check()
        items, now = self.crew.items(), time.monotonic()
        self.tell(items)
        if items != self.items:
            self.items, self.since = items, now
        elif now - self.since > STUCK_SECONDS:
            raise StressFailed(
                f"no operation has ended for {STUCK_SECONDS:.0f} s: {items:,} items were put or got before"
            )


def item_of(item_bytes: int) -> np.dtype[Any]:
    """Returns a record of that size: its value, and words computed from it."""
    if item_bytes < 8 or item_bytes % 8 != 0 or item_bytes > 1 << 20:
        raise ValueError(f"an item must have 8 bytes or a multiple of them, at most 1 MiB: item_bytes={item_bytes}")
    if item_bytes == 8:
        return np.dtype("i8")
    return np.dtype([("value", "i8"), ("rest", "u8", (item_bytes // 8 - 1,))])
