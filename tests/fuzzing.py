"""Damaged segments by the thousand. Runs as a process of its own, since a crash must not take the tests along.

    python fuzzing.py TARGET FIRST COUNT     the cases FIRST … FIRST + COUNT - 1; a case is its number, nothing else

Each case takes a sound segment, damages some of it before or while it is open, and calls everything.
Allowed: it works, or it raises one of ALLOWED. The number of the case stands on stdout before it is tried.
"""

from __future__ import annotations

import os
import random
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import penstock
from penstock import BoundedQueue, EventQueue, GrowingQueue, OverwritingQueue, SlotQueue, _layout, _slots_layout
from raw import LINE_BYTES, RawEvents, RawGrowing, RawOverwriting, RawSegment, RawSlots

ALLOWED = (penstock.PenstockError, ValueError, OSError, penstock.Empty, penstock.Full, penstock.ShutDown)
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
        "another": lambda q, value: penstock.open("q").close(),
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

    def create(self, name: str, kind: int) -> GrowingQueue:  # type: ignore[override]  # the same calls, another queue
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
        self._reader: penstock.Reader | None = None

    @property
    def reader(self) -> penstock.Reader:
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
        "another": lambda q, value: penstock.open("q").close(),
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
        "put_back": lambda q, value: q.take(PATIENCE).put_back(),
        "loan": lambda q, value: loan_slot(q),
        "get_capacity": lambda q, value: (q.set_capacity(3), q.set_capacity(CAPACITY)),
        "another": lambda q, value: penstock.open("q").close(),
    }

    def create(self, name: str, kind: int) -> SlotQueue:
        return SlotQueue.create(name, CAPACITY, item=KINDS[kind], participants=4)

    def fill(self, q: SlotQueue, value: object) -> None:
        q.put_many([value] * 12)
        q.get_many(12)
        q.put_many([value] * 9)
        q.take().put_back()

    def begin(self, q: SlotQueue) -> SlotQueue:
        return q

    def areas(self, raw: RawSegment) -> dict[str, tuple[int, int, int]]:
        at = {
            name: raw.field(f"{name}_offset")
            for name in ("item_text", "control", "participants", "free_cells", "used_cells", "lines", "payload")
        }
        return {
            "header": (0, _slots_layout.HEADER_BYTES, 12),
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
ENDS: dict[str, Call] = {
    "shutdown": lambda q, value: q.shutdown(),
    "close": lambda q, value: q.close(),
}


def main() -> None:
    target, first, count = TARGETS[sys.argv[1]], int(sys.argv[2]), int(sys.argv[3])
    templates = [make_template(target, kind) for kind in range(len(KINDS))]
    outcomes: dict[str, int] = {}
    for case in range(first, first + count):
        os.write(1, b"%d\n" % case)
        try_case(target, case, templates, outcomes)
    print(outcomes, flush=True)


def make_template(target: Any, kind: int) -> tuple[bytes, int]:
    """The bytes of a sound segment up to its last that is not zero, and its size."""
    name = f"template{kind}"
    with target.create(name, kind) as q:
        target.fill(q, VALUES[kind])
    path = Path(os.environ["PENSTOCK_DIR"]) / name
    data = path.read_bytes()
    path.unlink()
    return data.rstrip(b"\0"), len(data)


def try_case(target: Any, case: int, templates: list[tuple[bytes, int]], outcomes: dict[str, int]) -> None:
    rng = random.Random(case)
    kind = rng.randrange(len(KINDS))
    path = Path(os.environ["PENSTOCK_DIR"]) / "q"
    path.write_bytes(templates[kind][0])
    path.chmod(0o600)
    os.truncate(path, templates[kind][1])
    is_open_before = rng.random() < 0.5
    used = None
    try:
        with target.raw("q") as raw:
            if is_open_before:
                used = target.begin(penstock.open("q"))
                if rng.random() < 0.5:
                    target.calls["try_put"](used, VALUES[kind])
                    target.calls["try_get"](used, VALUES[kind])
            damage(target, raw, rng)
        used = used or target.begin(penstock.open("q"))
    except ALLOWED as error:
        note(outcomes, error)
    if used is not None:
        calls = list(target.calls)
        for call in [*rng.sample(calls, 8), "shutdown", *rng.sample(calls, 3), "close", "get"]:
            note(outcomes, attempt(target, used, call, kind))
    path.unlink()


def damage(target: Any, raw: RawSegment, rng: random.Random) -> None:
    """One to four blows into one or two areas."""
    areas = target.areas(raw)
    sign = rng.random() < 0.5
    for _ in range(rng.randint(1, 4)):
        name = rng.choices(list(areas), [often for _, _, often in areas.values()])[0]
        start, end, _ = areas[name]
        if end - start < 8:
            continue
        strike(raw.memory, rng, start, end)
        if name in ("header", "item_text") and sign and 0 < raw.field("item_text_bytes") < 3000:
            raw.sign()


def strike(memory, rng: random.Random, start: int, end: int) -> None:
    how = rng.randrange(4)
    if how == 0:
        at = rng.randrange(start, end)
        memory[at] = memory[at] ^ (1 << rng.randrange(8))
    elif how == 1:
        memory[rng.randrange(start, end)] = rng.randrange(256)
    else:
        at = rng.randrange(start, end - 7) // 8 * 8
        at = max(start, at)
        old = struct.unpack_from("<Q", memory, at)[0]
        near = (old + rng.choice([-CAPACITY, -2, -1, 1, 2, CAPACITY])) % 2**64
        far = rng.choice(
            [0, 1, 2**31, 2**32 - 1, 2**62, 2**63, 2**64 - 1, old | 2**63, rng.getrandbits(64), intent(rng)]
        )
        struct.pack_into("<Q", memory, at, near if how == 2 else far)


def intent(rng: random.Random) -> int:
    """What a participant might have declared."""
    return rng.choice([1, 2, 3]) << 62 | rng.randrange(20) << 40 | rng.randrange(40)


def attempt(target: Any, used: Any, call: str, kind: int) -> BaseException | None:
    try:
        (target.calls | ENDS)[call](used, VALUES[kind])
    except ALLOWED as error:
        return error
    except Exception as error:
        if KINDS[kind] is object and "get" in call:  # what is no pickle may fail in any way
            return error
        raise
    return None


def be_struck() -> None:
    """Call everything for a second, whatever happens to the memory."""
    target, kind = TARGETS[sys.argv[1]], int(sys.argv[2])
    used = target.begin(target.create("q", kind))
    rng = random.Random(kind)
    outcomes: dict[str, int] = {}
    print("ready", flush=True)
    end = time.monotonic() + 10
    while time.monotonic() < end and outcomes.get("CorruptSegment", 0) < 20_000:
        call = rng.choice([name for name in target.calls if name != "another"])
        note(outcomes, attempt(target, used, call, kind))
    print(outcomes, flush=True)


def scribble() -> None:
    """Strike until killed."""
    target, rng = TARGETS[sys.argv[1]], random.Random(int(sys.argv[2]))
    with target.raw("q") as raw:
        areas = [area for name, area in target.areas(raw).items() if name not in ("header", "item_text")]
        areas = [(start, end) for start, end, _ in areas if end - start >= 8]
        while True:
            strike(raw.memory, rng, *rng.choice(areas))


def note(outcomes: dict[str, int], error: BaseException | None) -> None:
    key = type(error).__name__ if error is not None else "works"
    outcomes[key] = outcomes.get(key, 0) + 1


if __name__ == "__main__":
    main()
