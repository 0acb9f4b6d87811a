"""What recording costs: the same run with and without it."""

from __future__ import annotations

import os
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from queueduct.verification.history import recorder
from queueduct.verification.stress.run import Options, Result, Run, new_name

__all__ = ["cost"]

ROUNDS = 15


def cost(options: Options, console: Console, rounds: int = ROUNDS) -> dict[str, Any]:
    """What recording costs: the same run with and without it, in turns. Ratios of neighbours, and their medians.

    All workers share one core. On several, they are in each other's way now more and now less, by far more than this.
    """
    options.check()
    core = min(os.sched_getaffinity(0))
    plain: list[Result] = []
    recorded: list[Result] = []
    for turn in range(rounds):
        pair = (plain, recorded) if turn % 2 == 0 else (recorded, plain)
        for results in pair:
            results.append(run_unkept(replace(options, seed=options.seed + turn), console, core, results is recorded))
            if results[-1].interrupted:
                raise KeyboardInterrupt
    pairs = list(zip(plain, recorded, strict=True))
    costs = [1 - after.operations_per_second / before.operations_per_second for before, after in pairs]
    cpu_costs = [1 - before.cpu_ns_per_operation / after.cpu_ns_per_operation for before, after in pairs]
    return {
        "cost": statistics.median(costs),
        "costs": costs,
        "cpu_cost": statistics.median(cpu_costs),
        "cpu_costs": cpu_costs,
        "rounds": rounds,
        "unrecorded_per_second": statistics.median(each.operations_per_second for each in plain),
        "recorded_per_second": statistics.median(each.operations_per_second for each in recorded),
        "unrecorded_cpu_ns": statistics.median(each.cpu_ns_per_operation for each in plain),
        "recorded_cpu_ns": statistics.median(each.cpu_ns_per_operation for each in recorded),
    }


def run_unkept(options: Options, console: Console, core: int, records: bool) -> Result:
    """On one core; if it records, as always, but the rows are not kept."""
    with tempfile.TemporaryDirectory(prefix="queueduct-stress-") as folder:
        if not records:
            return Run(options, new_name(), Path(folder), None, console, core).result()
        unfinished = recorder.UnfinishedHistory(Path(folder) / "history", new_name())
        return Run(options, new_name(), unfinished.rows, unfinished, console, core).result()
