"""Items flow from producers to consumers, each in its own process: how many arrive a second.

The loops around `put` and `get` run in C (`map`, `starmap`), so that a fast queue is not measured
by the speed of a Python loop; every queue gets the same loops. Items are made before the start and
verified after the end.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, repeat, starmap
from multiprocessing.synchronize import Barrier
from typing import Any

from benchmarks import items
from benchmarks.adapter import Adapter, Receiver, Room, Sender
from benchmarks.crew import Report, Work, fork, now, run_together
from benchmarks.isolation import Bench, Sample, UnfaithfulError
from benchmarks.placement import UNPINNED, take_place

# One object in this many stays alive, so that the allocator keeps the memory of the others.
_ANCHOR_EVERY = 4096


@dataclass(frozen=True)
class Flow:
    """One queue in one topology; `batch` items a call."""

    adapter: type[Adapter]
    producers: int = 1
    consumers: int = 1
    batch: int = 1
    placement: str = UNPINNED
    capacity: int = 1024

    def shares(self, amount: int) -> tuple[int, int]:
        """Return the items of one producer and of one consumer, near to `amount` in all."""
        step = self.consumers * self.batch
        each = max(step, round(amount / self.producers / step) * step)
        return each, each * self.producers // self.consumers


def measure_flow(flow: Flow, amount: int, bench: Bench) -> Sample:
    """Send about `amount` items through the queue; the value is items a second."""
    room = Room(
        tag=bench.tag,
        directory=bench.directory,
        capacity=flow.capacity,
        item_bytes=items.ITEM_BYTES,
        producers=flow.producers,
        consumers=flow.consumers,
    )
    adapter = flow.adapter(room)
    try:
        works: dict[str, Work] = {}
        for index in range(flow.producers):
            works[f"producer {index}"] = _Producer(adapter, flow, index, amount)
        everything_arrived = fork.Barrier(flow.consumers)
        for index in range(flow.consumers):
            works[f"consumer {index}"] = _Consumer(adapter, flow, index, amount, everything_arrived)
        reports = run_together(works)
    finally:
        adapter.close()
    warm, _ = flow.shares(2 * flow.capacity)
    sent, _ = flow.shares(amount)
    consumers = [report for name, report in reports.items() if name.startswith("consumer")]
    found = items.faults([report.result for report in consumers], [warm + sent] * flow.producers)
    if found:
        raise UnfaithfulError("; ".join(found))
    seconds = max(r.ended for r in consumers) - min(r.started for r in reports.values())
    return Sample(value=sent * flow.producers / seconds, seconds=seconds)


@dataclass
class _Producer:
    adapter: Adapter
    flow: Flow
    index: int
    amount: int
    kept: Sender | None = None  # alive until all are done: unsent items may live in it

    def __call__(self, barrier: Barrier) -> Report:
        flow = self.flow
        take_place(flow.placement, producing=True, index=self.index)
        warm, _ = flow.shares(2 * flow.capacity)
        count, _ = flow.shares(self.amount)
        warming = items.build(self.index, 0, warm)
        timed = items.build(self.index, warm, count)
        self.kept = sender = self.adapter.sender(self.index)
        send = send_each if flow.batch == 1 else send_batches
        warm_calls = calls_of(warming, flow.batch)
        timed_calls = calls_of(timed, flow.batch)
        barrier.wait()
        send(sender, warm_calls)
        barrier.wait()
        started = now()
        send(sender, timed_calls)
        ended = now()
        sender.finish()
        return Report(started, ended)


@dataclass(frozen=True)
class _Consumer:
    adapter: Adapter
    flow: Flow
    index: int
    amount: int
    everything_arrived: Barrier  # of the consumers: one that checks its items takes a core from those still measured

    def __call__(self, barrier: Barrier) -> Report:
        flow = self.flow
        take_place(flow.placement, producing=False, index=self.index)
        _, warm = flow.shares(2 * flow.capacity)
        _, count = flow.shares(self.amount)
        receiver = self.adapter.receiver(self.index)
        receive = receive_each if flow.batch == 1 else receive_batches
        anchors = prepare_memory(count)
        barrier.wait()
        warming = receive(receiver, warm, flow.batch)
        barrier.wait()
        started = now()
        timed = receive(receiver, count, flow.batch)
        ended = now()
        self.everything_arrived.wait()
        del anchors
        return Report(started, ended, items.keys_in([*flat(warming), *flat(timed)]))


def calls_of(built: list[bytes], batch: int) -> Sequence[Any]:
    """Return the argument of each call: an item, or a list of them."""
    if batch == 1:
        return built
    return [built[at : at + batch] for at in range(0, len(built), batch)]


def send_each(sender: Sender, arguments: Sequence[bytes]) -> None:
    deque(map(sender.put, arguments), maxlen=0)


def send_batches(sender: Sender, arguments: Sequence[list[bytes]]) -> None:
    assert sender.put_many is not None
    deque(map(sender.put_many, arguments), maxlen=0)


def receive_each(receiver: Receiver, count: int, batch: int) -> list[Any]:
    return list(starmap(receiver.get, repeat((), count)))


def receive_batches(receiver: Receiver, count: int, batch: int) -> list[Any]:
    get_many: Callable[[int], Sequence[Any]] | None = receiver.get_many
    assert get_many is not None
    received: list[Any] = []
    while count:
        got = get_many(min(batch, count))
        received.append(got)
        count -= len(got)
    return received


def flat(received: list[Any]) -> list[bytes]:
    """Return the items of single calls as they are, those of batches in one list."""
    if received and not isinstance(received[0], bytes):
        return list(chain.from_iterable(received))
    return received


def prepare_memory(count: int) -> list[bytes]:
    """Touch the memory that the received items will need, so that no page fault is measured.

    Without this, a consumer that keeps its items for the check pays more for fresh pages
    than a fast queue costs. The allocator keeps the memory as long as the result is alive.
    """
    touched = [bytes(items.ITEM_BYTES) for _ in range(count)]
    return touched[::_ANCHOR_EVERY]
