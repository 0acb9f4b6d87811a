"""64-byte items between processes, 256 of them a call, against faster-fifo's own batch calls."""

from dataclasses import replace

from benchmarks.case import Case, Goal, Plan, without_peers
from benchmarks.ours import Queueduct
from benchmarks.peers import FasterFifo, PickledFasterFifo
from benchmarks.placement import placements
from benchmarks.rows.bytes_between_processes import TOPOLOGIES, contender

BATCH = 256
SINGLE = "queueduct, one a call"


def cases(plan: Plan) -> list[Case]:
    found = []
    for each in TOPOLOGIES:
        for placement in placements(quick=plan.quick):
            single = replace(contender(Queueduct, plan, placement, each), name=SINGLE)
            contenders = [
                contender(Queueduct, plan, placement, each, BATCH),
                single,
                contender(FasterFifo, plan, placement, each, BATCH),
            ]
            if not plan.quick:
                contenders.append(contender(PickledFasterFifo, plan, placement, each, BATCH))
            found.append(
                Case(
                    name=f"batch-{each}p{each}c",
                    title=f"64-byte items between processes, {BATCH} a call, {each}P{each}C",
                    unit="items/s",
                    placement=placement,
                    contenders=without_peers(contenders, plan),
                    goals=(Goal(20.0, FasterFifo.name), Goal(3.0, SINGLE)),
                )
            )
    return found
