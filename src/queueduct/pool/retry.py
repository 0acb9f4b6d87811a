"""Jobs that failed: each waits in the queue ``retry`` until it is due, then it is ready, or dead.

The supervisor leases the entries and holds the leases while they wait, so they come back if its process dies. An entry
may come twice: a worker may die between its entry and the release of its job. The number of tries tells: only the
first entry that says "tried n times" counts.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from queueduct.errors import Empty
from queueduct.lease import Lease
from queueduct.pool.frames import Entry, Failure, encode_ready
from queueduct.pool.places import Place

__all__ = ["Retries"]

HELD_LIMIT = 400  # leases; each needs a participant line of the queue
LEASE_ITEMS = 256
DEAD_REMEMBERED = 65536
REASON_SECONDS = 1.0  # how long the owner of a dead worker has to say how it ended
ASK_SECONDS = 0.02


@dataclass
class Held:
    """A lease, and how many of its entries still wait."""

    lease: Lease
    left: int

    def settle(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.lease.release()


class Retries:
    """The failed jobs of all pools on a queue; only the leading supervisor has them."""

    def __init__(
        self,
        place: Place,
        retries: int,
        delay_of: Callable[[int], float],
        bury: Callable[[Entry, Failure], bool],
    ) -> None:
        self._place = place
        self._retries = retries
        self._delay_of = delay_of
        self._bury = bury  # returns false if there is no room for a dead letter just now
        self._waiting: list[tuple[float, int, Entry, Held]] = []
        self._to_bury: list[tuple[Entry, Failure, Held]] = []
        self._order = itertools.count()
        self._holds: list[Held] = []
        self._gathered: set[tuple[int, int]] = set()  # jobs and tries that are on their way back to their wait
        self._tries: dict[int, int] = {}  # of jobs that have failed and are not done
        self._dead: OrderedDict[int, None] = OrderedDict()
        self.failed = self.retried = self.dead_letters = 0

    def poll(self) -> None:
        """Takes what has failed, and hands out what is due."""
        self._bury_some()
        self._holds = [held for held in self._holds if held.left]
        while self._place.retry.qsize() and (len(self._holds) < HELD_LIMIT or self._gather()):
            try:
                lease = self._place.retry.lease(LEASE_ITEMS, False)
            except Empty:
                break
            held = Held(lease, len(lease))
            self._holds.append(held)
            for data in lease.items:
                self._take(Entry.decode(data), held)
        self._hand_out()

    def _gather(self) -> bool:
        """Puts what waits into the queue again, to hold it with few leases. Returns false if that frees too little."""
        if len(self._waiting) > HELD_LIMIT * LEASE_ITEMS // 2:
            return False
        data = [entry.encode() for _, _, entry, _ in self._waiting]
        if not data or self._place.retry.put_many(data, False) < len(data):
            return False  # what was put comes again, and was there before
        for _, _, entry, held in self._waiting:
            self._gathered.add((entry.job, entry.tries))
            held.settle()
        self._waiting.clear()
        self._holds = [held for held in self._holds if held.left]
        return len(self._holds) < HELD_LIMIT

    def _take(self, entry: Entry, held: Held) -> None:
        if (entry.job, entry.tries) in self._gathered:
            self._gathered.discard((entry.job, entry.tries))
            self._decide(entry, held)
            return
        if entry.tries <= self._tries.get(entry.job, 0) or entry.job in self._dead:
            held.settle()  # it came before
            return
        self._tries[entry.job] = entry.tries
        self.failed += 1
        self._decide(entry, held)

    def _decide(self, entry: Entry, held: Held) -> None:
        failure = self._failure_of(entry)
        if failure is None:
            self._wait(time.time() + ASK_SECONDS, entry, held)
        elif entry.tries >= self._retries:
            self._to_bury.append((entry, failure, held))
            self._bury_some()
        else:
            delay = self._delay_of(entry.tries)
            due = min(entry.due, time.time()) + delay  # the clock may have been set back
            self._wait(due, entry._replace(failure=(*failure,)), held)

    def _failure_of(self, entry: Entry) -> Failure | None:
        """Returns why it failed, or None while it is not known how its worker ended."""
        if entry.failure is not None:
            return Failure(*entry.failure)
        reason = self._place.lines.how_ended(*entry.died)
        if reason is None and time.time() - entry.due < REASON_SECONDS:
            return None
        return Failure("WorkerDied", reason or "worker died", "", None)

    def _wait(self, due: float, entry: Entry, held: Held) -> None:
        heapq.heappush(self._waiting, (due, next(self._order), entry, held))

    def _hand_out(self) -> None:
        now = time.time()
        while self._waiting and self._waiting[0][0] <= now:
            _, _, entry, held = self._waiting[0]
            if entry.failure is None:
                heapq.heappop(self._waiting)
                self._decide(entry, held)
                continue
            if entry.job in self._tries:
                self._place.ready.put(encode_ready(entry.job, entry.tries, entry.payload))  # before it is released
                self.retried += 1
            heapq.heappop(self._waiting)
            held.settle()

    def _bury_some(self) -> None:
        while self._to_bury:
            entry, failure, held = self._to_bury[0]
            if not self._bury(entry, failure):
                return
            del self._to_bury[0]
            self._tries.pop(entry.job, None)
            self._dead[entry.job] = None
            if len(self._dead) > DEAD_REMEMBERED:
                self._dead.popitem(last=False)
            self.dead_letters += 1
            held.settle()

    def is_failing(self, job: int) -> bool:
        """Returns true if the job has failed, and neither succeeded nor died since."""
        return job in self._tries

    def is_any_failing(self) -> bool:
        return bool(self._tries)

    def note_done(self, job: int) -> None:
        self._tries.pop(job, None)

    def count(self) -> int:
        """Returns how many jobs wait for their next try or for room among the dead letters."""
        return len(self._waiting) + len(self._to_bury)

    def seconds_left(self) -> float:
        """Returns in how many seconds the next job is due."""
        return max(0.0, self._waiting[0][0] - time.time()) if self._waiting else 3600.0

    def close(self) -> None:
        """Leaves what waits to the next pool. What was handed out already must not come back with its lease."""
        for entry in [item[2] for item in self._waiting] + [item[0] for item in self._to_bury]:
            self._place.retry.put(entry.encode(), False)
        for held in self._holds:
            if held.left:
                held.lease.release()
        self._waiting.clear()
        self._to_bury.clear()
        self._holds.clear()
