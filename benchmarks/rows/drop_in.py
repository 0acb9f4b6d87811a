"""The drop-in beside what it replaces: bytes and small objects from one process to another, one a call.

The consumer compares what has arrived with what was put, in order.
"""

import multiprocessing
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat, starmap
from multiprocessing.synchronize import Barrier
from typing import Any

from benchmarks.adapter import load
from benchmarks.case import Case, Contender, Goal, Plan
from benchmarks.crew import Report, now, run_together
from benchmarks.flow import prepare_memory
from benchmarks.isolation import Bench, Sample, UnfaithfulError
from benchmarks.placement import placements, take_place

CAPACITY = 1024
FIRST_ITEMS, MOST_ITEMS = 2_000, 1_000_000
STANDARD = "multiprocessing.Queue"


def bytes_of(number: int) -> bytes:
    return b"%064d" % number


def object_of(number: int) -> tuple[int, str, float]:
    return number, "job", number / 2


ITEMS: dict[str, Callable[[int], Any]] = {"bytes": bytes_of, "objects": object_of}


@dataclass(frozen=True)
class Setting:
    ours: bool
    items: str
    placement: str


def measure(setting: Setting, amount: int, bench: Bench) -> Sample:
    """One producer, one consumer."""
    maker = load("queueduct.multiprocessing") if setting.ours else multiprocessing.get_context("fork")
    queue = maker.Queue(CAPACITY)
    item_of = ITEMS[setting.items]

    # In each process anew: to use an object that was made before the fork copies its page.
    def warming() -> list[Any]:
        return [item_of(number) for number in range(2 * CAPACITY)]

    def timed() -> list[Any]:
        return [item_of(number) for number in range(amount)]

    def produce(barrier: Barrier) -> Report:
        take_place(setting.placement, producing=True, index=0)
        first, built = warming(), timed()
        barrier.wait()
        deque(map(queue.put, first), maxlen=0)
        barrier.wait()
        started = now()
        deque(map(queue.put, built), maxlen=0)
        return Report(started, now())

    def consume(barrier: Barrier) -> Report:
        take_place(setting.placement, producing=False, index=0)
        anchors = prepare_memory(2 * amount)
        barrier.wait()
        warm = list(starmap(queue.get, repeat((), 2 * CAPACITY)))
        barrier.wait()
        started = now()
        arrived = list(starmap(queue.get, repeat((), amount)))
        ended = now()
        del anchors
        return Report(started, ended, warm == warming() and arrived == timed())

    reports = run_together({"producer": produce, "consumer": consume})
    if not reports["consumer"].result:
        raise UnfaithfulError("items were lost, changed or out of order")
    seconds = reports["consumer"].ended - min(report.started for report in reports.values())
    return Sample(value=amount / seconds, seconds=seconds)


def contender(plan: Plan, setting: Setting) -> Contender:
    return Contender(
        name="queueduct.multiprocessing.Queue" if setting.ours else STANDARD,
        measure=measure,
        setting=setting,
        amount=plan.first(FIRST_ITEMS),
        most=plan.most(MOST_ITEMS),
        ours=setting.ours,
        capacity=f"{CAPACITY} items (maxsize)",
    )


def cases(plan: Plan) -> list[Case]:
    found = []
    for items, wanted in (("bytes", 30.0), ("objects", 10.0)):
        for placement in placements(quick=plan.quick):
            both = [Setting(ours=True, items=items, placement=placement)]
            if plan.peers:
                both.append(Setting(ours=False, items=items, placement=placement))
            what = "64 bytes" if items == "bytes" else "a tuple of an int, a str and a float"
            found.append(
                Case(
                    name=f"drop-in-{items}",
                    title=f"the drop-in: {what} between processes, one a call, 1P1C",
                    unit="items/s",
                    placement=placement,
                    contenders=tuple(contender(plan, setting) for setting in both),
                    goals=(Goal(wanted, STANDARD),),
                )
            )
    return found
