"""Damaged segments by the thousand. Runs as a process of its own, since a crash must not take the tests along.

    python fuzzing.py FIRST COUNT      the cases FIRST … FIRST + COUNT - 1; a case is its number, nothing else

Each case takes a sound segment, damages some of it before or while it is open, and calls everything.
Allowed: it works, or it raises one of ALLOWED. The number of the case stands on stdout before it is tried.
"""

from __future__ import annotations

import os
import random
import struct
import sys
import time
from pathlib import Path

import penstock
from penstock import BoundedQueue
from raw import RawSegment

ALLOWED = (penstock.PenstockError, ValueError, OSError, penstock.Empty, penstock.Full, penstock.ShutDown)
CAPACITY = 16
PATIENCE = 0.001
KINDS = [bytes, "<u8", [("a", "<i4"), ("b", "<f8")], object]
VALUES = {0: b"x" * 20, 1: 7, 2: (1, 2.5), 3: {"a": [1, 2, 3]}}
AREAS = ["header", "item_text", "control", "participants", "producers", "generations", "lengths"]


def main() -> None:
    first, count = int(sys.argv[1]), int(sys.argv[2])
    templates = [make_template(kind) for kind in range(len(KINDS))]
    outcomes: dict[str, int] = {}
    for case in range(first, first + count):
        os.write(1, b"%d\n" % case)
        try_case(case, templates, outcomes)
    print(outcomes, flush=True)


def make_template(kind: int) -> bytes:
    """A queue in the middle of its second lap, with items and free slots."""
    name = f"template{kind}"
    with BoundedQueue.create(name, CAPACITY, item=KINDS[kind], participants=4, producers=2) as q:
        q.put_many([VALUES[kind]] * 12)
        q.get_many(12)
        q.put_once([VALUES[kind]] * 4, "p", 1)
        q.put_many([VALUES[kind]] * 5)
    path = Path(os.environ["PENSTOCK_DIR"]) / name
    data = path.read_bytes()
    path.unlink()
    return data


def try_case(case: int, templates: list[bytes], outcomes: dict[str, int]) -> None:
    rng = random.Random(case)
    kind = rng.randrange(len(KINDS))
    path = Path(os.environ["PENSTOCK_DIR"]) / "q"
    path.write_bytes(templates[kind])
    path.chmod(0o600)
    is_open_before = rng.random() < 0.5
    q = None
    try:
        with RawSegment("q") as raw:
            if is_open_before:
                q = penstock.open("q")
                if rng.random() < 0.5:
                    q.try_put(VALUES[kind])
                    q.try_get()
            damage(raw, rng)
        q = q or penstock.open("q")
    except ALLOWED as error:
        note(outcomes, "open", error)
    if q is not None:
        for call in [*rng.sample(list(CALLS), 8), "shutdown", *rng.sample(list(CALLS), 3), "close", "get"]:
            note(outcomes, call, attempt(q, call, kind))
    path.unlink()


def damage(raw: RawSegment, rng: random.Random) -> None:
    """One to four blows into one or two areas."""
    starts = {name: raw.field(f"{name}_offset") for name in AREAS if name != "header"}
    ends = {
        "header": 256,
        "item_text": starts["item_text"] + raw.field("item_text_bytes"),
        "control": starts["participants"],
    }
    ends["participants"] = starts["participants"] + 4 * 128
    ends["producers"] = starts["producers"] + 3 * 128
    ends["generations"] = starts["generations"] + 8 * CAPACITY
    ends["lengths"] = starts["lengths"] + 4 * CAPACITY if starts["lengths"] else 0
    starts["header"] = 0
    sign = rng.random() < 0.5
    for _ in range(rng.randint(1, 4)):
        area = rng.choices(AREAS, [15, 10, 30, 20, 15, 10, 5])[0]
        if ends[area] - starts[area] < 8:
            continue
        strike(raw.memory, rng, starts[area], ends[area])
        if area in ("header", "item_text") and sign and 0 < raw.field("item_text_bytes") < 3000:
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


CALLS = {
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
    "another": lambda q, value: penstock.open("q").close(),
}
ENDS = {
    "shutdown": lambda q, value: q.shutdown(),
    "close": lambda q, value: q.close(),
}


def attempt(q: BoundedQueue, call: str, kind: int) -> BaseException | None:
    try:
        (CALLS | ENDS)[call](q, VALUES[kind])
    except ALLOWED as error:
        return error
    except Exception as error:
        if KINDS[kind] is object and "get" in call:  # what is no pickle may fail in any way
            return error
        raise
    return None


def be_struck() -> None:
    """Call everything for a second, whatever happens to the memory."""
    kind = int(sys.argv[1])
    q = BoundedQueue.create("q", CAPACITY, item=KINDS[kind], participants=4, producers=2)
    rng = random.Random(kind)
    outcomes: dict[str, int] = {}
    print("ready", flush=True)
    end = time.monotonic() + 10
    while time.monotonic() < end and outcomes.get("CorruptSegment", 0) < 20_000:
        call = rng.choice([name for name in CALLS if name != "another"])
        note(outcomes, call, attempt(q, call, kind))
    print(outcomes, flush=True)


def scribble() -> None:
    """Strike until killed."""
    rng = random.Random(int(sys.argv[1]))
    with RawSegment("q") as raw:
        start = raw.field("control_offset")
        end = raw.field("generations_offset") + 8 * CAPACITY
        while True:
            strike(raw.memory, rng, *rng.choice([(start, start + 640 + 512), (end - 8 * CAPACITY, end)]))


def note(outcomes: dict[str, int], call: str, error: BaseException | None) -> None:
    key = type(error).__name__ if error is not None else "works"
    outcomes[key] = outcomes.get(key, 0) + 1


if __name__ == "__main__":
    main()
