"""SIGKILL at random moments under load: workers fork, work, and are killed and replaced, one after the other.

The moments and the victims are drawn from a seeded generator. A control process that does nothing with the queue
measures what the machine itself withholds from everybody.
"""

from __future__ import annotations

import mmap
import os
import random
import signal
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import queueduct
from tests.crash.workers import WORKER_SHIFT, Load, Log, consume, idle_along, produce
from tests.support.children import Children
from tests.support.deadline import until

LIMIT_SECONDS = {"short": 2.5, "long": 0.25}
"""In the short form others run beside it: who waits for a processor is not told from who waits for the dead."""
KILLS, LONG_KILLS = 35, 340
PARTICIPANTS = 16


class Campaign(ABC):
    """One queue, its workers, and everything that was ever logged. A worker has a role, and a seat that outlives it.

    A kind of queue says what is its own: the roles, what each does, and what must hold in the end.
    """

    cls: ClassVar[Any]
    """The class of the queue."""
    options: ClassVar[dict[str, Any]] = {}
    """What it is created with, besides what the load asks for."""
    putting: ClassVar[dict[str, int]] = {"producer": 3}
    """Roles, and how many of each: they end first, at `stop`."""
    getting: ClassVar[dict[str, int]] = {"consumer": 3}
    """They end at `stop_getting`, once nothing is left."""
    spared: ClassVar[frozenset[str]] = frozenset()
    """Roles that are not killed."""
    turns: ClassVar = {"one": 4, "batch": 10}
    """Of the scheduler, that a call may wait for: its own, and others' for each part."""

    def __init__(self, load: Load, children: Children, folder: Path, seed: str) -> None:
        self.load, self.children, self.folder = load, children, folder
        self.rng = random.Random(seed)
        self.stop = memoryview(mmap.mmap(-1, 4096))  # shared with the forks
        self.stop_getting = memoryview(mmap.mmap(-1, 4096))
        self.roles: list[tuple[str, int]] = []  # of each worker: its role and seat
        self.alive: dict[int, int] = {}  # worker -> pid
        self.killed: set[int] = set()
        self.q = self.cls.create("q", participants=PARTICIPANTS, **self.options, **load.create)

    def work(self, worker: int, role: str, seat: int) -> None:
        """What a worker does, in its own process."""
        log = Log(self.log_path(worker))
        if role == "producer":
            produce(self.q, self.load, log, worker, self.stop)
        else:
            consume(self.q, self.load, log, self.stop_getting)

    @abstractmethod
    def judge(self) -> str:
        """Check all that was logged against what is promised; what to print of it."""

    @abstractmethod
    def check_that_all_is_free(self) -> None:
        """Everything that the dead had can be had again."""

    def log_path(self, worker: int) -> Path:
        """Where it logs; by the seat if its successor goes on with the same log."""
        return self.folder / f"log{worker}"

    def start(self, role: str, seat: int) -> None:
        worker = len(self.roles)
        self.roles.append((role, seat))
        self.alive[worker] = self.children.fork(lambda: self.work(worker, role, seat))

    def kill_one(self) -> None:
        alive = [worker for worker in sorted(self.alive) if self.roles[worker][0] not in self.spared]
        candidates = [worker for worker in self.at_work() if worker in alive] or alive
        role = self.rng.choice(sorted({self.roles[worker][0] for worker in candidates}))
        worker = self.rng.choice([worker for worker in candidates if self.roles[worker][0] == role])
        pid = self.alive.pop(worker)
        os.kill(pid, signal.SIGKILL)
        assert self.children.wait(pid) == -signal.SIGKILL, "it had died before, of something else"
        self.killed.add(worker)
        self.start(*self.roles[worker])

    def at_work(self) -> list[int]:
        """Most of the time, those who run at this moment: who sleeps waits, and has claimed nothing."""
        if self.rng.random() < 0.2:
            return []
        return [worker for worker, pid in sorted(self.alive.items()) if state_of(pid) == "R"]

    def run(self, kills: int) -> float:
        """The longest that the machine kept the control from running, in seconds."""
        control_log = Log(self.folder / "control")
        control = self.children.fork(lambda: idle_along(Log(self.folder / "control"), self.stop))
        for role, count in (self.putting | self.getting).items():
            for seat in range(count):
                self.start(role, seat)
        for _ in range(kills):
            time.sleep(self.rng.uniform(0.002, 0.04))
            self.kill_one()
        self.let_everybody_go_on()
        self.finish()
        assert self.children.wait(control) == 0
        return control_log.longest_seconds

    def progress(self, worker: int) -> int:
        path = self.log_path(worker)
        if not path.exists() or path.stat().st_size == 0:
            return 0
        log = Log(path)
        try:
            return log.words[Log.DONE] + log.words[Log.COUNT]
        finally:
            log.close()

    def let_everybody_go_on(self) -> None:
        """After the last kill: each of the living does something more, or shows that it cannot."""
        before = {worker: self.progress(worker) for worker in self.alive}
        for worker in self.alive:
            until(lambda worker=worker: self.progress(worker) > before[worker], f"progress of worker {worker}")

    def finish(self) -> None:
        self.stop[0] = 1
        for worker in [n for n in self.alive if self.roles[n][0] in self.putting]:
            assert self.children.wait(self.alive.pop(worker)) == 0
        self.stop_getting[0] = 1
        for worker in list(self.alive):
            assert self.children.wait(self.alive.pop(worker)) == 0

    def logs(self, role: str) -> Iterator[tuple[int, Log]]:
        """Of each worker that had this role and logged anything."""
        for worker, (mine, _) in enumerate(self.roles):
            if mine == role and self.log_path(worker).exists():
                yield worker, Log(self.log_path(worker))

    def longest_seconds(self) -> float:
        """The longest call of anybody."""
        return max(log.longest_seconds for role in self.putting | self.getting for _, log in self.logs(role))

    def killed_of(self, *roles: str) -> int:
        """How many of these were killed."""
        return sum(Counter(self.roles[worker][0] for worker in self.killed)[role] for role in roles)

    def drained(self) -> list[int]:
        """What the dead still owed when everybody else had gone."""
        rest: list[int] = []
        try:
            while True:
                rest += self.load.get(self.q, 0.5)
        except queueduct.Empty:
            return rest

    def got(self) -> np.ndarray:
        """The numbers of all that came, to whomever, as often as it came."""
        logs = [log.numbers() for role in self.getting for _, log in self.logs(role)]
        return np.concatenate([np.array(self.drained(), "<u8"), *logs])

    def count_lost(self, got: np.ndarray) -> int:
        """How many items whose put returned did not come. What came was put by somebody, or under way when it died."""
        lost = known = 0
        for role in self.putting:
            for worker, log in self.logs(role):
                mine = got[got >> WORKER_SHIFT == worker] & ((1 << WORKER_SHIFT) - 1)
                done, trying = log.words[Log.DONE], log.words[Log.TRYING]
                assert (mine < (trying if worker in self.killed else done)).all(), "an item came that nobody put"
                lost += done - int((mine < done).sum())
                known += len(mine)
        assert known == len(got), "an item came of nobody"
        return lost

    def check_that_every_line_is_free(self) -> None:
        """Every line of the participant table can be taken, by a handle that does something."""
        handles = [self.cls.open("q") for _ in range(PARTICIPANTS - 1)]
        for handle in handles:
            self.join(handle)
        assert self.q.stats().participants == PARTICIPANTS
        for handle in handles:
            handle.close()

    def join(self, handle: Any) -> None:
        assert handle.try_get() is None

    def check_stalls(self, scheduler_seconds: float, is_long: bool) -> None:
        limit = (
            LIMIT_SECONDS["long" if is_long else "short"]
            + self.turns["one" if self.load.batch == 1 else "batch"] * scheduler_seconds
        )
        assert self.longest_seconds() < limit, "somebody living was kept waiting"


def state_of(pid: int) -> Any:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""
