"""A growing queue in a steady flow: what a put and a get cost beside a bounded queue, and beside SimpleQueue."""

import os
import queue
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from benchmarks.adapter import load
from benchmarks.case import Case, Contender, Goal, Plan
from benchmarks.isolation import Bench, Sample

ROUNDS = 9
PAIRS = 200_000
ITEM = b"x" * 64


def pairs_ns(shared: Any, pairs: int) -> float:
    """What a put and a get cost in one thread."""
    put, get = shared.put, shared.get
    started = time.perf_counter_ns()
    for _ in range(pairs):
        put(ITEM)
        get()
    return (time.perf_counter_ns() - started) / pairs


def ratio(ours: Any, theirs: Any, rounds: int, pairs: int) -> Sample:
    """Ours over theirs, taken in turns."""
    started = time.perf_counter()
    costs = [(pairs_ns(ours, pairs), pairs_ns(theirs, pairs)) for _ in range(rounds)]
    found = [mine / other for mine, other in costs]
    details = {"ours": median(mine for mine, _ in costs), "theirs": median(other for _, other in costs)}
    return Sample(median(found), time.perf_counter() - started, details)


def measure_bytes(setting: int, amount: int, bench: Bench) -> Sample:
    """Named queues of bytes."""
    queueduct = load("queueduct")
    tag = f"steady-{os.getpid()}"
    with queueduct.GrowingQueue.create(f"{tag}-g") as ours:
        slots = ours.stats().level_slots[0]  # where it is in a steady flow: as much room for both
        theirs = queueduct.BoundedQueue.create(f"{tag}-b", capacity=slots)
        try:
            return ratio(ours, theirs, setting, amount)
        finally:
            ours.unlink()
            theirs.unlink()
            theirs.close()


def measure_objects(setting: int, amount: int, bench: Bench) -> Sample:
    """Objects within a process."""
    return ratio(load("queueduct").GrowingQueue(), queue.SimpleQueue(), setting, amount)


def case(
    plan: Plan, name: str, title: str, measure: Callable[[int, int, Bench], Sample], goals: tuple[Goal, ...]
) -> Case:
    contender = Contender(
        name="ours / theirs",
        measure=measure,
        setting=ROUNDS,
        amount=plan.first(PAIRS // 10),
        most=plan.most(PAIRS),
        ours=True,
        note=f"median of {ROUNDS} rounds in turns, one thread",
    )
    return Case(name=name, title=title, unit="x", contenders=(contender,), goals=goals, higher_is_better=False)


def cases(plan: Plan) -> list[Case]:
    return [
        case(
            plan,
            "growing-bytes",
            "a put and a get of 64 bytes, growing over bounded of as many slots",
            measure_bytes,
            (Goal(1.15, "", "at most"),),
        ),
        case(
            plan, "growing-objects", "a put and a get of an object, growing over queue.SimpleQueue", measure_objects, ()
        ),
    ]
