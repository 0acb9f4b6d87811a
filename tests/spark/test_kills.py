"""SIGKILL of the driver, of Python workers, of stream readers and of producers, at random moments.

Allowed, and nothing else: whatever is killed is started again, the driver from its checkpoints, and in the end the
Parquet sink and the queue hold each record exactly once: both of them all of an EventQueue, and together all of a queue
that gives each item to one of them. Of a queue that overwrites, each record at most once, and the rest is counted.
The queue that is written to is a log, or one that somebody consumes meanwhile, so small that the sink waits for room.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import queueduct
from queueduct.spark.read.subscription import has_commits
from tests.spark.rows import TICK, check_each_once, check_none_twice_and_losses_counted, parquet_numbers, queue_numbers
from tests.support.children import environment

HERE = Path(__file__).parent
PRODUCERS = 4


def children_of(pid: int) -> list[int]:
    try:
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []


def descendants(pid: int) -> list[int]:
    found = []
    for child in children_of(pid):
        found += [child, *descendants(child)]
    return found


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


class Campaign:
    """The processes, and whoever is killed among them."""

    def __init__(self, folder: Path, seed: str, rows: int) -> None:
        self.folder = folder
        self.rng = random.Random(seed)
        self.rows = rows  # of each producer
        self.environment = environment(SPARK_LOCAL_DIRS=str(folder / "spark"))
        self.driver = self.start_driver()
        self.producers = {number: self.start_producer(number) for number in range(PRODUCERS)}
        self.kills: dict[str, int] = {}

    def start(self, *command: object) -> subprocess.Popen[bytes]:
        with (self.folder / "stderr").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, *map(str, command)],
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def start_driver(self) -> subprocess.Popen[bytes]:
        return self.start(HERE / "driver.py", "ticks", "out", self.folder)

    def start_producer(self, number: int) -> subprocess.Popen[bytes]:
        return self.start(HERE / "producer.py", "ticks", number, self.rows, self.folder)

    def java(self) -> int | None:
        return next((pid for pid in descendants(self.driver.pid) if "org.apache.spark" in command_of(pid)), None)

    def pythons(self, kind: str) -> list[int]:
        java = self.java()
        if java is None:
            return []
        if kind == "reader":
            return [pid for pid in descendants(java) if "python_streaming_source_runner" in command_of(pid)]
        daemons = [pid for pid in children_of(java) if ".daemon pyspark.worker" in command_of(pid)]
        return [worker for daemon in daemons for worker in children_of(daemon)]

    def kill(self, kind: str) -> bool:
        """Somebody of that kind; whether there was one."""
        if kind == "driver":
            self.kill_driver()
        elif kind == "producer":
            alive = [number for number, process in self.producers.items() if process.poll() is None]
            if not alive:
                return False
            number = self.rng.choice(alive)
            self.producers[number].kill()
            self.producers[number].wait()
            self.producers[number] = self.start_producer(number)
        else:
            found = self.pythons(kind)
            if not found:
                return False
            try:
                os.kill(self.rng.choice(found), signal.SIGKILL)
            except ProcessLookupError:
                return False
        self.kills[kind] = self.kills.get(kind, 0) + 1
        return True

    def kill_driver(self) -> None:
        """Python or Java, or both at once; what is left of it ends by itself or is ended before the next starts."""
        java = self.java()
        victims = self.rng.choice([[self.driver.pid], [java], [self.driver.pid, java]])
        for pid in victims:
            if pid is not None:
                os.kill(pid, signal.SIGKILL)
        if java is not None and java not in victims:
            os.kill(java, signal.SIGKILL)  # without its Python it ends too, but takes its time
        self.driver.kill()
        self.driver.wait()
        self.driver = self.start_driver()

    def wait_until_at_work(self, seconds: float = 240) -> None:
        """Until both queries have their readers and something has been written since the driver's start."""
        deadline = time.monotonic() + seconds
        while len(self.pythons("reader")) < 2 or not self.pythons("worker"):
            assert time.monotonic() < deadline, "the driver has not come to work"
            if self.driver.poll() is not None:
                return
            time.sleep(0.05)

    def wait_until_committed(self, seconds: float = 240) -> None:
        """Until both queries have committed a batch. Before that, one that fails gives up its reader of a log, and the
        other query may free what its restart would ask for."""
        deadline = time.monotonic() + seconds
        while not all(has_commits(str(self.folder / f"{sink}-checkpoint")) for sink in ("parquet", "queue")):
            assert time.monotonic() < deadline, "the queries have not committed anything"
            time.sleep(0.05)

    def finish(self, queue: queueduct.Queue, seconds: float = 400) -> None:
        deadline = time.monotonic() + seconds
        for number, process in self.producers.items():
            assert process.wait(max(1, deadline - time.monotonic())) == 0, f"producer {number}"
        queue.shutdown()
        try:
            assert self.driver.wait(max(1, deadline - time.monotonic())) == 0
        except subprocess.TimeoutExpired:
            pytest.fail("the driver has not come to its end: " + (self.folder / "driver.log").read_text()[-4000:])

    def end(self) -> None:
        for process in [self.driver, *self.producers.values()]:
            for pid in [*descendants(process.pid), process.pid]:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            process.wait()


# How a queue of ticks is made, each with so many rows on their way through it.
MAKERS = {
    "events": lambda rows: queueduct.EventQueue.create("ticks", item=TICK, max_bytes=rows * TICK.itemsize // 4),
    "bounded": lambda rows: queueduct.BoundedQueue.create("ticks", 1 << (rows // 4).bit_length(), item=TICK),
    "growing": lambda rows: queueduct.GrowingQueue.create("ticks", item=TICK, max_bytes=rows * TICK.itemsize // 2),
    "slots": lambda rows: queueduct.SlotQueue.create("ticks", rows // 4, item=TICK),
    "overwriting": lambda rows: queueduct.OverwritingQueue.create("ticks", rows // 4, item=TICK),
}
CRASH_SEED = int(os.environ.get("CRASH_SEED", "1"))  # each one draws other kills
IN_SHORT = ["events", "bounded"]  # one that is read in place, and one that is drained; the long form has them all

# How the queue that Spark writes to is made. What is consumed has room for less than a batch.
SINKS = {
    "events": lambda: queueduct.EventQueue.create("out", item=TICK, max_bytes=512 << 20),
    "bounded": lambda: queueduct.BoundedQueue.create("out", 8192, item=TICK),
    "growing": lambda: queueduct.GrowingQueue.create("out", item=TICK, max_bytes=8192 * TICK.itemsize),
    "slots": lambda: queueduct.SlotQueue.create("out", 8192, item=TICK),
}


class Consumer:
    """Gets what comes out of the sink while it runs, a little slower than it comes."""

    def __init__(self, out: queueduct.Queue) -> None:
        self.out = out
        self.found = [np.zeros(0, "i8")]
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def work(self) -> None:
        try:
            while True:
                self.found.append(self.out.get_many(1000)["number"])
                time.sleep(0.002)
        except queueduct.ShutDown:
            return

    def numbers(self) -> np.ndarray:
        self.out.shutdown()
        self.thread.join()
        return np.concatenate(self.found)


@contextlib.contextmanager
def sink_of(kind: str) -> Iterator[Callable[[], np.ndarray]]:
    """The queue that Spark writes to; what was put into it, once everybody is done."""
    with SINKS[kind]() as out:
        if kind == "events":
            yield lambda: queue_numbers(out)
            return
        consumer = Consumer(out)
        try:
            yield consumer.numbers
        finally:
            consumer.numbers()  # it ends, also when a test fails


def run_campaign(
    kind: str,
    sink: str,
    folder: Path,
    seed: str,
    plan: list[str],
    rows: int,
    pause: tuple[float, float],
    *,
    after_commits: bool = False,
) -> Campaign:
    with MAKERS[kind](rows) as ticks, sink_of(sink) as numbers_put:
        campaign = Campaign(folder, seed, rows)
        try:
            for victim in plan:
                if after_commits and victim in ("worker", "reader"):  # they take their query with them
                    campaign.wait_until_committed()
                campaign.wait_until_at_work()
                time.sleep(campaign.rng.uniform(*pause))
                campaign.kill(victim)
            campaign.finish(ticks)
            total = PRODUCERS * rows
            stats = ticks.stats()
            written, put = parquet_numbers(folder / "parquet"), numbers_put()
            positions = parquet_numbers(folder / "parquet", "position")
            if kind == "events":  # each query has everything; else they share it
                check_each_once(written, total)
                check_each_once(put, total)
                assert np.array_equal(np.sort(positions), np.arange(total))
            elif kind == "overwriting":
                check_none_twice_and_losses_counted(np.concatenate([written, put]), stats, total)
                assert len(np.unique(positions)) == len(positions)
            else:
                check_each_once(np.concatenate([written, put]), total)
                assert len(np.unique(positions)) == len(positions)
        finally:
            campaign.end()
    return campaign


PAIRS = [*((kind, "events") for kind in MAKERS), *(("events", sink) for sink in SINKS if sink != "events")]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("kind", "sink"),
    [
        (kind, sink) if kind in IN_SHORT and sink == "events" else pytest.param(kind, sink, marks=pytest.mark.long)
        for kind, sink in PAIRS
    ],
)
def test_each_record_arrives_once_though_everybody_is_killed_on_the_way(kind, sink, tmp_path, capsys):
    plan = ["worker", "producer", "driver", "reader", "producer"]
    campaign = run_campaign(kind, sink, tmp_path, "short", plan, rows=50_000, pause=(0.0, 0.5))
    with capsys.disabled():
        print(f"\n  kills: {campaign.kills}")
    assert campaign.kills["driver"] == 1
    assert set(campaign.kills) == {"worker", "producer", "reader", "driver"}


@pytest.mark.long
@pytest.mark.timeout(3000)
@pytest.mark.parametrize(
    ("kind", "sink", "seed"),
    [
        (kind, sink, seed)
        for kind, sink in [*PAIRS, ("growing", "growing")]
        for seed in range(2 * CRASH_SEED - 2, 2 * CRASH_SEED - (0 if sink == "events" else 1))
    ],
)
def test_each_record_arrives_once_over_many_random_kills(kind, sink, tmp_path, seed, capsys):
    rng = random.Random(seed)
    plan = ["driver", "driver", *rng.choices(["worker", "reader", "producer"], [4, 3, 3], k=10)]
    rng.shuffle(plan)
    name = f"long {seed}"
    campaign = run_campaign(kind, sink, tmp_path, name, plan, rows=400_000, pause=(0.0, 2.0), after_commits=True)
    with capsys.disabled():
        print(f"\n  kills: {campaign.kills}")
    assert sum(campaign.kills.values()) >= 10
