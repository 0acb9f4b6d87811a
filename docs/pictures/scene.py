"""A scene for screenshots of ``queueduct top`` and the page: real queues with real producers and consumers.

python -m docs.pictures.scene DIRECTORY [SECONDS]     runs until it is killed, or for so many seconds
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np

import queueduct

TICK = np.dtype([("sym", "S8"), ("px", "f8"), ("ts", "M8[us]")])
FRAME = np.dtype(("u1", (120, 160)))


def make(directory: Path) -> None:
    queueduct.EventQueue.create("ticks", item=TICK, max_bytes=64 << 20, on_full="drop_slowest", directory=directory)
    queueduct.EventQueue.create("orders", item=TICK, max_bytes=8 << 20, directory=directory)
    queueduct.BoundedQueue.create("jobs", 256, directory=directory)
    queueduct.GrowingQueue.create("bursts", max_bytes=16 << 20, slot_bytes=64, directory=directory)
    queueduct.OverwritingQueue.create("quotes", 1024, item="f8", directory=directory)
    queueduct.SlotQueue.create("camera", 8, item=FRAME, directory=directory)
    with queueduct.BoundedQueue.create("jobs.dead", 64, directory=directory) as dead:
        dead.put_many([b"no such file: a.png", b"time is up: b.png"])
        dead.shutdown()


def paced(seconds: float, work: Callable[[], object]) -> None:
    """Calls work again and again, once in so many seconds."""
    due = time.monotonic()
    while True:
        work()
        due = max(due + seconds, time.monotonic() - seconds)
        time.sleep(max(0.0, due - time.monotonic()))


def put_ticks(directory: Path, name: str, each_time: int, seconds: float) -> None:
    with queueduct.open(name, directory=directory) as queue:
        rows = np.zeros(each_time, TICK)
        rows["sym"] = b"ACME"
        paced(seconds, lambda: queue.put_many(rows, block=False))


def read_log(directory: Path, name: str, reader: str | None, batch: int, seconds: float) -> None:
    with queueduct.EventQueue.open(name, directory=directory) as queue, queue.subscribe(reader) as mine:

        def read() -> None:
            with contextlib.suppress(queueduct.Empty):
                mine.get_many(batch, block=False)
            if reader is not None:
                mine.commit()

        paced(seconds, read)


def stall(directory: Path, name: str) -> None:
    with queueduct.EventQueue.open(name, directory=directory) as queue, queue.subscribe("lake") as mine:
        mine.get_many(1)
        mine.commit()
        time.sleep(1e6)


def put_jobs(directory: Path) -> None:
    with queueduct.open("jobs", directory=directory) as queue:
        number = 0

        def put() -> None:
            nonlocal number
            number += 1
            with contextlib.suppress(queueduct.Full):
                queue.put(b"resize %d.png" % number, timeout=0.5)

        paced(0.004, put)


def work_on_jobs(directory: Path) -> None:
    with queueduct.BoundedQueue.open("jobs", directory=directory) as queue:
        while True:
            with queue.lease(4):
                time.sleep(0.05)


def burst(directory: Path) -> None:
    with queueduct.GrowingQueue.open("bursts", directory=directory) as queue:
        while True:
            queue.put_many([bytes(64)] * 20000)
            for _ in range(40):
                queue.get_many(500)
                time.sleep(0.1)


def put_quotes(directory: Path) -> None:
    with queueduct.open("quotes", directory=directory) as queue:
        paced(0.01, lambda: queue.put_many(np.ones(200)))


def film(directory: Path) -> None:
    with queueduct.SlotQueue.open("camera", directory=directory) as queue:

        def shoot() -> None:
            with contextlib.suppress(queueduct.Full), queue.loan(timeout=0.5) as slot:
                slot.array[...] = 7

        paced(1 / 30, shoot)


def see(directory: Path) -> None:
    with queueduct.SlotQueue.open("camera", directory=directory) as queue:
        while True:
            with queue.take():
                time.sleep(0.025)


WORK: tuple[tuple[Callable[..., None], tuple[object, ...]], ...] = (
    (put_ticks, ("ticks", 500, 0.02)),
    (put_ticks, ("ticks", 200, 0.02)),
    (put_ticks, ("orders", 5, 0.05)),
    (read_log, ("ticks", "dashboard", 5000, 0.05)),
    (read_log, ("ticks", None, 5000, 0.02)),
    (read_log, ("ticks", "risk", 1200, 0.05)),
    (read_log, ("orders", "ledger", 100, 0.05)),
    (stall, ("orders",)),
    (put_jobs, ()),
    (work_on_jobs, ()),
    (work_on_jobs, ()),
    (work_on_jobs, ()),
    (burst, ()),
    (put_quotes, ()),
    (film, ()),
    (see, ()),
)


def main() -> None:
    directory = Path(sys.argv[1])
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 1e9
    directory.mkdir(parents=True, exist_ok=True)
    make(directory)
    with queueduct.EventQueue.open("orders", directory=directory) as orders:
        orders.subscribe("backup").close()
    context = multiprocessing.get_context("fork")
    crew: list[BaseProcess] = [
        context.Process(target=work, args=(directory, *arguments), daemon=True) for work, arguments in WORK
    ]
    for process in crew:
        process.start()
    until = time.monotonic() + seconds
    victim = next(number for number, (work, _) in enumerate(WORK) if work is work_on_jobs)
    try:
        while time.monotonic() < until:
            time.sleep(min(6.0, max(0.0, until - time.monotonic())))
            crew[victim].kill()  # one worker is killed again and again, and another takes its place
            crew[victim].join()
            crew[victim] = context.Process(target=work_on_jobs, args=(directory,), daemon=True)
            crew[victim].start()
    finally:
        for process in crew:
            process.kill()
        for process in crew:
            process.join()


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # all that it has started ends with it
    with contextlib.suppress(KeyboardInterrupt):
        main()
