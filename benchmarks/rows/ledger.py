"""Crash safety on and off, from native code: what the ledger costs a put and a get.

The program is built with the native tests and prints one JSON object:
``{"rows": [{"name": "...", "on_ns": 1.0, "off_ns": 1.0}]}``.
"""

import json
import subprocess
import time
from pathlib import Path

from benchmarks.case import Case, Contender, Goal, Plan
from benchmarks.isolation import Bench, NotBuiltError, Sample

PROGRAM = Path("build/native/tests/native/bench_ledger")


def measure_ledger(program: Path, amount: int, bench: Bench) -> Sample:
    """Run the program; the value is the cost with the ledger over the cost without it."""
    if not program.exists():
        raise NotBuiltError(f"{program} does not exist")
    started = time.perf_counter()
    answer = subprocess.run([program.absolute()], capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - started
    rows = json.loads(answer.stdout)["rows"]
    details = {f"{row['name']}: on / off": row["on_ns"] / row["off_ns"] for row in rows}
    return Sample(sum(details.values()) / len(details), seconds, details)


def cases(plan: Plan) -> list[Case]:
    contender = Contender(
        name="ledger on / off",
        measure=measure_ledger,
        setting=PROGRAM,
        amount=1,
        ours=True,
        note="mean over the program's rows",
    )
    return [
        Case(
            name="ledger",
            title="crash safety on and off, native code",
            unit="x",
            contenders=(contender,),
            goals=(Goal(1.15, "", "at most"),),
            higher_is_better=False,
        )
    ]
