"""The main job, live: producers put ticks into a queue, which are archived, and of which candles are made.

::

    4 producers ──► EventQueue "ticks" ──► Spark, or a recorder ──► Parquet archive
                                     └───► Spark, or numpy ───────► EventQueue "candles" ──► shown live

On the way a producer and a consumer are killed, as ``kill -9`` does it, and others go on in their place. At the end
every tick is accounted for, by symbol: what was put, what is in the archive, what is in the candles.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.live import Live

from queueduct import EventQueue
from queueduct.demo.candles import CANDLE
from queueduct.demo.check import Account, settle
from queueduct.demo.consumers import Accident, Consumers
from queueduct.demo.display import Display, report
from queueduct.demo.page import page
from queueduct.demo.plot import can_plot, draw_plot
from queueduct.demo.ticks import TICK, Producers
from queueduct.spark.ending import Interrupts, at_the_end, ending_with_all, noted_interrupts

__all__ = ["Demonstration", "queues", "run"]

QUEUE_BYTES = 64 << 20
OPENING_SECONDS = 60.0
CLOSING_SECONDS = 120.0


def run(
    seconds: float, rate: float, out: Path, console: Console, *, on_spark: bool = True, port: int | None
) -> Account:
    """Runs for ``seconds`` at about ``rate`` ticks a second. All its files go to ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    for part in ("archive", "state"):
        shutil.rmtree(out / part, ignore_errors=True)
    with queues() as (ticks, candles), page(port) as address, contextlib.ExitStack() as held:
        console.print(f"live page: {address}", highlight=False, soft_wrap=True)
        consumers: Consumers
        if on_spark:
            from queueduct.demo.on_spark import SETTINGS, SparkConsumers
            from queueduct.spark.pipelines.runner import started_spark

            spark = held.enter_context(started_spark("local[2]", console, **SETTINGS))
            consumers = SparkConsumers(spark, ticks, str(candles.name), out)
        else:
            from queueduct.demo.without_spark import PlainConsumers

            consumers = PlainConsumers(ticks, candles, out / "archive")
        demonstration = Demonstration(consumers, ticks, candles, out, console, address)
        with ending_with_all(demonstration.interrupted):
            account = demonstration.run(seconds, rate)
    (out / "summary.json").write_text(json.dumps(account.as_dict(), indent=2) + "\n")
    is_plotted = can_plot()
    if is_plotted:
        with console.status("drawing the plot"):
            draw_plot(account, out / "plot.png")
    report(account, out, console, way="Spark" if on_spark else "a recorder", is_plotted=is_plotted)
    return account


@contextlib.contextmanager
def queues() -> Iterator[tuple[EventQueue, EventQueue]]:
    """The queue of ticks and the queue of candles, which are removed at the end, also by a signal."""
    name = f"demo-{os.getpid()}"

    def remove() -> None:
        for queue in made:
            queue.unlink(missing_ok=True)

    made: list[EventQueue] = []
    with at_the_end(remove), contextlib.ExitStack() as held:
        made.append(held.enter_context(EventQueue.create(f"{name}-ticks", item=TICK, max_bytes=QUEUE_BYTES)))
        made.append(held.enter_context(EventQueue.create(f"{name}-candles", item=CANDLE)))  # as the aggregate would
        yield made[0], made[1]


class Demonstration:
    def __init__(
        self,
        consumers: Consumers,
        ticks: EventQueue,
        candles: EventQueue,
        out: Path,
        console: Console,
        address: str = "",
    ) -> None:
        self.consumers = consumers
        self.ticks = ticks
        self.candles = candles
        self.out = out
        self.console = console
        self.address = address
        self.interrupted = Interrupts()
        self.killed: list[tuple[float, str]] = []

    def run(self, seconds: float, rate: float) -> Account:
        producers = Producers(self.ticks, rate)
        with self.candles.subscribe(start="earliest") as candles:
            try:
                with self.console.status("starting two consumers: the archive and the candles"):
                    self.consumers.start()
                with self.console.status("they do their first batches, which take longest"):
                    producers.start()
                    self.wait(producers, self.consumers.is_warm, OPENING_SECONDS)
                display = Display(candles, producers, self.consumers, self.address, seconds)
                opened = time.time()
                self.show(display, producers, seconds, opened)
                producers.stop()
                closed = time.time()
                with self.console.status("the producers have ended: the consumers do the rest"):
                    self.ticks.shutdown()
                    self.wait(producers, self.consumers.is_done, CLOSING_SECONDS)
                    display.take_candles()
            finally:
                producers.end()
                self.consumers.stop()
        with self.console.status("accounting for every tick"):
            taken = np.concatenate(display.taken) if display.taken else None
            account = settle(self.out / "archive", producers.counts, taken, opened, closed)
            account.killed = [(round(at - opened, 3), name) for at, name in self.killed]
            if self.ticks.end != producers.total:
                account.problems.append(f"{producers.total:,} ticks were put, and {self.ticks.end:,} are in the queue")
            return account

    def show(self, display: Display, producers: Producers, seconds: float, opened: float) -> None:
        """Shows the flow, and kills processes on the way."""
        victim = producers.workers[-1]
        accidents = [Accident(f"the {victim.name}", victim.kill_and_restart), *self.consumers.accidents()]
        due = [(number * seconds / (len(accidents) + 1), each) for number, each in enumerate(accidents, 1)]
        live = Live(console=self.console, refresh_per_second=4, transient=True)
        with noted_interrupts(self.interrupted) as interrupted, live:
            while display.elapsed < seconds and not interrupted.is_set():
                live.update(display.draw(self.console))
                display.say(self.console)
                display.take_candles()
                self.consumers.check(0.2)
                producers.check()
                if due and display.elapsed >= due[0][0]:
                    self.kill(due.pop(0)[1], display, opened)
            while due and not interrupted.is_set():  # a busy machine had no time for these
                self.kill(due.pop(0)[1], display, opened)
        if interrupted.is_set():
            self.console.print("stopped early; the account follows")

    def kill(self, accident: Accident, display: Display, opened: float) -> None:
        accident.kill()
        self.killed.append((time.time(), accident.name))
        display.events.append(f"{time.time() - opened:.0f} s: kill -9 of {accident.name}")

    def wait(self, producers: Producers, is_over: Callable[[], bool], seconds: float) -> None:
        """Waits at most that long. Raises the error that has ended a process or a query."""
        deadline = time.monotonic() + seconds
        while not is_over() and time.monotonic() < deadline:
            self.consumers.check(0.05)
            producers.check()
