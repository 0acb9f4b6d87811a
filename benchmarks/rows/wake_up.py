"""A parked `get` is woken: the round trip between two processes, beside that of an eventfd."""

from benchmarks.case import Case, Contender, Goal, Plan
from benchmarks.echo import Echo, measure_echo
from benchmarks.ours import Queueduct
from benchmarks.placement import placements
from benchmarks.standard import EventFd

PAUSE = 0.002


def cases(plan: Plan) -> list[Case]:
    amount = plan.first(100 if plan.quick else 400)
    found = []
    for placement in placements(quick=plan.quick):
        contenders = tuple(
            Contender(
                name=adapter.name,
                measure=measure_echo,
                setting=Echo(adapter, pause=PAUSE, placement=placement),
                amount=amount,
                ours=adapter is Queueduct,
                reference=adapter is EventFd,
                capacity=adapter.capacity,
                note=adapter.note,
            )
            for adapter in (Queueduct, EventFd)
        )
        found.append(
            Case(
                name="wake-up",
                title=f"round trip to a parked get, {PAUSE * 1000:g} ms of rest before each",
                unit="s",
                placement=placement,
                contenders=contenders,
                goals=(Goal(2.0, EventFd.name, "at most"),),
                higher_is_better=False,
            )
        )
    return found
