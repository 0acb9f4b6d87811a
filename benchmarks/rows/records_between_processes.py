"""numpy records between two processes in large batches, beside the memcpy of the same run.

A ring and a log with one reader stand beside each other.
The reference copies batches of the same size from a source to a destination that are both
much larger than the second-level cache, on one core. What the queue does for the same bytes is
two such copies, one in each process, and all of its own work.

Each run has two passes through the same queue: one in which every byte is compared,
and then the timed one, in which the last record and the length of every batch are kept
and compared afterwards.
"""

from dataclasses import dataclass, replace
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.adapter import load
from benchmarks.case import Case, Contender, Goal, Plan, without_peers
from benchmarks.crew import Report, now, run_together
from benchmarks.isolation import Bench, Sample, UnfaithfulError
from benchmarks.ours import EVENTS, NAME
from benchmarks.placement import UNPINNED, placements, take_place

MEMCPY = "memcpy (np.copyto)"
KIB = 1024
BATCHES = (64 * KIB, 256 * KIB, 1024 * KIB)
DTYPES: dict[str, np.dtype[Any]] = {
    "24-byte": np.dtype([("sequence", "u8"), ("price", "f8"), ("stamp", "M8[us]")]),
    "64-byte": np.dtype([("sequence", "u8"), ("values", "f8", (7,))]),
    "f8": np.dtype("f8"),
}
FIRST_PASSES = 4
MOST_PASSES = 2000


def second_level_cache_bytes() -> int:
    """Return the size of the cache that the buffers must exceed; 1 MiB where nobody says."""
    try:
        text = Path("/sys/devices/system/cpu/cpu0/cache/index2/size").read_text().strip()
        return int(text.removesuffix("K")) * KIB
    except (OSError, ValueError):
        return 1024 * KIB


def source_bytes() -> int:
    return max(8 * 1024 * KIB, 8 * second_level_cache_bytes())


@dataclass(frozen=True)
class Records:
    """Records of one dtype in batches of one size."""

    dtype: str
    batch_bytes: int
    placement: str = UNPINNED
    queue: str = NAME

    @property
    def batch(self) -> int:
        """Return the records in a batch."""
        return self.batch_bytes // DTYPES[self.dtype].itemsize

    @property
    def capacity(self) -> int:
        """Return the power of two that holds at least two batches."""
        return 1 << (2 * self.batch - 1).bit_length()

    @property
    def max_bytes(self) -> int:
        """Return a log's limit: chunks of two batches, and eight of them."""
        return 16 * self.batch * DTYPES[self.dtype].itemsize

    def create(self, name: str) -> Any:
        queueduct, item = load("queueduct"), DTYPES[self.dtype]
        if self.queue == EVENTS:
            return queueduct.EventQueue.create(name, item=item, max_bytes=self.max_bytes, first_items=self.batch)
        return queueduct.BoundedQueue.create(name, capacity=self.capacity, item=item)

    def source(self) -> NDArray[Any]:
        """Return records that are all different: whole batches, together larger than the cache."""
        count = -(-source_bytes() // self.batch_bytes) * self.batch
        numbers = np.arange(count)
        if self.dtype == "f8":
            return numbers.astype("f8")
        records: NDArray[Any] = np.zeros(count, dtype=DTYPES[self.dtype])
        records["sequence"] = numbers
        if self.dtype == "24-byte":
            records["price"] = numbers * 0.5
            records["stamp"] = numbers.astype("M8[us]")
        else:
            records["values"] = numbers[:, None] * np.arange(1.0, 8.0)
        return records


def measure_memcpy(records: Records, amount: int, bench: Bench) -> Sample:
    """Copy the source `amount` times, batch by batch; the value is bytes a second."""
    take_place(records.placement, producing=True, index=0)
    source = records.source().view(np.uint8)  # as bytes: numpy copies a struct field by field
    destination = np.zeros_like(source)
    step = records.batch * DTYPES[records.dtype].itemsize
    starts = range(0, len(source), step)
    pairs = [(destination[s : s + step], source[s : s + step]) for s in starts]
    started = now()
    for _ in range(amount):
        for there, here in pairs:
            np.copyto(there, here)
    seconds = now() - started
    if not np.array_equal(destination, source):
        raise UnfaithfulError("the copy differs from its source")
    return Sample(value=source.nbytes * amount / seconds, seconds=seconds)


def measure_records(records: Records, amount: int, bench: Bench) -> Sample:
    """Send the source `amount` times through a queue; the value is bytes a second."""
    queueduct = load("queueduct")
    with records.create(bench.tag):
        reports = run_together(
            {
                "producer": _Producer(records, amount, bench.tag),
                "consumer": _Consumer(records, amount, bench.tag),
            }
        )
    queueduct.unlink(bench.tag)
    seconds = reports["consumer"].ended - min(report.started for report in reports.values())
    calls = reports["consumer"].result
    total = records.source().nbytes * amount
    return Sample(total / seconds, seconds, {"batches received": calls})


@dataclass(frozen=True)
class _Producer:
    records: Records
    passes: int
    name: str

    def __call__(self, barrier: Barrier) -> Report:
        take_place(self.records.placement, producing=True, index=0)
        put_many = load("queueduct").open(self.name).put_many
        source = self.records.source()
        batch = self.records.batch
        batches = [source[at : at + batch] for at in range(0, len(source), batch)]
        barrier.wait()
        for records in batches:
            put_many(records)
        barrier.wait()
        started = now()
        for _ in range(self.passes):
            for records in batches:
                put_many(records)
        return Report(started, now())


@dataclass(frozen=True)
class _Consumer:
    records: Records
    passes: int
    name: str

    def __call__(self, barrier: Barrier) -> Report:
        take_place(self.records.placement, producing=False, index=0)
        queue = load("queueduct").open(self.name)
        get_many = (queue.subscribe() if self.records.queue == EVENTS else queue).get_many
        source = self.records.source()
        barrier.wait()
        self._compare_all(get_many, source)
        barrier.wait()
        started = now()
        lasts, lengths = self._receive(get_many, len(source) * self.passes)
        ended = now()
        numbers = np.cumsum(lengths) - 1
        expected = source[numbers % len(source)]
        if self.records.dtype != "f8":
            expected = expected["sequence"]
        if not np.array_equal(np.array(lasts), expected):
            raise UnfaithfulError("a batch does not end with the record that was sent there")
        return Report(started, ended, len(lengths))

    def _compare_all(self, get_many: Any, source: NDArray[Any]) -> None:
        at = 0
        while at < len(source):
            batch = get_many(min(self.records.batch, len(source) - at))
            if not np.array_equal(batch, source[at : at + len(batch)]):
                raise UnfaithfulError(f"records {at} to {at + len(batch)} differ from those sent")
            at += len(batch)

    def _receive(self, get_many: Any, remaining: int) -> tuple[list[Any], list[int]]:
        lasts: list[Any] = []
        lengths: list[int] = []
        most = self.records.batch
        plain = self.records.dtype == "f8"
        while remaining:
            batch = get_many(min(most, remaining))
            lasts.append(batch[-1] if plain else batch["sequence"][-1])
            lengths.append(len(batch))
            remaining -= len(batch)
        return lasts, lengths


def cases(plan: Plan) -> list[Case]:
    places = placements(quick=plan.quick)
    return [
        _case(plan, Records(dtype, batch_bytes, placement))
        for dtype in DTYPES
        for batch_bytes in BATCHES
        for placement in places
        if not plan.quick or (dtype == "f8") == (batch_bytes == BATCHES[-1])
    ]


def _case(plan: Plan, records: Records) -> Case:
    kib = records.batch_bytes // KIB
    goals = [Goal(0.3, MEMCPY)]
    contenders = [
        Contender(
            name=NAME,
            measure=measure_records,
            setting=records,
            amount=FIRST_PASSES,
            most=plan.most(MOST_PASSES),
            ours=True,
            capacity=f"{records.capacity} records",
            note=f"{records.capacity} slots",
        ),
        Contender(
            name=EVENTS,
            measure=measure_records,
            setting=replace(records, queue=EVENTS),
            amount=FIRST_PASSES,
            most=plan.most(MOST_PASSES),
            ours=True,
            capacity=f"{records.max_bytes // KIB} kB",
            note="one reader",
        ),
        Contender(
            name=MEMCPY,
            measure=measure_memcpy,
            setting=records,
            amount=FIRST_PASSES,
            most=plan.most(MOST_PASSES),
            reference=True,
            note=f"source and destination of {source_bytes() // KIB // KIB} MiB, one core",
        ),
    ]
    if plan.quick and records.batch_bytes == BATCHES[0]:
        contenders = [each for each in contenders if each.name != EVENTS]
    else:
        goals.append(Goal(0.3, MEMCPY, mine=EVENTS))
    return Case(
        name=f"records-{records.dtype}-{kib}k",
        title=f"{records.dtype} records, two processes, {kib} kB a call",
        unit="bytes/s",
        placement=records.placement,
        contenders=without_peers(contenders, plan),
        goals=tuple(goals),
    )
