"""A log that everybody reads: what one more reader costs the writer, and what reading costs.

The writer's cost is the processor time that its thread has used for a put, so that it can be told on a machine with
fewer cores than readers. It writes in bursts, and each begins when all readers have read the last one: readers that
keep up are the steady state, and chunks are used again. Every reader verifies every item: what is written repeats
after so many bursts that one which is left out, doubled or moved is seen.

A reader is measured in the writer's process, beside a loop over a list of the very same batches, which were
written as freshly as the log's. Both add up all numbers of a batch.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from multiprocessing.synchronize import Barrier
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import items
from benchmarks.adapter import load
from benchmarks.case import Case, Contender, Goal, Plan, without_peers
from benchmarks.crew import Report, Work, fork, now, run_together
from benchmarks.flow import calls_of
from benchmarks.isolation import Bench, Sample, UnfaithfulError
from benchmarks.placement import placements, take_place

READERS = (8, 1)
BATCHES = (1, 256)
BURST_BYTES = 64 * 1024  # small beside the caches: what eight readers evict is not the queue's cost
MAX_BYTES = 1 << 20
CYCLE = 4  # bursts until the items repeat
WARM = CYCLE  # bursts, so that every item was touched since the fork
FIRST_ITEMS, MOST_ITEMS = 40_000, 2_000_000
PADDING = 16  # words, so that no two readers share a line

VIEW, GET_MANY, ARRAYS, FLOATS = "queueduct, view", "queueduct, get_many", "list of arrays", "list of lists of floats"
KIB = 1024
READ_BATCHES = (64 * KIB, 1024 * KIB)
PASS_BYTES = 8 << 20
FIRST_PASSES, MOST_PASSES = 2, 200


@dataclass(frozen=True)
class Broadcast:
    """One writer with so many readers."""

    readers: int
    batch: int
    placement: str

    @property
    def burst(self) -> int:
        """Return the calls of a burst."""
        return BURST_BYTES // items.ITEM_BYTES // self.batch


def measure_writer(setting: Broadcast, amount: int, bench: Bench) -> Sample:
    """Write about `amount` items; the value is the writer's processor time an item, in seconds."""
    queueduct = load("queueduct")
    step = setting.burst * setting.batch
    bursts = max(2, round(amount / step))
    built = items.build(0, 0, CYCLE * step)
    progress = fork.RawArray("Q", PADDING * setting.readers)
    with queueduct.EventQueue.create(bench.tag, item=bytes, max_bytes=MAX_BYTES):
        works: dict[str, Work] = {"producer": _Writer(setting, built, bench.tag, progress, bursts)}
        for index in range(setting.readers):
            works[f"consumer {index}"] = _Reader(setting, built, bench.tag, progress, bursts, index)
        reports = run_together(works)
    queueduct.unlink(bench.tag)
    writer = reports["producer"]
    return Sample(writer.result / (bursts * step), writer.ended - writer.started)


@dataclass(frozen=True)
class _Writer:
    setting: Broadcast
    built: list[bytes]
    name: str
    progress: Any
    bursts: int

    def __call__(self, barrier: Barrier) -> Report:
        setting = self.setting
        take_place(setting.placement, producing=True, index=0)
        queue = load("queueduct").open(self.name)
        put = queue.put if setting.batch == 1 else queue.put_many
        calls = calls_of(self.built, setting.batch)
        cycle = [calls[at : at + setting.burst] for at in range(0, len(calls), setting.burst)]
        barrier.wait()
        used, started = 0.0, 0.0
        for number in range(WARM + self.bursts):
            if number == WARM:
                used, started = 0.0, now()
            before = time.thread_time()
            deque(map(put, cycle[number % CYCLE]), maxlen=0)
            used += time.thread_time() - before
            self._wait_for_readers((number + 1) * setting.burst * setting.batch)
        return Report(started, now(), used)

    def _wait_for_readers(self, sent: int) -> None:
        while min(self.progress[::PADDING]) < sent:
            os.sched_yield()  # awake: what a sleep leaves behind, cold caches, is not the queue's


@dataclass(frozen=True)
class _Reader:
    setting: Broadcast
    built: list[bytes]
    name: str
    progress: Any
    bursts: int
    index: int

    def __call__(self, barrier: Barrier) -> Report:
        take_place(self.setting.placement, producing=False, index=self.index)
        get_many = load("queueduct").open(self.name).subscribe().get_many
        cycle = len(self.built)
        written = b"".join(self.built)  # one writer: all readers see its items in its order
        expected = (WARM + self.bursts) * self.setting.burst * self.setting.batch
        received = 0
        barrier.wait()
        started = now()
        while received < expected:
            at = received % cycle
            batch = get_many(min(4096, cycle - at))
            if b"".join(batch) != written[at * items.ITEM_BYTES : (at + len(batch)) * items.ITEM_BYTES]:
                raise UnfaithfulError(f"reader {self.index} did not see what was written: {items.keys_in(batch)}")
            received += len(batch)
            self.progress[PADDING * self.index] = received
        return Report(started, now())


@dataclass(frozen=True)
class Reading:
    """Batches of numbers, and by whom they are held."""

    holder: str
    batch_bytes: int

    def batches(self) -> list[NDArray[Any]]:
        each = self.batch_bytes // 8
        return [np.arange(first, first + each, dtype="f8") for first in range(0, PASS_BYTES // 8, each)]


def measure_reader(reading: Reading, amount: int, bench: Bench) -> Sample:
    """Go through all batches `amount` times; the value is numbers a second."""
    batches = reading.batches()
    expected = [float(batch.sum()) for batch in batches]
    one_pass = {VIEW: _log, GET_MANY: _log, ARRAYS: _arrays, FLOATS: _floats}[reading.holder]
    seconds = 0.0
    for number, (took, sums) in enumerate(one_pass(reading, batches, bench)):
        if sums != expected:
            raise UnfaithfulError("the numbers do not add up to what was written")
        seconds += took if number else 0.0  # the first one warms up
        if number == amount:
            break
    return Sample(amount * PASS_BYTES / 8 / seconds, seconds)


Pass = tuple[float, list[float]]


def _log(reading: Reading, batches: list[NDArray[Any]], bench: Bench) -> Iterator[Pass]:
    each = len(batches[0])
    queueduct = load("queueduct")
    queue = queueduct.EventQueue.create(bench.tag, item="f8", max_bytes=4 * PASS_BYTES, first_items=each)
    with queue, queue.subscribe() as reader:
        read = partial(_read_views if reading.holder == VIEW else _read_copies, reader, each, PASS_BYTES // 8)
        while True:
            for batch in batches:
                queue.put_many(batch)
            yield _timed(read)


def _read_views(reader: Any, each: int, left: int) -> list[float]:
    sums = []
    while left:
        with reader.view(each) as array:
            sums.append(np.add.reduce(array))
            left -= len(array)
    return sums


def _read_copies(reader: Any, each: int, left: int) -> list[float]:
    sums = []
    while left:
        array = reader.get_many(each)
        sums.append(np.add.reduce(array))
        left -= len(array)
    return sums


def _arrays(reading: Reading, batches: list[NDArray[Any]], bench: Bench) -> Iterator[Pass]:
    written = [np.zeros_like(batch) for batch in batches]
    while True:
        for there, here in zip(written, batches, strict=True):
            np.copyto(there, here)
        yield _timed(lambda: [np.add.reduce(batch) for batch in written])


def _floats(reading: Reading, batches: list[NDArray[Any]], bench: Bench) -> Iterator[Pass]:
    written = [batch.tolist() for batch in batches]
    while True:
        yield _timed(lambda: [sum(batch) for batch in written])


def _timed(read: Callable[[], list[float]]) -> Pass:
    started = now()
    sums = read()
    return now() - started, sums


def cases(plan: Plan) -> list[Case]:
    sizes = READ_BATCHES[-1:] if plan.quick else READ_BATCHES
    return [_writing(plan, batch) for batch in BATCHES] + [_reading(plan, size) for size in sizes]


def _writing(plan: Plan, batch: int) -> Case:
    placement = placements(quick=True)[0]
    names = {readers: f"queueduct, {readers} reader{'s' * (readers > 1)}" for readers in READERS}
    contenders = [
        Contender(
            name=names[readers],
            measure=measure_writer,
            setting=Broadcast(readers, batch, placement),
            amount=plan.first(FIRST_ITEMS),
            most=plan.most(MOST_ITEMS),
            ours=True,
            capacity=f"{MAX_BYTES // KIB} kB",
            note="processor time of the writer",
        )
        for readers in READERS
    ]
    return Case(
        name=f"broadcast-write-{batch}",
        title=f"what a put of a 64-byte item costs the writer of a log, {batch} a call",
        unit="s",
        placement=placement,
        contenders=without_peers(contenders, plan),
        goals=(Goal(1.15, names[1], "at most", mine=names[8]),),
        higher_is_better=False,
    )


def _reading(plan: Plan, batch_bytes: int) -> Case:
    contenders = [
        Contender(
            name=holder,
            measure=measure_reader,
            setting=Reading(holder, batch_bytes),
            amount=FIRST_PASSES,
            most=plan.most(MOST_PASSES),
            ours=holder in (VIEW, GET_MANY),
            reference=holder in (ARRAYS, FLOATS),
        )
        for holder in (VIEW, GET_MANY, ARRAYS, FLOATS)
        if not (plan.quick and holder == GET_MANY)
    ]
    return Case(
        name=f"broadcast-read-{batch_bytes // KIB}k",
        title=f"adding up the numbers of batches of {batch_bytes // KIB} kB, of a log and of a list",
        unit="items/s",
        contenders=without_peers(contenders, plan),
        goals=(Goal(1.0, ARRAYS), Goal(1.0, FLOATS)),
    )
