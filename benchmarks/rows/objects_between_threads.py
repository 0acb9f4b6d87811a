"""Python objects between the threads of one process: one a call, and 64 a call.

The loops here are plain `for` loops: a loop in C would never offer the interpreter lock
to the other threads, and an unbounded queue would be filled to the end before it is read.
"""

import gc
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

from benchmarks import items
from benchmarks.adapter import load
from benchmarks.case import Case, Contender, Goal, Plan, without_peers
from benchmarks.crew import now
from benchmarks.isolation import Bench, Sample, UnfaithfulError
from benchmarks.ours import NAME
from benchmarks.placement import UNPINNED, placements, take_place

CAPACITY = 65536  # SimpleQueue has no bound: a large one is the nearest to it
SMALL_CAPACITY = 1024  # shown as well: each time it is full or empty the interpreter lock changes hands
BATCH = 64
SMALL = f"queueduct, {SMALL_CAPACITY} slots"
SIMPLE_QUEUE = "queue.SimpleQueue"
QUEUE = "queue.Queue"
CAPACITIES = {
    NAME: f"{CAPACITY} objects",
    SMALL: f"{SMALL_CAPACITY} objects",
    SIMPLE_QUEUE: "none: it cannot be bounded",
    QUEUE: f"{CAPACITY} objects",
}
TOPOLOGIES = (1, 4)
MOST_OBJECTS = 1_000_000
FIRST_OBJECTS = 20_000

Pair = tuple[int, int]


@dataclass(frozen=True)
class Threads:
    """One queue between `each` producing and as many consuming threads."""

    queue: str
    each: int = 1
    batch: int = 1
    placement: str = UNPINNED

    def make(self) -> Any:
        if self.queue == NAME:
            return load("queueduct").BoundedQueue(CAPACITY)
        if self.queue == SMALL:
            return load("queueduct").BoundedQueue(SMALL_CAPACITY)
        return queue.SimpleQueue() if self.queue == SIMPLE_QUEUE else queue.Queue(CAPACITY)


def measure_threads(threads: Threads, amount: int, bench: Bench) -> Sample:
    """Pass about `amount` objects; the value is objects a second."""
    share = max(1, amount // threads.each // threads.batch) * threads.batch
    crew = _Crew(threads, share)
    gc.disable()
    consumers = crew.run()
    arrived = [items.keys_in_pairs(pairs) for _, _, pairs in consumers]
    found = items.faults(arrived, [share] * threads.each)
    if found:
        raise UnfaithfulError("; ".join(found))
    seconds = max(ended for _, ended, _ in consumers) - min(start for start, _, _ in consumers)
    return Sample(value=share * threads.each / seconds, seconds=seconds)


class _Crew:
    """The threads of one run; the first one that fails ends it."""

    def __init__(self, threads: Threads, share: int) -> None:
        self.threads = threads
        self.share = share
        self.shared = threads.make()
        self.barrier = threading.Barrier(2 * threads.each)
        self.done: queue.SimpleQueue[tuple[float, float, list[Pair]] | Exception] = queue.SimpleQueue()

    def run(self) -> list[tuple[float, float, list[Pair]]]:
        """Return start, end and objects of each consumer; a producer's list is empty."""
        works = (self._produce, self._consume)
        for index in range(self.threads.each):
            for work in works:
                threading.Thread(target=self._guarded, args=(work, index), daemon=True).start()
        reports = []
        for _ in range(len(works) * self.threads.each):
            report = self.done.get()
            if isinstance(report, Exception):
                raise report
            reports.append(report)
        started = min(start for start, _, _ in reports)
        return [(started, end, pairs) for _, end, pairs in reports if pairs]

    def _guarded(self, work: Callable[[int], tuple[float, float, list[Pair]]], index: int) -> None:
        try:
            self.done.put(work(index))
        except Exception as error:
            self.done.put(error)

    def _produce(self, index: int) -> tuple[float, float, list[Pair]]:
        take_place(self.threads.placement, producing=True, index=index)
        batch = self.threads.batch
        arguments: list[Any] = [(index, number) for number in range(self.share)]
        put = self.shared.put
        if batch > 1:
            arguments = [arguments[at : at + batch] for at in range(0, self.share, batch)]
            put = self.shared.put_many
        self.barrier.wait()
        started = now()
        for argument in arguments:
            put(argument)
        return started, now(), []

    def _consume(self, index: int) -> tuple[float, float, list[Pair]]:
        take_place(self.threads.placement, producing=False, index=index)
        receive = _get_each if self.threads.batch == 1 else _get_batches
        self.barrier.wait()
        started = now()
        received = receive(self.shared, self.share)
        ended = now()
        if self.threads.batch > 1:
            received = list(chain.from_iterable(received))
        return started, ended, received


def _get_each(shared: Any, count: int) -> list[Any]:
    get = shared.get
    return [get() for _ in repeat(None, count)]


def _get_batches(shared: Any, count: int) -> list[Any]:
    get_many = shared.get_many
    batches = []
    while count:
        batch = get_many(min(BATCH, count))
        batches.append(batch)
        count -= len(batch)
    return batches


def cases(plan: Plan) -> list[Case]:
    found = []
    for each in TOPOLOGIES:
        for placement in placements(quick=plan.quick):
            found.append(_single(plan, each, placement))
            found.append(_batch(plan, each, placement))
    return sorted(found, key=lambda case: "batch" in case.name)


def _single(plan: Plan, each: int, placement: str) -> Case:
    contenders = [
        _contender(plan, Threads(name, each, 1, placement))
        for name in (NAME, SMALL, SIMPLE_QUEUE, QUEUE)
        if not (plan.quick and name == SMALL)
    ]
    return Case(
        name=f"objects-{each}p{each}c",
        title=f"Python objects between threads, one a call, {each}P{each}C",
        unit="items/s",
        placement=placement,
        contenders=without_peers(contenders, plan),
        goals=(Goal(1.2, SIMPLE_QUEUE),),
    )


def _batch(plan: Plan, each: int, placement: str) -> Case:
    contenders = [
        _contender(plan, Threads(NAME, each, BATCH, placement)),
        _contender(plan, Threads(SIMPLE_QUEUE, each, 1, placement), note="one a call"),
    ]
    if not plan.quick:
        contenders.append(_contender(plan, Threads(SMALL, each, BATCH, placement)))
    return Case(
        name=f"objects-batch-{each}p{each}c",
        title=f"Python objects between threads, {BATCH} a call, {each}P{each}C",
        unit="items/s",
        placement=placement,
        contenders=without_peers(contenders, plan),
        goals=(Goal(6.0, SIMPLE_QUEUE),),
    )


def _contender(plan: Plan, threads: Threads, note: str = "") -> Contender:
    return Contender(
        name=threads.queue,
        measure=measure_threads,
        setting=threads,
        amount=plan.first(FIRST_OBJECTS),
        most=plan.most(MOST_OBJECTS),
        ours=threads.queue in (NAME, SMALL),
        capacity=CAPACITIES[threads.queue],
        note=note,
    )
