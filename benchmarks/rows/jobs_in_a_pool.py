"""Jobs that do nothing, in worker processes: `Workers.map` beside `ProcessPoolExecutor.map`, one job a call each."""

import multiprocessing
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager

from benchmarks.adapter import load
from benchmarks.case import Case, Contender, Goal, Plan, without_peers
from benchmarks.isolation import Bench, Sample, UnfaithfulError

PROCESSES = 4
OURS = "queueduct"
THEIRS = "ProcessPoolExecutor"
WARM_UP = 200


def unchanged(item: int) -> int:
    return item


class Executor(AbstractContextManager["Executor"]):
    """The standard library's pool, with the same calls as ours."""

    def __init__(self) -> None:
        self.pool = ProcessPoolExecutor(PROCESSES, mp_context=multiprocessing.get_context("forkserver"))

    def map(self, items: Iterable[int]) -> Iterator[int]:
        return self.pool.map(unchanged, items, chunksize=1)

    def __exit__(self, *error: object) -> None:
        self.pool.shutdown()


def measure_map(name: str, amount: int, bench: Bench) -> Sample:
    """Jobs a second from the call of map to the last result; the processes run already."""
    pool = load("queueduct").Workers(None, unchanged, processes=PROCESSES) if name == OURS else Executor()
    with pool:
        list(pool.map(range(WARM_UP)))
        started = time.perf_counter()
        results = list(pool.map(range(amount)))
        seconds = time.perf_counter() - started
    if results != list(range(amount)):
        raise UnfaithfulError("the results of a map are not those of its jobs, in their order")
    return Sample(amount / seconds, seconds)


def cases(plan: Plan) -> list[Case]:
    contenders = [
        Contender(
            name=name,
            measure=measure_map,
            setting=name,
            amount=plan.first(first),
            most=plan.most(most),
            ours=name == OURS,
            note=f"{PROCESSES} processes from a fork server",
        )
        for name, first, most in ((OURS, 20_000, 400_000), (THEIRS, 1_000, 20_000))
    ]
    return [
        Case(
            name="pool-map",
            title=f"map of a function that does nothing, {PROCESSES} processes, chunksize 1",
            unit="jobs/s",
            contenders=without_peers(contenders, plan),
            goals=(Goal(20.0, THEIRS),),
        )
    ]
