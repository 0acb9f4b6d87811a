"""A feed in which the latest wins: one writer at full speed, four readers, and values that nobody gets.

What is measured is how many values the writer gets rid of in a second while the readers read; how many they read
stands beside it. Every value that is read is verified: it is whole, and to its reader newer than the last or, where a
value is not taken but looked at, not older.

The contenders do not promise the same. A message of ours goes to one of the readers; an iceoryx2 sample goes to every
reader, each of which has a buffer of its own; the array has one value, which all look at again and again.
"""

import ctypes
import multiprocessing
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from typing import Any, ClassVar

from benchmarks.adapter import load
from benchmarks.case import Case, Contender, Goal, Plan, without_peers
from benchmarks.crew import Report, now, run_together
from benchmarks.isolation import Bench, Sample, UnfaithfulError
from benchmarks.placement import placements, take_place

READERS = 4
VALUE_BYTES = 64
WORDS = VALUE_BYTES // 8
BUFFERED = 4
FIRST_VALUES, MOST_VALUES = 20_000, 2_000_000
NAP = 0.02

_fork = multiprocessing.get_context("fork")


class Feed(ABC):
    """One way to hand the latest value on. `latest` gives None when there is nothing new at the moment."""

    name: ClassVar[str]
    capacity: ClassVar[str]
    note: ClassVar[str] = ""
    requirement: ClassVar[str] = ""
    sees_again: ClassVar[bool] = False

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    @abstractmethod
    def writer(self) -> Callable[[bytes], object]:
        """What hands a value on."""

    @abstractmethod
    def reader(self) -> Callable[[], bytes | None]:
        """What gives the latest one."""

    def close(self) -> None:
        """Remove what it has left in the system: nothing, as a rule."""
        return


class Queueduct(Feed):
    name = "queueduct overwriting"
    capacity = f"{BUFFERED} messages of 64 bytes"
    note = "each message to one reader, which sleeps when there is none"

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench)
        self.queue: Any = load("queueduct").OverwritingQueue.create(
            bench.tag, capacity=BUFFERED, message_bytes=VALUE_BYTES
        )

    def writer(self) -> Callable[[bytes], object]:
        put: Callable[[bytes], object] = load("queueduct").open(self.bench.tag).put
        return put

    def reader(self) -> Callable[[], bytes | None]:
        queueduct = load("queueduct")
        get, empty = queueduct.open(self.bench.tag).get, queueduct.Empty

        def latest() -> bytes | None:
            try:
                value: bytes = get(timeout=NAP)
            except empty:
                return None
            return value

        return latest

    def close(self) -> None:
        self.queue.close()
        load("queueduct").unlink(self.bench.tag)


class LockedArray(Feed):
    name = "multiprocessing.Array + Lock"
    capacity = "one value of 64 bytes"
    note = "all readers look at the same value, again and again"
    sees_again = True

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench)
        self.array = _fork.Array("c", bytes(VALUE_BYTES))

    def writer(self) -> Callable[[bytes], object]:
        lock, memory = self.array.get_lock(), memoryview(self.array.get_obj()).cast("B")

        def put(value: bytes) -> None:
            with lock:
                memory[:] = value

        return put

    def reader(self) -> Callable[[], bytes | None]:
        lock, memory = self.array.get_lock(), memoryview(self.array.get_obj()).cast("B")

        def latest() -> bytes | None:
            with lock:
                return bytes(memory)

        return latest


class SafeOverflow(Feed):
    name = "iceoryx2, safe overflow"
    capacity = f"{BUFFERED} samples of 64 bytes for each reader"
    note = "each sample to every reader; no blocking receive: it is polled"
    requirement = "iceoryx2==0.10.0"

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench)
        self.kept: object = self._service()  # the workers open what exists: no race to create it

    def _service(self) -> tuple[Any, Any, type[ctypes.Structure]]:
        """The node, the service and the type of a value."""
        iox = load("iceoryx2")
        iox.set_log_level(iox.LogLevel.Error)

        class Value(ctypes.Structure):
            _fields_ = (("data", ctypes.c_uint8 * VALUE_BYTES),)

        config = iox.config.default()
        config.global_cfg.prefix = iox.FileName.new(f"{self.bench.tag}_")
        config.global_cfg.root_path = iox.Path.new(f"{self.bench.directory}/iceoryx2")
        node = iox.NodeBuilder.new().config(config).create(iox.ServiceType.Ipc)
        service = (
            node.service_builder(iox.ServiceName.new(self.bench.tag))
            .publish_subscribe(Value)
            .enable_safe_overflow(True)
            .subscriber_max_buffer_size(BUFFERED)
            .max_publishers(1)
            .max_subscribers(READERS)
            .history_size(0)
            .open_or_create()
        )
        return node, service, Value

    def writer(self) -> Callable[[bytes], object]:
        node, service, value_type = self._service()
        publisher = service.publisher_builder().create()
        as_value = value_type.from_buffer_copy

        def put(value: bytes, _owner: object = node) -> None:
            publisher.send_copy(as_value(value))

        return put

    def reader(self) -> Callable[[], bytes | None]:
        node, service, _value = self._service()
        receive = service.subscriber_builder().create().receive

        def latest(_owner: object = node) -> bytes | None:
            sample = receive()
            if sample is None:
                return None
            value = ctypes.string_at(sample.payload_ptr, VALUE_BYTES)
            sample.delete()
            return value

        return latest

    def close(self) -> None:
        self.kept = None


@dataclass(frozen=True)
class Setting:
    """Which feed, and where its workers run."""

    feed: type[Feed]
    placement: str


def measure_feed(setting: Setting, amount: int, bench: Bench) -> Sample:
    """Write `amount` values; the value is how many a second."""
    feed = setting.feed(bench)
    is_over = _fork.RawValue("b", 0)
    try:
        works: dict[str, Any] = {"producer": _Writer(setting, feed, amount, is_over)}
        works |= {f"consumer {index}": _Reader(setting, feed, index, is_over) for index in range(READERS)}
        reports = run_together(works)
    finally:
        feed.close()
    writer = reports["producer"]
    seconds = writer.ended - writer.started
    reads = sum(reports[f"consumer {index}"].result for index in range(READERS))
    if reads == 0:
        raise UnfaithfulError("no reader has read anything")
    return Sample(amount / seconds, seconds, {"reads a second": reads / seconds})


@dataclass(frozen=True)
class _Writer:
    setting: Setting
    feed: Feed
    amount: int
    is_over: Any

    def __call__(self, barrier: Barrier) -> Report:
        take_place(self.setting.placement, producing=True, index=0)
        put = self.feed.writer()
        barrier.wait()
        started = now()
        for number in range(1, self.amount + 1):
            put(number.to_bytes(8, "little") * WORDS)
        ended = now()
        self.is_over.value = 1
        return Report(started, ended)


@dataclass(frozen=True)
class _Reader:
    setting: Setting
    feed: Feed
    index: int
    is_over: Any

    def __call__(self, barrier: Barrier) -> Report:
        take_place(self.setting.placement, producing=False, index=self.index)
        latest = self.feed.reader()
        barrier.wait()
        started = now()
        reads, last = 0, 0
        while True:
            is_over = self.is_over.value
            value = latest()
            if value is None:
                if is_over:
                    return Report(started, now(), reads)
                continue
            number = int.from_bytes(value[:8], "little")
            if value != value[:8] * WORDS:
                raise UnfaithfulError(f"reader {self.index} got a torn value: {value!r}")
            if number < last or (number == last and not self.feed.sees_again):
                raise UnfaithfulError(f"reader {self.index} got {number} after {last}")
            reads += number > last
            last = number
            if is_over and self.feed.sees_again:
                return Report(started, now(), reads)


def cases(plan: Plan) -> list[Case]:
    placement = placements(quick=plan.quick)[0]
    contenders = [
        Contender(
            name=feed.name,
            measure=measure_feed,
            setting=Setting(feed, placement),
            amount=plan.first(FIRST_VALUES),
            most=plan.most(MOST_VALUES),
            ours=feed is Queueduct,
            capacity=feed.capacity,
            note=feed.note,
        )
        for feed in (Queueduct, LockedArray, SafeOverflow)
    ]
    return [
        Case(
            name="latest-value",
            title="a feed of 64-byte values, 1 writer and 4 readers, the latest wins",
            unit="items/s",
            placement=placement,
            contenders=without_peers(contenders, plan),
            goals=(Goal(1.0),),
        )
    ]
