"""A `get` that waits for an item that does not come: how much of a core it uses."""

import resource
import time
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier

from benchmarks import items
from benchmarks.adapter import Adapter, Room, Sender
from benchmarks.case import Case, Contender, Goal, Plan, without_peers
from benchmarks.crew import Report, now, run_together
from benchmarks.isolation import Bench, Sample, UnfaithfulError
from benchmarks.ours import Queueduct
from benchmarks.peers import FasterFifo, HyperQ, ZeroQ
from benchmarks.standard import MultiprocessingQueue


@dataclass(frozen=True)
class Idle:
    """One queue, and for how many seconds nothing is put into it."""

    adapter: type[Adapter]
    seconds: float


def measure_idle(idle: Idle, amount: int, bench: Bench) -> Sample:
    """Let a child wait; the value is the share of a core, in percent, that its waiting took."""
    adapter = idle.adapter(Room(tag=bench.tag, directory=bench.directory))
    try:
        reports = run_together({"producer": _LateProducer(idle, adapter), "consumer": _Waiter(adapter)})
    finally:
        adapter.close()
    waiter = reports["consumer"]
    seconds = waiter.ended - waiter.started
    if seconds < idle.seconds:
        raise UnfaithfulError(f"get returned after {seconds:.3f} s, before anything was put")
    return Sample(100 * waiter.result / seconds, seconds, {"cpu seconds": waiter.result})


@dataclass
class _LateProducer:
    idle: Idle
    adapter: Adapter
    kept: Sender | None = None  # alive until its item was read

    def __call__(self, barrier: Barrier) -> Report:
        self.kept = self.adapter.sender(0)
        put = self.kept.put
        (item,) = items.build(0, 0, 1)
        barrier.wait()
        started = now()
        time.sleep(self.idle.seconds + 0.05)
        put(item)
        return Report(started, now())


@dataclass(frozen=True)
class _Waiter:
    adapter: Adapter

    def __call__(self, barrier: Barrier) -> Report:
        get = self.adapter.receiver(0).get
        barrier.wait()
        before = _cpu_seconds()
        started = now()
        item = get()
        ended = now()
        used = _cpu_seconds() - before
        if list(items.keys_in([item])) != [0]:
            raise UnfaithfulError("the item that ended the wait is not the one that was put")
        return Report(started, ended, used)


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def cases(plan: Plan) -> list[Case]:
    seconds = 0.5 if plan.quick else 2.0
    peers = (MultiprocessingQueue,) if plan.quick else (HyperQ, ZeroQ, FasterFifo, MultiprocessingQueue)
    contenders = [
        Contender(
            name=adapter.name,
            measure=measure_idle,
            setting=Idle(adapter, seconds),
            amount=1,
            ours=adapter is Queueduct,
            capacity=adapter.capacity,
            note=adapter.note,
        )
        for adapter in (Queueduct, *peers)
    ]
    return [
        Case(
            name="idle",
            title=f"a get that waits for {seconds:g} s",
            unit="% of a core",
            contenders=without_peers(contenders, plan),
            goals=(Goal(1.0, "", "at most"),),
            higher_is_better=False,
        )
    ]
