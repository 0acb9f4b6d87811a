"""64-byte items between processes, one item a call: 1, 2 and 4 producers and consumers."""

from benchmarks.adapter import Adapter
from benchmarks.case import Case, Contender, Goal, Plan, without_peers
from benchmarks.flow import Flow, measure_flow
from benchmarks.ours import Queueduct
from benchmarks.peers import BETWEEN_PROCESSES
from benchmarks.placement import placements
from benchmarks.standard import MultiprocessingQueue

TOPOLOGIES = (1, 2, 4)
MOST_ITEMS = 4_000_000
FIRST_ITEMS = 2_000


def contender(adapter: type[Adapter], plan: Plan, placement: str, each: int, batch: int = 1) -> Contender:
    """Enter a queue with `each` producers and as many consumers."""
    flow = Flow(adapter, producers=each, consumers=each, batch=batch, placement=placement)
    return Contender(
        name=adapter.name,
        measure=measure_flow,
        setting=flow,
        amount=plan.first(FIRST_ITEMS),
        most=plan.most(MOST_ITEMS),
        ours=adapter is Queueduct,
        capacity=adapter.capacity,
        note=adapter.note,
        unfit="" if adapter.fits(each, each) else f"only for {adapter.only_for}",
    )


def cases(plan: Plan) -> list[Case]:
    queues: tuple[type[Adapter], ...] = (Queueduct, *BETWEEN_PROCESSES)
    found = []
    for each in TOPOLOGIES:
        for placement in placements(quick=plan.quick):
            contenders = [contender(queue, plan, placement, each) for queue in queues]
            found.append(
                Case(
                    name=f"bytes-{each}p{each}c",
                    title=f"64-byte items between processes, one a call, {each}P{each}C",
                    unit="items/s",
                    placement=placement,
                    contenders=without_peers(contenders, plan),
                    goals=(Goal(3.0), Goal(100.0, MultiprocessingQueue.name)),
                )
            )
    return found
