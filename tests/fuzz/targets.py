"""What is damaged: a queue of each kind, how it is filled, where it can be struck, and all that can be called on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import queueduct
from queueduct import BoundedQueue, EventQueue, GrowingQueue, OverwritingQueue, SlotQueue
from queueduct.native import _layout
from tests.support.raw import LINE_BYTES, RawEvents, RawGrowing, RawOverwriting, RawSegment, RawSlots

CAPACITY = 16
PATIENCE = 0.001
KINDS = [bytes, "<u8", [("a", "<i4"), ("b", "<f8")], object]
VALUES = {0: b"x" * 24, 1: 7, 2: (1, 2.5), 3: {"a": [1, 2, 3]}}

Call = Callable[[Any, Any], object]


class Bounded:
    """A ring in the middle of its second lap, with items and free slots."""

    raw = RawSegment
    calls: ClassVar[dict[str, Call]] = {
        "stats": lambda q, value: q.stats(),
        "qsize": lambda q, value: q.qsize(),
        "full": lambda q, value: (q.full(), q.empty(), len(q), repr(q)),
        "try_put": lambda q, value: q.try_put(value),
        "try_get": lambda q, value: q.try_get(),
        "put": lambda q, value: q.put(value, timeout=PATIENCE),
        "get": lambda q, value: q.get(timeout=PATIENCE),
        "put_many": lambda q, value: q.put_many([value] * 20, timeout=PATIENCE),
        "get_many": lambda q, value: q.get_many(20, timeout=PATIENCE),
        "put_once": lambda q, value: q.put_once([value] * 4, "p", 1, timeout=PATIENCE),
        "next put_once": lambda q, value: q.put_once([value] * 3, "p", 2, timeout=PATIENCE),
        "producers": lambda q, value: (q.producers(), q.forget_producer("p")),
        "puts and gets": lambda q, value: [(q.try_put(value), q.try_get()) for _ in range(40)],
        "get_lease": lambda q, value: q.lease(5, timeout=PATIENCE).release(),
        "get_lease given back": lambda q, value: q.lease(5, timeout=PATIENCE).give_back(),
        "unreleased": lambda q, value: q.unreleased(range(30)),
        "another": lambda q, value: queueduct.open("q").close(),
    }

    def create(self, name: str, kind: int) -> BoundedQueue:
        return BoundedQueue.create(name, CAPACITY, item=KINDS[kind], participants=4, producers=2)

    def fill(self, q: BoundedQueue, value: object) -> None:
        q.put_many([value] * 12)
        q.get_many(12)
        q.put_once([value] * 4, "p", 1)
        q.put_many([value] * 5)

    def begin(self, q: BoundedQueue) -> BoundedQueue:
        return q

    def areas(self, raw: RawSegment) -> dict[str, tuple[int, int, int]]:
        """Where to strike: begin, end and how often."""
        text, control, lines = (raw.field(f"{name}_offset") for name in ("item_text", "control", "participants"))
        producers, generations, lengths = (
            raw.field(f"{name}_offset") for name in ("producers", "generations", "lengths")
        )
        return {
            "header": (0, 256, 15),
            "item_text": (text, text + raw.field("item_text_bytes"), 10),
            "control": (control, lines, 30),
            "participants": (lines, lines + 4 * 128, 20),
            "producers": (producers, producers + 3 * 128, 15),
            "generations": (generations, generations + 8 * CAPACITY, 10),
            "lengths": (lengths, lengths + 4 * CAPACITY if lengths else 0, 5),
        }


class Growing(Bounded):
    """Rings of which the second is written, the first not yet drained, and the third was used and freed."""

    raw = RawGrowing
    steps = 4

    def create(self, name: str, kind: int) -> Any:
        return GrowingQueue.create(
            name, item=KINDS[kind], first_bytes=256, steps=self.steps, participants=4, producers=2
        )

    def fill(self, q: Any, value: object) -> None:
        while q.stats().written_level < 2:
            q.put(value)
        while not q.empty():
            q.get_many(50)
        while q.stats().written_level:  # calm: it goes back to the first
            q.put(value)
            q.get()
        q.put_once([value] * 4, "p", 1)
        while q.stats().written_level == 0:
            q.put(value)

    def areas(self, raw: RawSegment) -> dict[str, tuple[int, int, int]]:
        text, control, levels, lines, producers, regions = (
            raw.field(f"{name}_offset")
            for name in ("item_text", "control", "levels", "participants", "producers", "regions")
        )
        return {
            "header": (0, raw.header_bytes, 15),
            "item_text": (text, text + raw.field("item_text_bytes"), 6),
            "control": (control, levels, 25),
            "levels": (levels, levels + self.steps * _layout.LEVEL_BYTES, 35),
            "participants": (lines, lines + 4 * LINE_BYTES, 15),
            "producers": (producers, producers + 3 * LINE_BYTES, 10),
            "first region": (regions, regions + 3 * 4096, 15),
        }


class Log:
    """An event queue and whoever reads it in a case."""

    def __init__(self, q: EventQueue) -> None:
        self.q = q
        self._reader: queueduct.Reader | None = None

    @property
    def reader(self) -> queueduct.Reader:
        if self._reader is None or self._reader.closed:
            self._reader = self.q.subscribe(start="earliest")
        return self._reader

    def shutdown(self) -> None:
        self.q.shutdown()

    def close(self) -> None:
        self.q.close()

    def look_at_records(self) -> None:
        if isinstance(self.q.item, type):
            return
        with self.reader.view() as array:
            array.tobytes()

    def resubscribe(self) -> None:
        if self._reader is not None:
            self._reader.close()
        with self.q.subscribe("durable") as durable:
            durable.get_many(3, timeout=PATIENCE)
            durable.commit()


def look_from_outside() -> None:
    """By a second handle, which finds the first one alive."""
    with EventQueue.open("q") as q:
        q.stats()


class Events:
    """A log of several chunks, some freed, with a durable reader in the middle and a producer."""

    raw = RawEvents
    calls: ClassVar[dict[str, Call]] = {
        "stats": lambda log, value: log.q.stats(),
        "looks": lambda log, value: (len(log.q), repr(log.q), log.q.earliest, log.q.end, log.q.full()),
        "readers": lambda log, value: log.q.readers(),
        "producers": lambda log, value: log.q.producers(),
        "try_put": lambda log, value: log.q.try_put(value),
        "put": lambda log, value: log.q.put(value, timeout=PATIENCE),
        "put_many": lambda log, value: log.q.put_many([value] * 60, timeout=PATIENCE),
        "put_once": lambda log, value: log.q.put_once([value] * 5, "p", 2, timeout=PATIENCE),
        "forget_producer": lambda log, value: log.q.forget_producer("p"),
        "get": lambda log, value: log.reader.get(timeout=PATIENCE),
        "try_get": lambda log, value: log.reader.try_get(),
        "get_many": lambda log, value: log.reader.get_many(20, timeout=PATIENCE),
        "get_view": lambda log, value: log.look_at_records(),
        "get_reader": lambda log, value: (log.reader.lag, log.reader.committed, log.reader.close()),
        "get_durable": lambda log, value: log.resubscribe(),
        "get_read": lambda log, value: log.q.read(log.q.earliest, min(log.q.end, log.q.earliest + 100)),
        "get_put": lambda log, value: [(log.q.try_put(value), log.reader.try_get()) for _ in range(40)],
        "unsubscribe": lambda log, value: log.q.unsubscribe("durable"),
        "clear": lambda log, value: log.q.clear(),
        "keep_last": lambda log, value: log.q.keep_last(5),
        "another": lambda log, value: look_from_outside(),
    }

    def create(self, name: str, kind: int) -> EventQueue:
        how = {"participants": 4, "readers": 4, "producers": 2, "max_bytes": 1 << 14}
        return EventQueue.create(name, item=KINDS[kind], **how)

    def fill(self, q: EventQueue, value: object) -> None:
        reader = q.subscribe()
        q.put_many([value] * 30)
        reader.get_many(30)
        reader.try_get()
        with q.subscribe("durable"):
            q.put_many([value] * 25)
        q.put_once([value] * 5, "p", 1)

    def begin(self, q: EventQueue) -> Log:
        return Log(q)

    def areas(self, raw: RawSegment) -> dict[str, tuple[int, int, int]]:
        at = {
            name: raw.field(f"{name}_offset")
            for name in ("item_text", "control", "participants", "readers", "producers", "chunks", "blocks", "arena")
        }
        return {
            "header": (0, _layout.EVENTS_HEADER_BYTES, 12),
            "item_text": (at["item_text"], at["item_text"] + raw.field("item_text_bytes"), 5),
            "control": (at["control"], at["participants"], 30),
            "participants": (at["participants"], at["readers"], 8),
            "readers": (at["readers"], at["producers"], 12),
            "producers": (at["producers"], at["producers"] + 3 * LINE_BYTES, 8),
            "chunks": (at["chunks"], at["chunks"] + 12 * 64, 20),
            "blocks": (at["blocks"], at["blocks"] + 4 * 16, 5),
            "arena": (at["arena"], at["arena"] + 8 * 4096, 5),
        }


class Overwriting:
    """A ring in the middle of its second lap, with messages and room, in which one was overwritten."""

    raw = RawOverwriting
    calls: ClassVar[dict[str, Call]] = {
        "stats": lambda q, value: q.stats(),
        "qsize": lambda q, value: q.qsize(),
        "full": lambda q, value: (q.full(), q.empty(), len(q), repr(q)),
        "try_put": lambda q, value: q.try_put(value),
        "try_get": lambda q, value: q.try_get(),
        "put": lambda q, value: q.put(value, timeout=PATIENCE),
        "put kept": lambda q, value: q.put(value, timeout=PATIENCE, overwrite=False),
        "get": lambda q, value: q.get(timeout=PATIENCE),
        "put_many": lambda q, value: q.put_many([value] * 20, timeout=PATIENCE),
        "get_many": lambda q, value: q.get_many(20, timeout=PATIENCE),
        "puts and gets": lambda q, value: [(q.put(value, timeout=PATIENCE), q.get(timeout=0)) for _ in range(40)],
        "another": lambda q, value: queueduct.open("q").close(),
    }

    def create(self, name: str, kind: int) -> OverwritingQueue:
        size = None if kind in (1, 2) else 24 if kind == 0 else 64
        return OverwritingQueue.create(name, CAPACITY, item=KINDS[kind], message_bytes=size, participants=4)

    def fill(self, q: OverwritingQueue, value: object) -> None:
        q.put_many([value] * (CAPACITY + 1))
        q.get_many(6)
        q.put_many([value] * 3)

    def begin(self, q: OverwritingQueue) -> OverwritingQueue:
        return q

    def areas(self, raw: RawSegment) -> dict[str, tuple[int, int, int]]:
        own, text, control, lines = (
            raw.base,
            *(raw.field(f"{name}_offset") for name in ("item_text", "control", "participants")),
        )
        return {
            "published sizes": (0, 16, 8),
            "header lock": (16, 24, 1),
            "places": (24, 32, 15),
            "messages": (32, 32 + CAPACITY * (8 + raw.field("slot_bytes")), 3),
            "header": (own, own + 256, 12),
            "item_text": (text, text + raw.field("item_text_bytes"), 8),
            "control": (control, lines, 25),
            "participants": (lines, lines + 4 * LINE_BYTES, 10),
            "readings": (lines + 4 * LINE_BYTES, lines + 8 * LINE_BYTES, 5),
        }


def look_at_slot(q: SlotQueue) -> None:
    with q.take(PATIENCE) as slot:
        bytes(slot.view)
        slot.array.tobytes()


def loan_slot(q: SlotQueue) -> None:
    if q.item is not object:
        with q.loan(PATIENCE) as slot:
            slot.view[:1] = b"x"


class Slots:
    """A queue in its second cycle, with items, one of them to be delivered again, and free slots."""

    raw = RawSlots
    calls: ClassVar[dict[str, Call]] = {
        "stats": lambda q, value: q.stats(),
        "looks": lambda q, value: (q.full(), q.empty(), len(q), repr(q), q.capacity, q.slots),
        "try_put": lambda q, value: q.try_put(value),
        "try_get": lambda q, value: q.try_get(),
        "put": lambda q, value: q.put(value, timeout=PATIENCE),
        "get": lambda q, value: q.get(timeout=PATIENCE),
        "put_many": lambda q, value: q.put_many([value] * 20, timeout=PATIENCE),
        "get_many": lambda q, value: q.get_many(20, timeout=PATIENCE),
        "get_evicted": lambda q, value: [q.put(value, timeout=PATIENCE, overwrite=True) for _ in range(20)],
        "get_put": lambda q, value: [(q.try_put(value), q.try_get()) for _ in range(40)],
        "take": lambda q, value: look_at_slot(q),
        "give_back": lambda q, value: q.take(PATIENCE).give_back(),
        "loan": lambda q, value: loan_slot(q),
        "get_capacity": lambda q, value: (q.set_capacity(3), q.set_capacity(CAPACITY)),
        "another": lambda q, value: queueduct.open("q").close(),
    }

    def create(self, name: str, kind: int) -> SlotQueue:
        return SlotQueue.create(name, CAPACITY, item=KINDS[kind], participants=4)

    def fill(self, q: SlotQueue, value: object) -> None:
        q.put_many([value] * 12)
        q.get_many(12)
        q.put_many([value] * 9)
        q.take().give_back()

    def begin(self, q: SlotQueue) -> SlotQueue:
        return q

    def areas(self, raw: RawSegment) -> dict[str, tuple[int, int, int]]:
        at = {
            name: raw.field(f"{name}_offset")
            for name in ("item_text", "control", "participants", "free_cells", "used_cells", "lines", "payload")
        }
        return {
            "header": (0, _layout.SLOTS_HEADER_BYTES, 12),
            "item_text": (at["item_text"], at["item_text"] + raw.field("item_text_bytes"), 6),
            "control": (at["control"], at["participants"], 30),
            "participants": (at["participants"], at["participants"] + 4 * LINE_BYTES, 10),
            "free_cells": (at["free_cells"], at["free_cells"] + 8 * CAPACITY, 12),
            "used_cells": (at["used_cells"], at["used_cells"] + 8 * CAPACITY, 12),
            "lines": (at["lines"], at["payload"], 30),
            "payload": (at["payload"], at["payload"] + CAPACITY * raw.field("slot_stride"), 3),
        }


TARGETS: dict[str, Any] = {
    "bounded": Bounded(),
    "events": Events(),
    "growing": Growing(),
    "overwriting": Overwriting(),
    "slots": Slots(),
}
