"""Ping-pong through two queues with both sides running, beside a Pipe and the fastest peers."""

from benchmarks.case import Case, Contender, Goal, Plan, without_peers
from benchmarks.echo import Echo, measure_echo
from benchmarks.ours import Queueduct
from benchmarks.peers import HyperQ, ZeroQ
from benchmarks.placement import placements
from benchmarks.standard import MultiprocessingPipe

FIRST_TRIPS = 1000
MOST_TRIPS = 50_000


def cases(plan: Plan) -> list[Case]:
    found = []
    for placement in placements(quick=plan.quick):
        contenders = [
            Contender(
                name=adapter.name,
                measure=measure_echo,
                setting=Echo(adapter, placement=placement),
                amount=plan.first(FIRST_TRIPS),
                most=plan.most(MOST_TRIPS),
                ours=adapter is Queueduct,
                capacity=adapter.capacity,
                note=adapter.note,
            )
            for adapter in (Queueduct, MultiprocessingPipe, HyperQ, ZeroQ)
        ]
        found.append(
            Case(
                name="round-trip",
                title="round trip of 64 bytes, both sides running",
                unit="s",
                placement=placement,
                contenders=without_peers(contenders, plan),
                goals=(Goal(15.0, MultiprocessingPipe.name),),
                higher_is_better=False,
            )
        )
    return found
