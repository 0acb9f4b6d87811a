"""A question goes to another process and its echo comes back: how long the way is.

::

    asker ── there ──► echo
          ◄── back ───

With a pause before each question the echo has really gone to sleep, and the time is that
of a wake-up; without one both sides are running.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing.synchronize import Barrier
from typing import Any

import numpy as np

from benchmarks import items
from benchmarks.adapter import Adapter, Room, Sender
from benchmarks.crew import Report, now, run_together
from benchmarks.isolation import Bench, Sample, UnfaithfulError
from benchmarks.placement import UNPINNED, take_place
from benchmarks.standard import EventFd

WARM_UP = 200
PERCENTILES = {"p50": 50.0, "p99": 99.0, "p99.9": 99.9}


@dataclass(frozen=True)
class Echo:
    """Two queues of one kind, one each way, and the pause in seconds before each question."""

    adapter: type[Adapter]
    pause: float = 0.0
    placement: str = UNPINNED

    def questions(self, count: int) -> Sequence[Any]:
        """Return items to send; an eventfd carries a number instead."""
        if self.adapter is EventFd:
            return range(1, count + 1)
        return items.build(0, 0, count)


def measure_echo(echo: Echo, amount: int, bench: Bench) -> Sample:
    """Ask `amount` times; the value is the median round trip in seconds."""
    room = Room(tag=f"{bench.tag}t", directory=bench.directory / "there")
    there = echo.adapter(room)
    back = echo.adapter(replace(room, tag=f"{bench.tag}b", directory=bench.directory / "back"))
    for adapter in (there, back):
        adapter.room.directory.mkdir()
    try:
        reports = run_together(
            {
                "producer": _Asker(echo, there, back, amount),
                "consumer": _Echoer(echo, there, back, amount),
            }
        )
    finally:
        there.close()
        back.close()
    asker = reports["producer"]
    trips = np.array(asker.result)
    details = {name: float(np.percentile(trips, at)) for name, at in PERCENTILES.items()}
    return Sample(details["p50"], asker.ended - asker.started, details)


@dataclass(frozen=True)
class _Asker:
    echo: Echo
    there: Adapter
    back: Adapter
    amount: int

    def __call__(self, barrier: Barrier) -> Report:
        take_place(self.echo.placement, producing=True, index=0)
        put = self.there.sender(0).put
        get = self.back.receiver(0).get
        questions = self.echo.questions(WARM_UP + self.amount)
        barrier.wait()
        answers = [(put(question), get())[1] for question in questions[:WARM_UP]]
        barrier.wait()
        pause, sleep, clock = self.echo.pause, time.sleep, time.perf_counter
        trips: list[float] = []
        started = now()
        for question in questions[WARM_UP:]:
            if pause:
                sleep(pause)
            asked = clock()
            put(question)
            answer = get()
            trips.append(clock() - asked)
            answers.append(answer)
        ended = now()
        if answers != list(questions):
            raise UnfaithfulError("an answer is not the echo of its question")
        return Report(started, ended, trips)


@dataclass
class _Echoer:
    echo: Echo
    there: Adapter
    back: Adapter
    amount: int
    kept: Sender | None = None  # alive until the last answer was read

    def __call__(self, barrier: Barrier) -> Report:
        take_place(self.echo.placement, producing=False, index=0)
        get = self.there.receiver(0).get
        self.kept = self.back.sender(0)
        put = self.kept.put
        barrier.wait()
        for _ in range(WARM_UP):
            put(get())
        barrier.wait()
        started = now()
        for _ in range(self.amount):
            put(get())
        return Report(started, now())
