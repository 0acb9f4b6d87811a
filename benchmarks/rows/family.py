"""The five queues side by side: 64-byte items from one process to another, one a call and 256 a call.

What they promise differs; here each does the same work, and loses nothing: the overwriting queue waits for room, and
the log has one reader, which frees what it has read.
"""

from functools import partial
from typing import Any

from benchmarks.adapter import Adapter, Receiver, Room, Sender, load
from benchmarks.case import Case, Contender, Plan
from benchmarks.flow import Flow, measure_flow
from benchmarks.placement import placements

BATCHES = (1, 256)
FIRST_ITEMS, MOST_ITEMS = 2_000, 4_000_000


class Member(Adapter):
    """One of the five, with room for as many items as the others where a capacity can be chosen."""

    kind: str
    capacity = "1024 items of 64 bytes"

    def __init__(self, room: Room) -> None:
        super().__init__(room)
        self.queue: Any = getattr(load("queueduct"), self.kind).create(room.tag, **self.options(room))

    def options(self, room: Room) -> dict[str, Any]:
        """How it is told its room."""
        return {"capacity": room.capacity, "slot_bytes": room.item_bytes}

    def _open(self) -> Any:
        return load("queueduct").open(self.room.tag)

    def sender(self, index: int) -> Sender:
        queue = self._open()
        return Sender(put=queue.put, put_many=queue.put_many)

    def receiver(self, index: int) -> Receiver:
        queue = self._open()
        return Receiver(get=queue.get, get_many=queue.get_many)

    def close(self) -> None:
        self.queue.close()
        load("queueduct").unlink(self.room.tag)


class Bounded(Member):
    name = kind = "BoundedQueue"


class Growing(Member):
    name = kind = "GrowingQueue"
    capacity = "grows as it is used"

    def options(self, room: Room) -> dict[str, Any]:
        return {}


class Overwriting(Member):
    name = kind = "OverwritingQueue"
    note = "overwrite=False: it waits for room"

    def options(self, room: Room) -> dict[str, Any]:
        return {"capacity": room.capacity, "message_bytes": room.item_bytes}

    def sender(self, index: int) -> Sender:
        queue = self._open()
        return Sender(put=partial(queue.put, overwrite=False), put_many=partial(queue.put_many, overwrite=False))


class Slots(Member):
    name = kind = "SlotQueue"
    note = "put and get, with copies"


class Events(Member):
    name = kind = "EventQueue"
    capacity = "a megabyte"
    note = "one reader"

    def options(self, room: Room) -> dict[str, Any]:
        return {"max_bytes": 1 << 20}

    def receiver(self, index: int) -> Receiver:
        reader = self._open().subscribe()
        return Receiver(get=reader.get, get_many=reader.get_many)


FAMILY = (Bounded, Growing, Overwriting, Slots, Events)


def contender(member: type[Member], plan: Plan, placement: str, batch: int) -> Contender:
    return Contender(
        name=member.name,
        measure=measure_flow,
        setting=Flow(member, batch=batch, placement=placement),
        amount=plan.first(FIRST_ITEMS),
        most=plan.most(MOST_ITEMS),
        ours=True,
        capacity=member.capacity,
        note=member.note,
    )


def cases(plan: Plan) -> list[Case]:
    return [
        Case(
            name=f"family-{batch}",
            title=f"the five queues, 64-byte items between two processes, {batch} a call",
            unit="items/s",
            placement=placement,
            contenders=tuple(contender(member, plan, placement, batch) for member in FAMILY),
            goals=(),
        )
        for batch in BATCHES
        for placement in placements(quick=plan.quick)
    ]
